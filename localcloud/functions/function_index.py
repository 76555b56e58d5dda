"""Finds the functions of a function app, and what each is triggered by."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import azure.functions as func

from localcloud.functions.host_config import ConfigError, substitute


@dataclass(frozen=True)
class HttpTrigger:
    """``route`` without the prefix; no ``methods``: every method."""

    route: str
    methods: tuple[str, ...]


@dataclass(frozen=True)
class TimerTrigger:
    """``schedule`` is a six-field NCRONTAB expression, in UTC."""

    schedule: str
    at_start: bool


@dataclass(frozen=True)
class SessionTrigger:
    """A session-enabled Service Bus queue; ``connection`` is the connection string.

    ``binary`` is whether the function gets the body's bytes, and not a string decoded from them.
    """

    queue: str
    connection: str
    binary: bool


@dataclass(frozen=True)
class QueueTrigger:
    """A Service Bus queue without sessions, as a dead-letter queue; ``connection`` as above."""

    queue: str
    connection: str
    binary: bool


@dataclass(frozen=True)
class Function:
    """One function: what to call, the name of the trigger's parameter, and the trigger."""

    name: str
    call: Callable[..., Any]
    parameter: str
    trigger: HttpTrigger | TimerTrigger | SessionTrigger | QueueTrigger

    @property
    def wants_context(self) -> bool:
        """Whether it takes the invocation's context."""
        return "context" in inspect.signature(self.call).parameters


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
        name = str(entry.get_function_name())
        try:
            found.append(_function(name, entry, environ))
        except ConfigError as error:
            raise ConfigError(f"function {name!r}: {error}") from None
    if not found:
        raise ConfigError("the app has no functions")
    return found


def _function(name: str, entry: Any, environ: Mapping[str, str]) -> Function:
    bindings: list[dict[str, Any]] = entry.get_bindings_dict()["bindings"]
    triggers = [b for b in bindings if b["type"].endswith("Trigger")]
    others = [b["type"] for b in bindings if not b["type"].endswith("Trigger") and b["type"] != "http"]
    if len(triggers) != 1 or others:
        raise ConfigError(f"one trigger and no further bindings are supported, not {others or triggers}")
    binding = triggers[0]
    call: Callable[..., Any] = entry.get_user_function()
    if inspect.iscoroutinefunction(call):
        raise ConfigError("async functions are not supported by the development host")
    return Function(name, call, binding["name"], _trigger(name, binding, environ))


def _trigger(
    name: str, binding: Mapping[str, Any], environ: Mapping[str, str]
) -> HttpTrigger | TimerTrigger | SessionTrigger | QueueTrigger:
    match binding["type"]:
        case "httpTrigger":
            methods = tuple(getattr(m, "value", m).upper() for m in binding.get("methods") or ())
            return HttpTrigger(binding.get("route") or name, methods)
        case "timerTrigger":
            schedule = substitute(binding["schedule"], environ)
            return TimerTrigger(schedule, bool(binding.get("runOnStartup")))
        case "serviceBusTrigger" if binding.get("queueName"):
            connection = environ.get(binding["connection"])
            if not connection:
                raise ConfigError(f"the connection setting {binding['connection']!r} is missing or empty")
            trigger = SessionTrigger if binding.get("isSessionsEnabled") else QueueTrigger
            binary = binding.get("dataType") in (func.DataType.BINARY, func.DataType.BINARY.value)
            return trigger(substitute(binding["queueName"], environ), connection, binary)
        case other:
            raise ConfigError(f"the development host does not run this trigger: {other}")
