"""What the functions of an app are triggered by, read from the bindings that their worker reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azure.functions.meta import Datum

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


Trigger = HttpTrigger | TimerTrigger | SessionTrigger | QueueTrigger


@dataclass(frozen=True)
class Input:
    """What the host gives to an invocation: the trigger's value, and its metadata."""

    value: Datum
    metadata: Mapping[str, Datum] = field(default_factory=dict)


@dataclass(frozen=True)
class HttpReply:
    """What an HTTP function returned; ``cookies`` are whole Set-Cookie headers."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()


Run = Callable[[Input, str], HttpReply | None]
"""Runs a function with its input and the invocation's id; raises what the function raised."""


@dataclass(frozen=True)
class Function:
    """One function: what it is triggered by, and how its worker runs it."""

    name: str
    trigger: Trigger
    run: Run


def trigger_binding(name: str, bindings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the one trigger among the bindings of a function; raise ConfigError for any other binding."""
    triggers = [binding for binding in bindings if binding["type"].endswith("Trigger")]
    others = [
        binding["type"] for binding in bindings if binding not in triggers and binding["type"] != "http"
    ]
    if len(triggers) != 1 or others:
        found = others or [binding["type"] for binding in triggers]
        raise ConfigError(
            f"function {name!r}: one trigger and no further bindings are supported, not {found}"
        )
    return triggers[0]


def indexed(name: str, raw_bindings: Sequence[str], environ: Mapping[str, str], run: Run) -> Function:
    """Return a function with the settings put into its bindings, each of which is a JSON object."""
    binding = trigger_binding(name, [json.loads(raw) for raw in raw_bindings])
    try:
        return Function(name, _trigger(name, binding, environ), run)
    except ConfigError as error:
        raise ConfigError(f"function {name!r}: {error}") from None


def _trigger(name: str, binding: Mapping[str, Any], environ: Mapping[str, str]) -> Trigger:
    match binding["type"]:
        case "httpTrigger":
            return HttpTrigger(binding.get("route") or name, tuple(binding.get("methods") or ()))
        case "timerTrigger":
            schedule = substitute(binding["schedule"], environ)
            return TimerTrigger(schedule, bool(binding.get("runOnStartup")))
        case "serviceBusTrigger" if binding.get("queueName"):
            connection = environ.get(binding["connection"])
            if not connection:
                raise ConfigError(f"the connection setting {binding['connection']!r} is missing or empty")
            trigger = SessionTrigger if binding.get("isSessionsEnabled") else QueueTrigger
            binary = binding.get("dataType") == "BINARY"
            return trigger(substitute(binding["queueName"], environ), connection, binary)
        case other:
            raise ConfigError(f"the development host does not run this trigger: {other}")
