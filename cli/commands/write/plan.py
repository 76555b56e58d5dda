"""``roadstead plan``: what the files would change, decided here by the planner's own function.

It only reads. Deletes that were approved at a commit need approval here, because the files are no commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.charts import chart_changes
from cli.errors import CommandError, ExitCode, UsageError
from cli.fleet_api.client import Api
from cli.fleet_api.recorded import Against, committed, recorded
from cli.options import Address, RepositoryPath
from cli.platform import Platform, platform_of
from cli.terminal import plan_view
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.platform_view import NO_PLATFORM, PlatformView
from cli.worktree import Worktree, open_commit, open_worktree
from shared.app.api.schema import OFFERED_CLUSTERS, OffersView
from shared.frozen import replace
from shared.language.desired import Desired
from shared.language.model.fleet_rules import Guards
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.list_price import ListPrice, list_price
from shared.plan.make_plan import make_plan
from shared.plan.plan import ASKING_AZURE, Action, Item, Plan
from shared.platform.changes.guards import judge_all
from shared.platform.changes.report import sections_of
from shared.platform.inventory import Inventory
from shared.platform.validation import fault_of
from shared.rollouts.of_plan import expected_rollout, held_now
from shared.rollouts.shut import calendar_of
from shared.sentences import many


def plan(
    address: Address,
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
    commit: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="COMMIT",
            help="Compare with a commit of the repository, by any name of git's; do not ask the API.",
        ),
    ] = "",
    empty: Annotated[
        bool, typer.Option("--empty", help="Compare with a fleet without clusters; do not ask the API.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Compare with Azure as it is now, instead of what is recorded.")
    ] = False,
) -> None:
    """Show what the files would change if they were merged.

    Ends with 1 if a manifest is invalid or a change is refused.
    """
    if sum((live, empty, bool(commit))) > 1:
        raise UsageError(
            "--live compares with Azure, --against with a commit, --empty with nothing; give one of them"
        )
    tree, names = open_worktree(path), [name.removeprefix("cluster/") for name in cluster or ()]
    if live:
        with address.connect() as api:
            from cli.commands.write.plan_live import show_live

            raise typer.Exit(show_live(tree, names, api, output, report_changes=exit_code))
    desired, now = tree.resolve(), datetime.now(UTC)
    platform, lacking = NO_PLATFORM, tuple[str, ...]()
    with ExitStack() as stack:
        app = None if empty or commit else stack.enter_context(address.connect())
        if commit:
            base = open_commit(path, commit)
            against, platform = committed(base), _platform(base, tree, desired, names)
        else:
            against = Against("an empty fleet") if app is None else recorded(tree, app)
        desired = against.pins(desired, tree)
        planned = make_plan(
            "",
            desired,
            against.clusters or {},
            now=now,
            replacing=against.replacing,
            unreadable=against.unreadable,
        )
        if app is not None:
            lacking = what_azure_lacks(plan_view.chosen_items(planned, names), desired, app)
    platform = replace(platform, followed=against.sources(desired))
    planned = replace(planned, problems=(*planned.problems, *platform.problems))
    items, rollout = plan_view.chosen_items(planned, names), expected_rollout(planned, desired, now)
    calendar = calendar_of(desired.rollout)
    price = _list_price(items, desired, against, tree)
    held = held_now(planned, desired.clusters, against.clusters or {}, calendar, now)
    show(
        plan_view.as_json(
            planned,
            items,
            tree.fleet,
            against,
            rollout,
            held,
            platform,
            lacking,
            price=price,
            today=now.date(),
        ),
        output,
        table=lambda wide: plan_view.table(
            planned,
            items,
            against,
            rollout,
            held,
            platform=platform,
            lacking=lacking,
            price=price,
            today=now.date(),
            wide=wide,
        ),
        names=lambda: (f"cluster/{item.cluster}" for item in items if item.action is not Action.UNCHANGED),
    )
    raise typer.Exit(_status(planned, items, platform, report_changes=exit_code))


def _platform(base: Worktree, tree: Worktree, desired: DesiredFleet, names: list[str]) -> PlatformView:
    """Return what changes of what Flux applies to the clusters of a commit, or to those with these names."""
    old, new = platform_of(base, base.resolve()), platform_of(tree, desired)
    guards = desired.guards or Guards()
    changes = judge_all(old.inventories, new.inventories, guards.delete_budget.objects)
    chosen = {name: change for name, change in changes.items() if not names or name in names}

    def chosen_of(platform: Platform) -> Mapping[str, Inventory]:
        return {name: found for name, found in platform.inventories.items() if name in chosen}

    known = {fault_of(note) for note in old.notes}  # whose lines may have moved
    environments = {name: desired.clusters[name].environment for name in chosen}
    return PlatformView(
        sections_of(chosen, environments, (*desired.environments,)),
        tuple(map(str, new.problems)),
        tuple(str(note) for note in new.notes if fault_of(note) not in known),
        new.builder,
        "; ".join(dict.fromkeys(filter(None, (old.note, new.note)))),
        tuple(chart_changes((chosen_of(old), base), (chosen_of(new), tree))),
    )


def _list_price(
    items: list[Item], desired: DesiredFleet, against: Against, tree: Worktree
) -> ListPrice | None:
    """Return by how much the items change the list price, by the price file on disk."""
    recorded = {name: Desired(known.document) for name, known in (against.clusters or {}).items()}
    return list_price(items, desired.clusters, recorded, tree.prices())


def _status(planned: Plan, items: list[Item], platform: PlatformView, *, report_changes: bool) -> ExitCode:
    """Return the exit code: 1 for what is invalid or refused, also of clusters that are not shown."""
    if planned.problems or any(item.action in (Action.INVALID, Action.REFUSED) for item in planned.items):
        return ExitCode.FAILED
    if any(section.state == "refused" for section in platform.sections):
        return ExitCode.FAILED
    changes = bool(platform.sections) or any(item.action is not Action.UNCHANGED for item in items)
    return ExitCode.CHANGES if report_changes and changes else ExitCode.OK


def what_azure_lacks(items: Sequence[Item], desired: DesiredFleet, api: Api) -> tuple[str, ...]:
    """Return a sentence for each thing that Azure does not have; also where the app does not say."""
    touched = (desired.clusters.get(item.cluster) for item in items if item.action in ASKING_AZURE)
    asked = [cluster for cluster in touched if cluster is not None and not cluster.is_attached]
    if not asked:
        return ()
    documents = [
        {"name": cluster.name, "spec": cluster.document()["spec"], "adopt": cluster.adopt}
        for cluster in asked
    ]
    try:
        short = api.act(OffersView, "offers", {"clusters": documents[:OFFERED_CLUSTERS]})["short"]
    except CommandError as error:
        return (f"what Azure has is unknown: {error}",)
    more = len(asked) - OFFERED_CLUSTERS
    return (*short, *([f"Azure was not asked about {many(more, 'more cluster')}"] if more > 0 else ()))
