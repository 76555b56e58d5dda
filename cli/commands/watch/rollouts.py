"""``roadstead rollout list``, ``show`` and ``watch``: how far rollouts are."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli.errors import CommandError, NoAnswer
from cli.fleet_api.polling import polled
from cli.fleet_api.rollout_commit import commit_of
from cli.options import Address, commit_id, seconds
from cli.terminal.output import Output, OutputOption, echo, show
from cli.terminal.rollout_view import rollout_view, rollouts_view
from cli.text import line

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


Commit = Annotated[
    str, typer.Argument(metavar="COMMIT", help="A commit (default: the newest with a rollout).")
]


def rollouts(address: Address, *, output: OutputOption = Output.TABLE) -> None:
    """List the newest rollouts."""
    with address.connect() as api:
        found = api.rollouts()
    show(
        found,
        output,
        table=lambda _: rollouts_view(found["rollouts"], datetime.now(UTC)),
        names=lambda: (f"rollout/{rollout['commit']}" for rollout in found["rollouts"]),
    )


def rollout(address: Address, commit: Commit = "", *, output: OutputOption = Output.TABLE) -> None:
    """Show the stages of a rollout, and what its clusters wait for."""
    with address.connect() as api:
        found = api.rollout(_whole(api, commit))
    show(
        found,
        output,
        table=lambda _: rollout_view(found, datetime.now(UTC)),
        names=lambda: (f"cluster/{waiting['cluster']}" for waiting in found["waiting"]),
    )


def watch(
    address: Address,
    commit: Commit = "",
    *,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="When to give up, such as 90s, 30m or 2h.")
    ] = "24h",
) -> None:
    """Follow a rollout until it has ended: a line whenever it gets further.

    Ends with 0 if it has completed without a failure, with 1 otherwise, or when the time is up.
    """
    until, last = time.monotonic() + seconds(timeout), ""
    with address.connect() as api:
        whole = _whole(api, commit)
        for found in polled(lambda: api.rollout(whole), until):
            now = str(found) if isinstance(found, NoAnswer) else found["progress"]
            if now != last:
                last = now
                echo(Text(line(f"{datetime.now(UTC):%H:%M:%S}  {last}")))
            if not isinstance(found, NoAnswer) and found["endedAt"] is not None:
                if found["state"] != "Completed":
                    raise CommandError(f"the rollout of {whole[:8]} ended: {found['state']}")
                return
    raise CommandError(f"the rollout of {whole[:8]} has not ended after {timeout}")


def _whole(api: Api, commit: str) -> str:
    start = commit_id("COMMIT", commit.removeprefix("rollout/")) if commit else ""
    return commit_of(api, start, under_way=False)
