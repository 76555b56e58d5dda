"""``roadstead plans`` and ``roadstead log``: what the newest commits do, and which of them clusters lack."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.options import Address
from cli.terminal import render
from cli.terminal.cluster_table import indented
from cli.terminal.output import Output, OutputOption, show
from cli.text import printable
from shared.app.api import schema
from shared.sentences import many, some_of


def log(
    address: Address,
    *,
    environment: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="ENVIRONMENT",
            help="The environment; an empty one has the clusters without any.",
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """List the commits after those that an environment has, up to the head of the branch.

    Newest first, each with the files that it changes, and with the clusters that pull it.
    """
    with address.connect() as api:
        found = api.read(schema.Log, "log", environment=environment.removeprefix("environment/"))
    show(
        found,
        output,
        table=lambda wide: log_view(found, wide=wide),
        names=lambda: (f"commit/{commit['commit']}" for commit in found["commits"]),
    )


NAMES = 3


def log_view(found: schema.Log, *, wide: bool = False) -> RenderableType:
    """Return two lines for each commit, and one for the clusters that pull it."""
    return Group(*_lines(printable(found), most=1000 if wide else NAMES))


def _lines(found: schema.Log, *, most: int) -> Iterator[RenderableType]:
    behind = max((pulled["behind"] or 0 for pulled in found["pulled"]), default=0)
    distance = f"{many(behind, 'commit')} up to " if behind else ""
    head = f"{found['branch']} at {found['head'][:8]}"
    yield Text(f"{found['environment']}: {distance}{head}", style="bold")
    shown = len(found["commits"])
    for number in range(shown + 1):
        yield from (_place(pulled, most) for pulled in found["pulled"] if pulled["behind"] == number)
        if number < shown:
            commit = found["commits"][number]
            yield Text(f"{commit['commit'][:8]}  {commit['title']}")
            files = some_of(commit["files"], most, total=commit["fileCount"]) or "changes no file"
            yield indented(Text(files, style="dim"), 10)
    if found["more"]:
        yield Text(f"{many(found['more'], 'older commit')} not shown", style="yellow")
    others = (pulled for pulled in found["pulled"] if pulled["behind"] is None or pulled["behind"] > shown)
    yield from (_place(pulled, most) for pulled in others)


def _place(pulled: schema.PulledCommit, most: int) -> RenderableType:
    """Return which clusters pull a commit, and how far they are where no commit shows it."""
    count = pulled["clusterCount"]
    who = f"{many(count, 'cluster')}: {some_of(pulled['clusters'], most, total=count)}"
    if not pulled["commit"]:
        return indented(
            Text(f"Flux pulls another source, or follows its branch by itself, on {who}", style="yellow"), 2
        )
    unverified = f"; {pulled['unverifiedCount']} not verified" * (pulled["unverifiedCount"] > 0)
    unknown = "; over 250 commits behind, or not on the branch" * (pulled["behind"] is None)
    style = "yellow" if unknown or unverified else "green"
    return Text(f"{pulled['commit'][:8]}  {who}{unverified}{unknown}", style=style)


def plans(address: Address, *, output: OutputOption = Output.TABLE) -> None:
    """List the newest plans: at most 50 of the last 30 days, each with its changes and its commit status."""
    with address.connect() as api:
        view = api.plans()
    show(
        view,
        output,
        table=lambda wide: render.plans(view, datetime.now(UTC), wide=wide),
        names=lambda: (f"plan/{plan['commit']}" for plan in view["plans"]),
    )
