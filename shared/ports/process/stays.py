"""Waits inside an invocation: few at a time, so that other sessions of the process are served meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 8
"""Half of ``maxConcurrentSessions`` in host.json."""


class Stays:
    """The steps of this process that wait in their message. Safe to share between threads."""

    def __init__(self, most: int = MOST) -> None:
        self._free = threading.Semaphore(most)

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place while the context lasts; yield whether there was one."""
        taken = self._free.acquire(blocking=False)
        try:
            yield taken
        finally:
            if taken:
                self._free.release()
