"""Runs the functions of an app in the host's own process, where Microsoft's worker is not installed.

Values are converted by the ``azure.functions`` library, as the worker does.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import azure.functions as func
from azure.functions.http import HttpResponseConverter
from azure.functions.meta import Datum, get_binding_registry

from localcloud.functions.host_config import ConfigError
from localcloud.functions.worker.function_index import (
    Function,
    HttpReply,
    Input,
    Run,
    indexed,
    trigger_binding,
)


@dataclass(frozen=True, eq=False)
class _Context:
    """What a function learns of its run when it asks for its context."""

    function_name: str
    invocation_id: str
    function_directory: str = "."
    thread_local_storage: Any = field(default_factory=threading.local)
    trace_context: Any = None
    """None: the host takes part in no distributed trace."""
    retry_context: Any = None
    """None: none of our functions has a retry policy."""


def import_app(folder: Path) -> func.FunctionApp:
    """Import function_app.py from the folder and return its one FunctionApp."""
    if not (folder / "function_app.py").is_file():
        raise ConfigError(f"{folder} has no function_app.py")
    sys.path.insert(0, str(folder))
    module = importlib.import_module("function_app")
    apps = [value for value in vars(module).values() if isinstance(value, func.FunctionApp)]
    if len(apps) != 1:
        raise ConfigError(f"function_app.py must create one FunctionApp; it has {len(apps)}")
    return apps[0]


def functions_of(app: func.FunctionApp, environ: Mapping[str, str]) -> Sequence[Function]:
    """Return the app's functions with the settings put into their bindings."""
    found = []
    for entry in app.get_functions():
        name, raw = str(entry.get_function_name()), entry.get_raw_bindings()
        call: Callable[..., Any] = entry.get_user_function()
        if inspect.iscoroutinefunction(call):
            raise ConfigError(f"function {name!r}: async functions are not supported by the development host")
        binding = trigger_binding(name, [json.loads(item) for item in raw])
        found.append(indexed(name, raw, environ, _runs(name, call, binding)))
    if not found:
        raise ConfigError("the app has no functions")
    return found


def _runs(name: str, call: Callable[..., Any], binding: Mapping[str, Any]) -> Run:
    converter = get_binding_registry().get(binding["type"])
    wants_context = "context" in inspect.signature(call).parameters

    def run(given: Input, invocation: str) -> HttpReply | None:
        arguments = {binding["name"]: converter.decode(given.value, trigger_metadata=given.metadata)}
        if wants_context:
            arguments["context"] = _Context(name, invocation)
        value = call(**arguments)
        return _reply(value) if binding["type"] == "httpTrigger" else None

    return run


def _reply(value: Any) -> HttpReply:
    """Return the reply for what a function returned; raise TypeError when that is no reply."""
    if not isinstance(value, str | func.HttpResponse):
        raise TypeError(f"an HTTP function must return a str or an HttpResponse, not {type(value).__name__}")
    datum: Datum = HttpResponseConverter.encode(value, expected_type=None)
    if datum.type == "string":
        return text_reply(datum.value)
    parts = datum.value
    return HttpReply(
        int(parts["status_code"].value),
        {name: header.value for name, header in parts["headers"].items()},
        parts["body"].value,
        tuple(m.OutputString() for cookie in parts["cookies"] or () for m in cookie.values()),
    )


def text_reply(text: str) -> HttpReply:
    """Return the host's reply for a function that returned a string."""
    return HttpReply(200, {"content-type": "text/plain; charset=utf-8"}, text.encode())
