"""``roadstead events``: what happened to a cluster."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from cli.options import Address, Before, ClusterArgument, Limit, before_time, cluster_name
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.render_cluster import events as rendered


def events(
    address: Address,
    name: ClusterArgument,
    *,
    limit: Limit = 50,
    before: Before = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List the events of a cluster, newest first, also after it was deleted."""
    name = cluster_name(name)
    moment = before_time(before)
    with address.connect() as api:
        view = api.events(name, limit=limit, before=moment)

    def table(wide: bool) -> RenderableType:
        listed = rendered(view["events"], datetime.now(UTC), wide=wide)
        older = Text(f"older events: --before {view['next']}", style="dim")
        return Group(listed, older) if view["next"] else listed

    show(view, output, table=table, names=lambda: (f"event/{name}/{event['at']}" for event in view["events"]))
