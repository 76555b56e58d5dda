"""Port reservations, so that two clouds that start at the same time never use the same port.

A cloud owns a port while it holds the lock on the port's file in the temporary folder; the operating system
releases the lock when the process ends. Random ports are outside of the range of ephemeral ports.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

_RANGE = range(20000, 30000)


class PortReservations:
    """The ports of one cloud; ``close`` releases them."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.gettempdir()) / f"roadstead-ports-{os.getuid()}"
        self._folder.mkdir(exist_ok=True)
        self._locks = ExitStack()

    def reserve(self, wanted: int | None) -> int:
        """Return ``wanted`` when it is free, else another free port."""
        for port in _candidates(wanted):
            lock = (self._folder / str(port)).open("a")
            if _locked(lock) and _free(port):
                self._locks.enter_context(lock)
                return port
            lock.close()
        raise OSError(f"no free port in {_RANGE}")

    def close(self) -> None:
        """Release the ports."""
        self._locks.close()


def _candidates(wanted: int | None) -> Iterator[int]:
    if wanted is not None:
        yield wanted
    yield from random.SystemRandom().sample(_RANGE, 200)


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
