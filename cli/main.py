"""The ``roadstead`` command."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cli import approve as approving
from cli import render
from cli.client import Api, ApiError
from cli.errors import CommandFailed, UsageError
from cli.explain import explain
from cli.importing import import_cluster
from cli.jobs import dead_letters, events, replay, why
from cli.options import DEFAULT_URL, Key, Output, OutputOption, Url, cluster_at
from cli.output import line
from cli.planning import Command as PlanCommand
from cli.planning import plan
from cli.scaffold import init, new
from cli.schemas import schema
from cli.validate import validate

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Write a fleet of AKS clusters down, and see what Roadstead does with it.",
)
app.command()(validate)
app.command()(explain)
app.command(cls=PlanCommand)(plan)
app.command()(init)
app.add_typer(new, name="new")
app.command(name="import")(import_cluster)
app.command()(schema)
app.command()(why)
app.command()(events)
app.command()(replay)
app.command()(dead_letters)


Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show changes until Ctrl-C.")]


@app.callback()
def _commands() -> None:
    """Write a fleet of AKS clusters down, and see what Roadstead does with it."""


@app.command()
def status(
    name: Annotated[str, typer.Argument(help="A cluster; without it the whole fleet.")] = "",
    *,
    watch: Watch = False,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """Show each cluster's phase, step and what it waits for; with NAME all about one cluster."""
    with Api(url, key) as api:
        if watch:
            _watch(lambda: _look(api, name), output)
        else:
            _print(_look(api, name), output)


def _look(api: Api, name: str) -> dict[str, Any]:
    """Return one cluster, or the whole fleet."""
    return api.get(cluster_at(name)) if name else api.whole("clusters", "clusters")


@app.command()
def plans(*, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, key: Key = "") -> None:
    """List the plans of the last days, newest first: commit, what it does, and its status."""
    with Api(url, key) as api:
        view = api.get("plans")
    if output is Output.JSON:
        _print(view, output)
        return
    Console().print(render.plans(view["plans"], datetime.now(UTC)))


@app.command()
def approve(
    commit: Annotated[str, typer.Argument(help="The commit of the plan, or its beginning.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """Release the deletes that a plan holds: exactly that set, at exactly that commit."""
    with Api(url, key) as api:
        plan = approving.find_plan(api, commit)
        held = approving.held_deletes(plan)
        approving.show(plan, held, Console())
        if not yes and not typer.confirm("Delete them?"):
            raise typer.Exit(1)
        approving.release(api, plan, held)
    Console().print("Approved. Watch it: roadstead status --watch")


def _print(view: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        sys.stdout.write(json.dumps(view, indent=None if not sys.stdout.isatty() else 2) + "\n")
        return
    Console().print(_rendered(view))


def _rendered(view: dict[str, Any]) -> Any:
    now = datetime.now(UTC)
    return render.fleet(view, now) if "clusters" in view else render.cluster(view, now)


def _watch(look: Callable[[], dict[str, Any]], output: Output) -> None:
    """Show changes until Ctrl-C; a JSON line per change, or a live table."""
    last: dict[str, Any] | None = None
    console = Console()
    if output is Output.JSON or not console.is_terminal:
        while True:
            view = look()
            if view != last:
                _print(view, output)
                sys.stdout.flush()
            last = view
            time.sleep(1)
    last_view = look()
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while True:
            live.update(_rendered(last_view), refresh=True)
            time.sleep(1)
            try:
                last_view = look()
            except ApiError as error:
                live.update(Group(_rendered(last_view), Text(str(error), style="red")), refresh=True)
                time.sleep(4)


def main() -> None:
    """Run the command; problems are one line on stderr and exit status 1, or 2 for a wrong use."""
    try:
        app()
    except (ApiError, CommandFailed, UsageError) as error:
        sys.stderr.write(f"roadstead: {line(str(error))}\n")
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
