"""``roadstead wake``, ``sleep`` and ``postpone``: what happens for once in place of a cluster's schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.act.pause import end_of
from cli.errors import UsageError
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Reason, Timeout, Url, cluster_name, connect
from cli.terminal.output import echo
from shared.app.api import schema

Name = Annotated[str, typer.Argument(metavar="NAME", help="A cluster whose manifest has spec.sleep.")]
Until = Annotated[
    str,
    typer.Option(
        "--until",
        metavar="TIME",
        help="Its end: 2h, or a time such as 2026-01-31T12:00:00Z; by default what the schedule does next.",
    ),
]


def wake(
    name: Name,
    *,
    until: Until = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Start a cluster that sleeps. It is awake until --until, or until its schedule stops it next."""
    with connect(url, key_file, timeout) as api:
        _tell(api.wake(cluster_name(name), end_of(until), _given(reason)), "starts, and is awake")


def sleep(
    name: Name,
    *,
    until: Until = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Stop a cluster that is awake. It sleeps until --until, or until its schedule starts it next."""
    with connect(url, key_file, timeout) as api:
        _tell(api.sleep(cluster_name(name), end_of(until), _given(reason)), "stops, and sleeps")


def postpone(
    name: Name,
    *,
    until: Until = "",
    reason: Reason = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Keep a cluster awake until a time, whatever its schedule says."""
    if not until:
        raise UsageError("give --until: how long the cluster stays awake")
    with connect(url, key_file, timeout) as api:
        _tell(api.postpone(cluster_name(name), end_of(until), _given(reason)), "stays awake")


def _given(reason: str) -> str:
    if not reason.strip():
        raise UsageError("give a --reason: the audit and the events of the cluster show it")
    return reason


def _tell(receipt: schema.SleepReceipt, does: str) -> None:
    echo(f"{receipt['cluster']} {does} until {receipt['until']}")
