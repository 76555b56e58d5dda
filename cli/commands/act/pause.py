"""``roadstead pause`` and ``resume``: stop what the app starts by itself, and start it again."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import Address, NeededReason, Reason, end_time
from cli.terminal.output import echo
from shared.app.api import schema

Until = Annotated[
    str, typer.Option("--until", metavar="TIME", help="Its end: 2h, or a time such as 2026-01-31T12:00:00Z.")
]


def pause(address: Address, *, reason: NeededReason, until: Until = "") -> None:
    """Stop everything that the app starts by itself: jobs, deletes, rollouts, corrections, pull requests.

    A step that runs ends, and so does an operation that Azure has accepted. Commits are planned, and wait.
    It ends at --until, or with roadstead resume.
    """
    with address.connect() as api:
        receipt = api.act(schema.PauseReceipt, "pause", {"reason": reason, "until": end_time(until)})
    echo(f"paused until {receipt['until'] or 'roadstead resume'}")


def resume(address: Address, *, reason: Reason = "") -> None:
    """End a pause. What waited starts now; a delete that needs an approval still does."""
    with address.connect() as api:
        api.act(schema.PauseReceipt, "resume", {"reason": reason})
    echo("resumed: what waited starts within a minute; see roadstead status")
