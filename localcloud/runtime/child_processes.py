"""The processes that make up a local cloud: start, wait until ready, stop.

Each has its own log file and its own session, so that Ctrl-C reaches the supervisor alone, and reads its
standard input, so that it notices when the supervisor has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

_POLL_SECONDS = 0.02
_TAIL_LINES = 15


class PartFailed(Exception):
    """A part ended by itself or did not become ready; the message has the end of its log."""


class ChildProcess(Protocol):
    """What a part needs of ``subprocess.Popen``."""

    pid: int

    @property
    def stdin(self) -> IO[bytes] | None:
        """The other end of the standard input."""

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once it has ended."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


Spawn = Callable[..., ChildProcess]
"""Starts a process: ``subprocess.Popen``, or what takes the same arguments."""


@dataclass(frozen=True)
class ProcessPart:
    """What to run, and the check that it is ready."""

    name: str
    command: Sequence[str]
    ready: Callable[[], bool]


class Child:
    """A running process; its output is appended to the log file."""

    def __init__(
        self, part: ProcessPart, log: Path, environment: Mapping[str, str], spawn: Spawn = subprocess.Popen
    ) -> None:
        self.part, self._log = part, log
        with log.open("ab") as out:
            self._process = spawn(
                part.command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        self.pid = self._process.pid

    def wait_ready(self, seconds: float) -> None:
        """Return when the part answers; raise PartFailed when it ends first, or takes longer."""
        deadline = time.monotonic() + seconds
        while not self.part.ready():
            self.check()
            if time.monotonic() > deadline:
                raise PartFailed(f"{self.part.name} was not ready within {seconds:g} s{self._tail()}")
            time.sleep(_POLL_SECONDS)
        self.check()

    def check(self) -> None:
        """Raise PartFailed when the process has ended."""
        code = self._process.poll()
        if code is not None:
            how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
            raise PartFailed(f"{self.part.name} ended {how}{self._tail()}")

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def stop(self, seconds: float) -> None:
        """Stop the process, by force after so many seconds."""
        self.ask_to_stop()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_input()

    def kill(self) -> None:
        """End the process as ``kill -9`` does."""
        self._process.kill()
        self._process.wait()
        self._close_input()

    def _close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        shown = "".join(f"\n  {line}" for line in lines) or " (it is empty)"
        return f"; the end of {os.path.relpath(self._log)}:{shown}"
