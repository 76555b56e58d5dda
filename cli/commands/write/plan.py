"""``roadstead plan``: what the files would change, decided here by the planner's own function.

It only reads. Deletes that were approved at a commit need approval here, because the files are no commit.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.fleet_api.recorded import Against, recorded
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, RepositoryPath, Timeout, Url, connect
from cli.terminal import plan_view
from cli.terminal.output import Output, OutputOption, show
from cli.text import line
from cli.worktree import open_worktree
from shared.fleet.planning.make_plan import make_plan
from shared.fleet.planning.plan import Action, Item, Plan
from shared.fleet.resolve.problems import nearest


def plan(
    path: RepositoryPath = Path(),
    *,
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", metavar="NAME", help="Show this cluster only; may be repeated."),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 3 if there are changes, with 0 if there are none.")
    ] = False,
    output: OutputOption = Output.TABLE,
    empty: Annotated[
        bool, typer.Option("--empty", help="Compare with a fleet without clusters; do not ask the API.")
    ] = False,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Show what the files would change if they were merged.

    Ends with 1 if a manifest is invalid or a change is refused.
    """
    tree = open_worktree(path)
    if empty:
        against = Against("an empty fleet")
    else:
        with connect(url, key_file, timeout) as api:
            against = recorded(tree, api)
    planned = make_plan("", tree.resolve(), against.clusters or {}, now=datetime.now(UTC))
    items = _chosen(planned, [name.removeprefix("cluster/") for name in cluster or ()])
    show(
        plan_view.as_json(planned, items, tree.fleet, against),
        output,
        table=lambda wide: plan_view.table(planned, items, against, wide=wide),
        names=lambda: (f"cluster/{item.cluster}" for item in items if item.action is not Action.UNCHANGED),
    )
    raise typer.Exit(_status(planned, items, report_changes=exit_code))


def _status(planned: Plan, items: list[Item], *, report_changes: bool) -> ExitCode:
    """Return the exit code: 1 for what is invalid or refused, also of clusters that are not shown."""
    if planned.problems or any(item.action in (Action.INVALID, Action.REFUSED) for item in planned.items):
        return ExitCode.FAILED
    changes = any(item.action is not Action.UNCHANGED for item in items)
    return ExitCode.CHANGES if report_changes and changes else ExitCode.OK


def _chosen(planned: Plan, names: list[str]) -> list[Item]:
    """Return the items of these clusters, or all; raise CommandError for an unknown name."""
    items = {item.cluster: item for item in planned.items}
    for name in names:
        if name not in items:
            near = nearest(name, items)
            hint = f"did you mean {near}?" if near else "it is neither in the repository nor recorded"
            raise CommandError(f"there is no cluster {line(name)}; {hint}")
    return [item for item in planned.items if not names or item.cluster in names]
