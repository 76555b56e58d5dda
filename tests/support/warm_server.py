"""The process that warm processes come from: it has imported the project, and forks.

``python -m tests.support.warm_server FD [LISTENER]`` reads requests from a socket, and ends with the one who
holds the other end; meanwhile it serves everybody who connects to the listener, too. Each request has a
command, and as descriptors the three standard streams and a socket, on which the server answers with the
process id, and with the exit code when the process has ended.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from pydantic import BaseModel

PACKAGES = ("cli", "handlers", "localcloud", "shared")
USED = (
    "azure.identity",
    "azure.keyvault.secrets",
    "azure.mgmt.containerservice",
    "azure.mgmt.kubernetesconfiguration.extensions",
    "azure.mgmt.kubernetesconfiguration.fluxconfigurations",
    "azure.mgmt.resource.resources",
    "azure.storage.blob",
    "httpcore",
)
"""Client libraries, which the project, or httpx, imports when it needs them."""
LENGTH = struct.Struct("!Q")
STREAMS = 3


@dataclass(frozen=True)
class Command:
    """What a child runs: "-m", a module and arguments; "-c" and a program; or a file and arguments."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    session: bool
    streams: Sequence[int]


class Server:
    """Forks on request, and reports the ends of its children."""

    def __init__(self, control: socket.socket, listener: socket.socket | None) -> None:
        self._control, self._listener = control, listener
        self._others: set[socket.socket] = set()
        self._children: dict[int, socket.socket] = {}
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks

    def serve(self) -> Command | None:
        """Return None when there is nobody left to serve; in a child, return its command."""
        with selectors.DefaultSelector() as selector:
            for readable in filter(None, (self._control, self._woken, self._listener)):
                selector.register(readable, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._woken:
                        self._woken.recv(4096)
                        self._report_ended()
                        continue
                    if key.fileobj is self._listener:
                        other = self._listener.accept()[0]
                        self._others.add(other)
                        selector.register(other, selectors.EVENT_READ, other)
                        continue
                    control = key.data or self._control
                    received = self._receive(control)
                    if received is None:
                        if control is self._control:
                            return None
                        selector.unregister(control)
                        self._others.remove(control)
                        control.close()
                        continue
                    command, status = received
                    pid = os.fork()
                    if pid == 0:
                        self._leave(status)
                        return command
                    for stream in command.streams:
                        os.close(stream)
                    self._children[pid] = status
                    _answer(status, pid)

    def _receive(self, control: socket.socket) -> tuple[Command, socket.socket] | None:
        header, descriptors, _, _ = socket.recv_fds(control, LENGTH.size, STREAMS + 1)
        if not header:
            return None
        with control.makefile("rb", buffering=0) as stream:
            content = io.BufferedReader(stream, 1).read(LENGTH.unpack(header)[0])
        request = json.loads(content)
        return Command(**request, streams=descriptors[:STREAMS]), socket.socket(fileno=descriptors[STREAMS])

    def _report_ended(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._children.pop(pid) as asked:
                _answer(asked, os.waitstatus_to_exitcode(status))

    def _leave(self, status: socket.socket) -> None:
        """Give up, in a child, what is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for end in (self._control, self._woken, self._wake, status, *self._children.values(), *self._others):
            end.close()
        if self._listener is not None:
            self._listener.close()


def _answer(asked: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # who asked has ended, and others are still served
        asked.sendall(f"{number}\n".encode())


def run(command: Command) -> int:
    """Become the process of a command: its streams, environment and folder; return its exit code."""
    for number, stream in enumerate(command.streams):
        os.dup2(stream, number)
        os.close(stream)
    if command.session:
        os.setsid()
    os.environ.clear()
    os.environ.update(command.environment)
    os.chdir(command.folder)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        _run(command.arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - it is written, as the interpreter does it
        traceback.print_exc()
        return 1
    return 0


def _run(arguments: Sequence[str]) -> None:
    first, *rest = arguments
    if first == "-m":
        sys.argv = rest
        sys.modules.pop(rest[0], None)  # it runs again, as the main module
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = [first]
        exec(rest[0], vars(sys.modules["__main__"]))  # noqa: S102 - what somebody asks Python to run
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def end(code: int) -> NoReturn:
    """End as the interpreter does, but leave the memory alone, which is the server's until it is touched."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for kind in model.__subclasses__():
        if kind.__module__.partition(".")[0] in PACKAGES:
            yield kind
        yield from _below(kind)


def load() -> None:
    """Import what the children would import, and build the models of manifests."""
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if not module.name.endswith(("__main__", "worker_process")):  # Microsoft's needs Python 3.13
                importlib.import_module(module.name)
    for name in USED:
        importlib.import_module(name)
    for model in _below(BaseModel):
        model.model_rebuild()  # what waits for the first use of the model is done here
    gc.collect()
    gc.freeze()


def main() -> None:
    """Serve the socket of the command line."""
    load()
    control, *others = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    command = Server(control, others[0] if others else None).serve()
    if command is not None:
        end(run(command))


if __name__ == "__main__":
    main()
