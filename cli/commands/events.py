"""``roadstead events``: what happened to a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import UsageError
from cli.options import (
    DEFAULT_TIMEOUT,
    DEFAULT_URL,
    MAX_EVENTS,
    ClusterArgument,
    KeyFile,
    Timeout,
    Url,
    cluster_name,
    connect,
)
from cli.output import Output, OutputOption, show
from cli.render_cluster import events as rendered


def events(
    name: ClusterArgument,
    *,
    limit: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, max=MAX_EVENTS, help="How many, the newest first.")
    ] = 50,
    before: Annotated[str, typer.Option(metavar="TIME", help="Only older ones.")] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """List the events of a cluster, newest first, also after it was deleted."""
    name = cluster_name(name)
    moment = _moment(before) if before else ""
    with connect(url, key_file, timeout) as api:
        view = api.events(name, limit=limit, before=moment)

    def table(wide: bool) -> RenderableType:
        listed = rendered(view["events"], datetime.now(UTC), wide=wide)
        older = Text(f"older events: --before {view['next']}", style="dim")
        return Group(listed, older) if view["next"] else listed

    show(view, output, table=table, names=lambda: (f"event/{name}/{event['at']}" for event in view["events"]))


def _moment(given: str) -> str:
    """Return a time as the API takes it, UTC if it has no zone; raise UsageError for anything else."""
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise UsageError(f"--before {given[:40]!r} must be a time such as 2026-01-31T12:00:00Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
