"""Microsoft's worker in a process of its own: ``python -m`` this module, with FD and LEVELS.

``azure_functions_runtime`` is the library that finds and runs the functions of an app in Azure, from Python
3.13 on. A small program calls it with the messages that the host sends by gRPC. This is that program, with a
socket that the host hands over, and it ends with the host.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, TextIO

import azure_functions_runtime as runtime

from localcloud.functions.host_logs import set_up_logging
from localcloud.functions.worker.message_stream import MessageStream
from localcloud.functions.worker.rpc_messages import protos

LIBRARIES = Path(".python_packages/lib/site-packages")
"""Where a package that was built has its libraries, below the folder of the app."""
PROJECT = str(Path(__file__).parents[2])
"""From where this module was imported."""
HANDLERS: dict[str, tuple[str, Callable[[Any], Awaitable[Any]]]] = {
    "worker_init_request": ("worker_init_response", runtime.worker_init_request),
    "functions_metadata_request": ("function_metadata_response", runtime.functions_metadata_request),
    "function_load_request": ("function_load_response", runtime.function_load_request),
    "invocation_request": ("invocation_response", runtime.invocation_request),
}
"""What is called for each message, and the name of its answer."""


class Worker:
    """Answers the host's messages; a function's log names the function that runs in its thread."""

    def __init__(self, stream: MessageStream) -> None:
        self._stream = stream
        self._names: dict[str, str] = {}
        self._running: dict[str, str] = {}

    def running(self) -> str:
        """Return the name of the function that runs in this thread, "" for none."""
        return self._running.get(runtime.invocation_id_cv.get() or "", "")

    async def answer(self, message: Any) -> None:
        """Answer one message of the host."""
        kind = message.WhichOneof("content")
        reply, call = HANDLERS[kind]
        if kind == "invocation_request":
            run = message.invocation_request
            self._running[run.invocation_id] = self._names.get(run.function_id, "")
        request = SimpleNamespace(request=message, properties={"host": "127.0.0.1", "protos": protos})
        answer = await call(request)
        if kind == "functions_metadata_request":
            self._names = {entry.function_id: entry.name for entry in answer.function_metadata_results}
        if kind == "invocation_request":
            self._running.pop(message.invocation_request.invocation_id, None)
        self._stream.send(**{reply: answer})


def serve(connection: socket.socket, levels: Mapping[str, str], log: TextIO) -> NoReturn:
    """Serve the host until it ends. The app is in the current folder, and its package has its libraries."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the host too, which lets invocations end
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.path[:0] = [str(LIBRARIES.resolve()), str(Path.cwd())]
    stream = MessageStream(connection)
    worker = Worker(stream)
    debug = os.environ.get("PYTHON_ENABLE_DEBUG_LOGGING") == "1"
    set_up_logging(log, levels, debug=debug, running=worker.running)
    runtime.start_threadpool_executor()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="worker").start()
    for message in stream.received():
        asyncio.run_coroutine_threadsafe(worker.answer(message), loop)
    os._exit(0)  # what runs is cut off, as when an instance ends


if __name__ == "__main__":
    # The app must find nothing of the project that its package lacks.
    sys.path[:] = [path for path in sys.path if path != PROJECT]
    serve(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]), sys.stderr)
