"""``roadstead status``: the fleet, or one cluster; once, or until Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import ApiError
from cli.fleet_api.commits import whole_commit
from cli.options import Address, FleetOrCluster, OfEnvironment, WithLabels, cluster_name, commit_id
from cli.terminal.output import Output, OutputOption, console, show

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from cli.fleet_api.client import Api

EVERY_SECONDS = 1.0
AFTER_AN_ERROR = 5.0
SHOWN = 50
"""Clusters on a page."""

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show changes until Ctrl-C.")]


def status(
    address: Address,
    name: FleetOrCluster = "",
    *,
    phase: Annotated[
        str, typer.Option("--phase", metavar="PHASE", help="Only in these phases, such as Failed,Stalled.")
    ] = "",
    environment: OfEnvironment = "",
    location: Annotated[str, typer.Option("--location", metavar="REGION", help="Only in this region.")] = "",
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="Only with names that begin so.")
    ] = "",
    cluster_class: Annotated[str, typer.Option("--class", metavar="NAME", help="Only of this class.")] = "",
    label: WithLabels = "",
    condition: Annotated[
        str,
        typer.Option("--condition", metavar="CONDITIONS", help="Only with conditions, such as Ready=False."),
    ] = "",
    commit: Annotated[
        str, typer.Option("--commit", metavar="COMMIT", help="Only those that have this planned commit.")
    ] = "",
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            metavar="ORDER",
            help="name, phase (what needs attention first), environment, location, version or since; -since "
            "begins at the end.",
        ),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, max=500, help="How many clusters; 50 in a table.")
    ] = 0,
    after: Annotated[
        str, typer.Option("--after", metavar="CURSOR", help="Continue where the last page ended.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Show all clusters, not one page.")] = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Show instead what blocks upgrades, as it was read last.")
    ] = False,
    watch: Watch = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the fleet, or one cluster in detail.

    The fleet: the phase and step of each cluster, what it waits for, and what the newest plan does not carry
    out. A large fleet is shown page by page; json, yaml and name have all clusters. One cluster: also its
    conditions and newest events.
    """
    name = cluster_name(name) if name else ""
    filters = {
        **{"phase": phase, "environment": environment, "location": location},
        **{"prefix": prefix, "class": cluster_class, "label": label, "condition": condition, "sort": sort},
    }
    for_people = output in (Output.TABLE, Output.WIDE)
    whole = everything or not (for_people or limit or after)

    def read(api: Api) -> Any:
        if ready:
            return api.readiness("", [name] if name else [], **filters)
        if name:
            return api.cluster(name)
        if commit:
            filters["commit"] = whole_commit(api, commit_id("--commit", commit))
        return api.fleet(**filters) if whole else api.fleet_page(limit or SHOWN, after, **filters)

    with address.connect() as api:
        if not watch:
            _show(read(api), output)
        elif console().is_terminal and for_people:
            _redraw(lambda: read(api), wide=output is Output.WIDE)
        else:
            _repeat(lambda: read(api), output)


def _show(view: Any, output: Output) -> None:
    show(view, output, table=lambda wide: _rendered(view, wide=wide), names=lambda: _names(view))


def _names(view: Any) -> Iterable[str]:
    clusters = view.get("clusters", [view])
    return (f"cluster/{cluster['name']}" for cluster in clusters)


def _rendered(view: Any, *, wide: bool) -> RenderableType:
    from cli.terminal import render, render_cluster

    now = datetime.now(UTC)
    if "note" in view:
        return render_cluster.readiness(view, now, wide=wide)
    if "clusters" in view:
        return render.fleet(view, now, wide=wide)
    return render_cluster.cluster(view, now, wide=wide)


def _repeat(read: Callable[[], Any], output: Output) -> None:
    """Print the view whenever it has changed."""
    last = None
    while True:
        view = read()
        if view != last:
            _show(view, output)
            sys.stdout.flush()
        last = view
        time.sleep(EVERY_SECONDS)


def _redraw(read: Callable[[], Any], *, wide: bool) -> None:
    """Redraw the view in place, cut to the height of the terminal, and leave its last state behind."""
    from rich.live import Live

    out, view, error = console(), read(), ""
    try:
        with Live(console=out, screen=True, auto_refresh=False) as live:
            while True:
                live.update(_page(out, _rendered(view, wide=wide), error), refresh=True)
                time.sleep(AFTER_AN_ERROR if error else EVERY_SECONDS)
                try:
                    view, error = read(), ""
                except ApiError as failed:
                    error = str(failed)
    finally:
        out.print(_rendered(view, wide=wide))


def _page(out: Console, view: RenderableType, error: str) -> RenderableType:
    """Return as many lines of a view as fit; the last line states what is cut off, and the last error."""
    from rich.console import Group
    from rich.segment import Segments
    from rich.text import Text

    lines = out.render_lines(view, out.options.update(height=None), pad=False, new_lines=True)
    room = out.height - 1
    notes = [f"{len(lines) - room} more lines; make the window taller"] if len(lines) > room else []
    notes += [error] if error else []
    shown = Segments(segment for line in lines[:room] for segment in line)
    note = Text("; ".join(notes), style="red" if error else "dim", no_wrap=True, overflow="ellipsis")
    return Group(shown, note)
