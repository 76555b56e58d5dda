"""Reads ``local.settings.json`` and ``host.json`` as the Functions tools read them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOG_LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "information": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "none": logging.CRITICAL + 1,
}
"""The log levels of host.json as Python's."""


class ConfigError(Exception):
    """A file or a setting is missing or wrong; the message names it."""


def read_settings(path: Path) -> dict[str, str]:
    """Return the "Values" of a local.settings.json."""
    content = _read_json(path)
    if content.get("IsEncrypted"):
        raise ConfigError(f"{path}: encrypted settings cannot be read here")
    values = content.get("Values")
    if not isinstance(values, dict):
        raise ConfigError(f'{path}: there is no "Values" object')
    wrong = [name for name, value in values.items() if not isinstance(value, str)]
    if wrong:
        raise ConfigError(f"{path}: values must be strings: {', '.join(wrong)}")
    return values


def apply_settings(values: Mapping[str, str], environ: MutableMapping[str, str]) -> list[str]:
    """Copy the values into the environment; return the names that were set there already, and won."""
    inherited = [name for name, value in values.items() if environ.get(name, value) != value]
    for name, value in values.items():
        environ.setdefault(name, value)
    return inherited


@dataclass(frozen=True)
class ServiceBusConfig:
    """``extensions.serviceBus`` of host.json, seconds; the defaults are the extension's own.

    ``renew_seconds`` is how long the lock of a session, or of a message without one, is renewed since it was
    received. ``accept_seconds`` is not in host.json: how long one wait for a session may take.
    """

    max_concurrent_sessions: int = 8
    max_concurrent_calls: int = 16
    session_idle_seconds: float = 60
    renew_seconds: float = 300
    accept_seconds: float = 20


@dataclass(frozen=True)
class HostConfig:
    """What the development host uses of host.json."""

    route_prefix: str = "api"
    timeout_seconds: float | None = 1800
    """How long an invocation may take; None: no limit."""
    log_levels: Mapping[str, str] = field(default_factory=dict)
    service_bus: ServiceBusConfig = ServiceBusConfig()


def read_host_json(path: Path) -> HostConfig:
    """Return the configuration in a host.json; raise ConfigError when it is not one of version 2.0."""
    content = _read_json(path)
    if content.get("version") != "2.0":
        raise ConfigError(f'{path}: "version" must be "2.0"')
    extensions = content.get("extensions", {})
    timeout = content.get("functionTimeout", "00:30:00")
    bus = extensions.get("serviceBus", {})
    if bus.get("autoCompleteMessages", True) is not True:
        raise ConfigError(f"{path}: the development host always completes messages by itself")
    return HostConfig(
        route_prefix=extensions.get("http", {}).get("routePrefix", "api"),
        timeout_seconds=None if timeout == "-1" else seconds(timeout),
        log_levels=_log_levels(path, content.get("logging", {}).get("logLevel", {})),
        service_bus=ServiceBusConfig(
            max_concurrent_sessions=int(bus.get("maxConcurrentSessions", 8)),
            max_concurrent_calls=int(bus.get("maxConcurrentCalls", 16)),
            session_idle_seconds=seconds(bus.get("sessionIdleTimeout", "00:01:00")),
            renew_seconds=seconds(bus.get("maxAutoLockRenewalDuration", "00:05:00")),
        ),
    )


def _log_levels(path: Path, levels: Mapping[str, str]) -> Mapping[str, str]:
    for category, level in levels.items():
        if level.lower() not in LOG_LEVELS:
            raise ConfigError(f"{path}: {category}: there is no log level {level}")
    return levels


def seconds(span: str) -> float:
    """Return the seconds of a .NET time span, as "00:05:00" or "1.00:00:00.5"."""
    match = re.fullmatch(r"(?:(\d+)\.)?(\d+):(\d\d):(\d\d(?:\.\d+)?)", span)
    if match is None:
        raise ConfigError(f'"{span}" is not a time span; write it as "hh:mm:ss"')
    days, hours, minutes, rest = match.groups()
    return ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(rest)


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """Return ``text`` with each %NAME% replaced by that setting."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environ:
            raise ConfigError(f"%{name}% does not resolve to a value: there is no such setting")
        return environ[name]

    return re.sub(r"%([^%\s]+)%", value, text)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path} is missing") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object")
    return content
