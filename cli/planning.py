"""``roadstead plan``: what the working tree would do, decided here by the planner's own function.

It only reads. Held deletes that were approved for a commit are shown as held, with that approval: the working
tree is no commit.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typer.exceptions import TyperException

from cli import planview
from cli.errors import CommandFailed, UsageError
from cli.output import console, line, print_json
from cli.recorded import Against, recorded
from cli.validate import Repository
from cli.worktree import open_worktree
from shared.fleet.planning.plan import Action, Item, Plan, make_plan
from shared.fleet.resolve.problems import nearest

CHANGES = 2


class Command(typer.core.TyperCommand):
    """A command whose wrong use is exit status 1, for 2 says that there are changes."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Return the context of one run."""
        try:
            return super().make_context(*args, **options)
        except TyperException as error:
            error.exit_code = 1
            raise


def plan(
    path: Repository = Path(),
    *,
    cluster: Annotated[
        list[str] | None, typer.Option("--cluster", help="Show this cluster alone; may be given again.")
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 0: nothing to do, 2: changes, 1: an error.")
    ] = False,
    output: Annotated[
        planview.Format, typer.Option("--output", "-o", help="table for people, json for scripts.")
    ] = planview.Format.TABLE,
    empty: Annotated[
        bool, typer.Option("--empty", help="Plan against a fleet without clusters; the API is not asked.")
    ] = False,
    url: Annotated[
        str, typer.Option("--url", envvar="ROADSTEAD_URL", help="Address of the function app.")
    ] = "http://127.0.0.1:7071",
    key: Annotated[
        str, typer.Option("--key", envvar="ROADSTEAD_KEY", help="A function key of the app.")
    ] = "",
) -> None:
    """Show what the working tree would do to the fleet if it were merged."""
    try:
        tree = open_worktree(path)
        against = Against("an empty fleet") if empty else recorded(tree, url, key)
        made = make_plan("", tree.resolve(), against.clusters or {}, now=datetime.now(UTC))
        items = chosen(made, cluster or [])
    except UsageError as error:
        raise CommandFailed(str(error)) from error
    if output is planview.Format.JSON:
        print_json(planview.as_json(made, items, tree.fleet, against))
    else:
        console().print(planview.table(made, items, against))
    raise typer.Exit(status(made, items, tell_changes=exit_code))


def status(made: Plan, items: list[Item], *, tell_changes: bool) -> int:
    """Return the exit status: 1 for mistakes and what is refused, also of clusters that are not shown."""
    if made.problems or any(item.action in (Action.INVALID, Action.REFUSED) for item in made.items):
        return 1
    changes = any(item.action is not Action.UNCHANGED for item in items)
    return CHANGES if tell_changes and changes else 0


def chosen(made: Plan, names: list[str]) -> list[Item]:
    """Return the items of these clusters, of all where none is named; raise UsageError for an unknown."""
    items = {item.cluster: item for item in made.items}
    for name in names:
        if name not in items:
            near = nearest(name, items)
            hint = f"did you mean {near}?" if near else "it is neither in the repository nor recorded"
            raise UsageError(f"there is no cluster {line(name)}; {hint}")
    return [item for item in made.items if not names or item.cluster in names]
