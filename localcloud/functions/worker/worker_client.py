"""The host's side of Microsoft's worker: starts it, asks for the functions, and sends invocations."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, TextIO

from azure.functions.meta import Datum

from localcloud.functions.host_config import ConfigError
from localcloud.functions.worker.function_index import Function, HttpReply, Input, indexed, trigger_binding
from localcloud.functions.worker.in_process import text_reply
from localcloud.functions.worker.invocations import FailedElsewhere
from localcloud.functions.worker.message_stream import MessageStream
from localcloud.functions.worker.rpc_messages import protos

START_SECONDS = 120.0
ENDED = "the process of Microsoft's worker has ended"
PROJECT = Path(__file__).parents[2]


def installed() -> bool:
    """Return whether this Python has Microsoft's worker library."""
    return importlib.util.find_spec("azure_functions_runtime") is not None


def forked(folder: Path, levels: Mapping[str, str], log: TextIO) -> socket.socket:
    """Start the worker of this Python, which has imported what the app needs; return its connection."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        from localcloud.functions.worker.worker_process import (
            serve,  # the library is not there for each Python
        )

        ours.close()
        os.chdir(folder)
        serve(theirs, levels, log)
    theirs.close()
    return ours


def started(python: str, folder: Path, levels: Mapping[str, str], log: TextIO) -> socket.socket:
    """Start the worker of another Python; return its connection."""
    ours, theirs = socket.socketpair()
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [
        python,
        "-m",
        "localcloud.functions.worker.worker_process",
        str(theirs.fileno()),
        json.dumps(levels),
    ]
    with theirs:
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stderr=log,
            pass_fds=[theirs.fileno()],
        )
    return ours


class WorkerClient:
    """A worker for the app in a folder; it ends with this process."""

    def __init__(self, connection: socket.socket, folder: Path) -> None:
        self._folder = folder
        self._stream = MessageStream(connection)
        self._waiting: dict[str, Future[Any]] = {}
        self._ended = False
        self._lock = threading.Lock()
        threading.Thread(target=self._receive, daemon=True, name="worker-messages").start()

    def functions(self, environ: Mapping[str, str]) -> Sequence[Function]:
        """Return what the worker found in the app, with the settings put into the bindings.

        Raise ConfigError for an app that it cannot load.
        """
        try:
            return self._functions(environ)
        except FailedElsewhere as error:
            raise ConfigError(f"{error}: see above") from error

    def _functions(self, environ: Mapping[str, str]) -> Sequence[Function]:
        answer = self._ask("worker_init_response", worker_init_request=self._init_request())
        _check(answer.result)
        request = protos.FunctionsMetadataRequest(function_app_directory=str(self._folder))
        found = self._ask("function_metadata_response", functions_metadata_request=request)
        _check(found.result)
        if not found.function_metadata_results:
            raise ConfigError("the app has no functions")
        return [self._function(entry, environ) for entry in found.function_metadata_results]

    def _init_request(self) -> Any:
        return protos.WorkerInitRequest(host_version="4", function_app_directory=str(self._folder))

    def _function(self, entry: Any, environ: Mapping[str, str]) -> Function:
        request = protos.FunctionLoadRequest(function_id=entry.function_id, metadata=entry)
        _check(self._ask(entry.function_id, function_load_request=request).result)
        raw = list(entry.raw_bindings)
        binding = trigger_binding(entry.name, [json.loads(item) for item in raw])
        return indexed(entry.name, raw, environ, partial(self._run, entry.function_id, binding["name"]))

    def _run(self, function_id: str, parameter: str, given: Input, invocation: str) -> HttpReply | None:
        request = protos.InvocationRequest(
            invocation_id=invocation,
            function_id=function_id,
            input_data=[protos.ParameterBinding(name=parameter, data=_typed(given.value))],
            trigger_metadata={name: _typed(value) for name, value in given.metadata.items()},
        )
        answer = self._ask(invocation, invocation_request=request)
        _check_run(answer.result)
        return _reply(answer.return_value) if answer.HasField("return_value") else None

    def _ask(self, key: str, **content: Any) -> Any:
        """Send a message and return its answer, which is known by its kind, a function or an invocation."""
        future: Future[Any] = Future()
        with self._lock:
            if self._ended:
                raise FailedElsewhere(ENDED)
            self._waiting[key] = future
        self._stream.send(**content)
        return future.result(None if "invocation_request" in content else START_SECONDS)

    def _receive(self) -> None:
        for message in self._stream.received():
            kind = message.WhichOneof("content")
            answer = getattr(message, kind)
            key = {"invocation_response": "invocation_id", "function_load_response": "function_id"}.get(kind)
            self._answered(getattr(answer, key) if key else kind).set_result(answer)
        with self._lock:
            lost, self._waiting, self._ended = self._waiting, {}, True
        for future in lost.values():
            future.set_exception(FailedElsewhere(ENDED))

    def _answered(self, key: str) -> Future[Any]:
        with self._lock:
            return self._waiting.pop(key)


def _check(result: Any) -> None:
    """Raise ConfigError with what the worker says of an app that it cannot load."""
    if result.status != protos.StatusResult.Success:
        print(result.exception.stack_trace, file=sys.stderr)
        raise ConfigError(result.exception.message)


def _check_run(result: Any) -> None:
    if result.status != protos.StatusResult.Success:
        raise FailedElsewhere(result.exception.stack_trace.rstrip() or result.exception.message)


def _typed(datum: Datum) -> Any:
    if datum.type != "http":
        return protos.TypedData(**{str(datum.type): datum.value})
    parts = datum.value
    return protos.TypedData(
        http=protos.RpcHttp(
            method=parts["method"].value,
            url=parts["url"].value,
            body=_typed(parts["body"]),
            **{
                field: {name: value.value for name, value in parts[field].items()}
                for field in ("headers", "query", "params")
            },
        )
    )


def _reply(data: Any) -> HttpReply:
    if data.WhichOneof("data") == "string":
        return text_reply(data.string)
    http = data.http
    return HttpReply(
        int(http.status_code),
        dict(http.headers),
        getattr(http.body, http.body.WhichOneof("data") or "bytes"),
        tuple(map(_cookie, http.cookies)),
    )


def _cookie(cookie: Any) -> str:
    """Return the Set-Cookie header that the host writes for a cookie."""
    jar: SimpleCookie = SimpleCookie()
    jar[cookie.name] = cookie.value
    morsel = jar[cookie.name]
    if cookie.HasField("domain"):
        morsel["domain"] = cookie.domain.value
    if cookie.HasField("path"):
        morsel["path"] = cookie.path.value
    if cookie.HasField("expires"):
        at = datetime.fromtimestamp(cookie.expires.value.seconds, UTC)
        morsel["expires"] = f"{at:%a, %d %b %Y %H:%M:%S GMT}"
    if cookie.HasField("max_age"):
        morsel["max-age"] = int(cookie.max_age.value)
    morsel["secure"] = cookie.secure.value
    morsel["httponly"] = cookie.http_only.value
    if cookie.same_site in (1, 2):
        morsel["samesite"] = ("Lax", "Strict")[cookie.same_site - 1]
    return str(morsel.OutputString())
