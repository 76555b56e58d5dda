"""``roadstead wake``, ``sleep`` and ``postpone``: what happens for once in place of a cluster's schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from cli.errors import UsageError
from cli.options import Address, NeededReason, cluster_name, end_time
from cli.terminal.output import echo
from cli.times import whole
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


def _order(kind: str, does: str, text: str, *, ends: bool = True) -> Callable[..., None]:
    """Return a command that orders something of a cluster; ``text`` is its help, ``does`` what it shows.

    ``ends``: without --until, the schedule says when it ends.
    """

    def command(
        address: Address,
        name: Name,
        *,
        reason: NeededReason,
        until: Until = "",
    ) -> None:
        if not (until or ends):
            raise UsageError("give --until: no schedule ends this")
        with address.connect() as api:
            body = {"until": end_time(until), "reason": reason}
            receipt = api.act(schema.SleepReceipt, f"clusters/{cluster_name(name)}/{kind}", body)
        echo(f"{receipt['cluster']} {does} until {whole(receipt['until'])}")

    command.__doc__ = text
    return command


wake = _order(
    "wake",
    "starts, and is awake",
    "Start a cluster that sleeps. It is awake until --until, or until its schedule stops it next.",
)
sleep = _order(
    "sleep",
    "stops, and sleeps",
    "Stop a cluster that is awake. It sleeps until --until, or until its schedule starts it next.",
)
postpone = _order(
    "postpone",
    "stays awake",
    "Keep a cluster awake until a time, whatever its schedule says.",
    ends=False,
)
