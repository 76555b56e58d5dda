"""Processes of Python that start warm: each is forked from one that has imported the project already.

Everything else is as ``subprocess`` has it: an own process with its environment, folder, streams and
signals. An import takes a second of a core, and the tests start a thousand processes. The workers of one run
of the tests share the process that forks: see ``share``.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from localcloud.runtime.child_processes import ChildProcess
from tests.support.warm_server import LENGTH

ROOT = Path(__file__).parent.parent.parent
_SHARED = "WARM_PROCESSES"
"""The variable with the address of the process that forks for all workers."""


class WarmProcess:
    """A running process, with the methods of ``subprocess.Popen`` that are used."""

    def __init__(self, status: socket.socket, stdin: IO[bytes] | None) -> None:
        self._status, self.stdin = status, stdin
        self._lines = status.makefile("rb")
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal, if the process has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(self.pid, number)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(self._lines.readline())
            self._lines.close()
            self._status.close()
        return self.returncode


class _Server:
    """The process that forks: the shared one, or one of this process, perhaps with a listener for others."""

    def __init__(self, listener: socket.socket | None = None) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        if listener is None and _SHARED in os.environ:
            self._control = socket.socket(socket.AF_UNIX)
            self._control.connect(os.environ[_SHARED])
        else:
            self._start(listener)
        atexit.register(self.close)

    def _start(self, listener: socket.socket | None) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            passed = [end.fileno() for end in (theirs, listener) if end is not None]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm_server", *map(str, passed)],
                stdin=subprocess.DEVNULL,
                pass_fds=passed,
                cwd=ROOT,
            )

    def start(self, request: Mapping[str, object], streams: Sequence[int]) -> socket.socket:
        """Start a process; return the socket that it is reported on."""
        content = json.dumps(request).encode()
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            header = LENGTH.pack(len(content))
            socket.send_fds(self._control, [header], [*streams, theirs.fileno()])
            self._control.sendall(content)
        return ours

    def close(self) -> None:
        """End the process; what it has started goes on."""
        self._control.close()
        if self._process is not None:
            self._process.wait()


def share() -> None:
    """Start the process that forks for this process and for the processes of tests that it starts."""
    folder = tempfile.TemporaryDirectory(prefix="warm")
    atexit.register(folder.cleanup)
    path = str(Path(folder.name) / "server")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(128)
        _Server(listener)
    os.environ[_SHARED] = path


@cache
def _server() -> _Server:
    return _Server()


def start(
    command: Sequence[str | Path],
    *,
    stdin: int | None = None,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    env: Mapping[str, str],
    cwd: Path | None = None,
    start_new_session: bool = False,
) -> WarmProcess:
    """Start "python -m module" or a script; ``stdin`` is a descriptor, PIPE, or None for nothing."""
    first, *rest = map(str, command)
    arguments = rest if first == sys.executable else [first, *rest]
    own: list[int] = []
    pipe: IO[bytes] | None = None
    if stdin == subprocess.PIPE:
        stdin, write = os.pipe()
        own.append(stdin)
        pipe = os.fdopen(write, "wb", buffering=0)
    elif stdin is None:
        stdin = os.open(os.devnull, os.O_RDONLY)
        own.append(stdin)
    out = stdout if isinstance(stdout, int) else stdout.fileno()
    error = out if stderr == subprocess.STDOUT else stderr if isinstance(stderr, int) else stderr.fileno()
    request = {
        "arguments": arguments,
        "environment": dict(env),
        "folder": str(cwd or Path.cwd()),
        "session": start_new_session,
    }
    try:
        return WarmProcess(_server().start(request, (stdin, out, error)), pipe)
    finally:
        for descriptor in own:
            os.close(descriptor)


def spawn(command: Sequence[str], **options: Any) -> ChildProcess:
    """Start a command as ``subprocess.Popen`` does; what Python runs starts warm."""
    return start(command, **options) if command[0] == sys.executable else subprocess.Popen(command, **options)
