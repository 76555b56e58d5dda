"""A plan for a terminal and for scripts: first what is not carried out, then what destroys, then the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cli.errors import CommandError
from cli.fleet_api.recorded import Against
from cli.terminal.cluster_table import action, indented
from cli.terminal.platform_view import NO_PLATFORM, PlatformView
from cli.terminal.render import few, to_approve
from cli.text import line
from shared.app.api import schema
from shared.app.api.parts import plan_part
from shared.app.api.views.plans import list_price_view, plan_item
from shared.app.api.views.rollouts import as_object
from shared.azure.changes.field_effects import Effect
from shared.language.resolve.problems import nearest
from shared.plan.list_price import ListPrice, changes_of, details_of, headline
from shared.plan.plan import Action, Item, Plan
from shared.rollouts.estimate import (
    Durations,
    at_once,
    describe_bounds,
    describe_estimate,
    describe_final,
    estimate,
    final_gate,
    groups_of,
    is_one_step,
    work_of,
)
from shared.rollouts.rollout import Rollout

_ORDER = (
    Action.REFUSED,
    Action.INVALID,
    Action.ON_HOLD,
    Action.DELETE,
    Action.REBUILD,
    Action.RELEASE,
    Action.UPDATE,
    Action.CREATE,
    Action.ADOPT,
    Action.RETRY,
    Action.UNCHANGED,
)
_STYLE = {
    Action.REFUSED: "bold red",
    Action.INVALID: "bold red",
    Action.ON_HOLD: "yellow",
    Action.DELETE: "bold magenta",
    Action.REBUILD: "bold magenta",
    Action.RELEASE: "cyan",
    Action.UPDATE: "cyan",
    Action.CREATE: "green",
    Action.ADOPT: "green",
}
_DESTRUCTION = {
    Effect.POOL_DELETED: "deletes nodes",
    Effect.NODES_DELETED: "deletes nodes",
    Effect.REPLACEMENT: "replaces nodes",
    Effect.NAMESPACES_DELETED: "deletes namespaces",
}
_DISRUPTION = {
    Effect.REIMAGED: "reimages nodes",
    Effect.EGRESS: "changes outbound addresses",
    Effect.INTERRUPTED: "interrupts it shortly",
    Effect.NODES_STOPPED: "stops nodes",
    Effect.SLEEPS: "stops it",
    Effect.POOLS_SLEEP: "stops its User pools",
}
_NOTED = (*_DISRUPTION, Effect.NEVER_LOWERED)
_MARGIN = 15


def destruction(item: Item) -> str:
    """Return what the item removes, now or once it is approved; "" for nothing."""
    if item.rebuilds:
        return "deletes the cluster, and creates it again"
    if item.releases:
        return ""
    if item.action is Action.DELETE or (item.needs_approval and not item.retained):
        return "deletes the cluster"
    effects = _effects(item)
    return ", ".join(dict.fromkeys(text for effect, text in _DESTRUCTION.items() if effect in effects))


def disruption(item: Item) -> str:
    """Return what the item does to nodes of pools that stay, or to traffic, "" for nothing."""
    effects = _effects(item)
    return ", ".join(text for effect, text in _DISRUPTION.items() if effect in effects)


def _effects(item: Item) -> Set[str]:
    return set() if item.not_carried_out else {change.effect for change in item.changes}


def table(
    plan: Plan,
    items: Sequence[Item],
    against: Against,
    rollout: Rollout | None = None,
    held: Sequence[Item] = (),
    *,
    platform: PlatformView = NO_PLATFORM,
    lacking: Sequence[str] = (),
    price: ListPrice | None = None,
    today: date = date.min,
    wide: bool = False,
) -> RenderableType:
    """Return the plan for people; clusters without a change are only counted, unless ``wide``.

    ``platform`` is what changes of what Flux applies, and ``lacking`` what Azure does not have.
    ``price`` is by how much the list price changes, as of ``today``.
    """
    counts = Counter(_action(item) for item in sorted(items, key=_rank))
    summary = ", ".join(f"{number} {name}" for name, number in counts.items()) or "no clusters"
    parts: list[RenderableType] = [Text(f"Compared with {against.description}: {summary}", style="bold")]
    parts += [Text(note, style="yellow") for note in _notes(against)]
    if plan.problems:
        parts.append(Text("\nInvalid manifests:", style="bold red"))
        parts += [indented(Text(line(problem)), 2) for problem in plan.problems]
    shown = [item for item in items if wide or item.action is not Action.UNCHANGED]
    for same in _together(shown):
        parts += [Text(""), *_group(same)]
    parts.append(platform)
    if lacking:
        parts.append(Text("\nWhat Azure has:", style="bold yellow"))
        parts += [indented(Text(line(sentence)), 2) for sentence in lacking]
    parts += _list_price(price, today, wide=wide)
    return Group(*parts, *_stages(rollout, against.durations), *_held(held, {item.cluster for item in items}))


def _list_price(price: ListPrice | None, today: date, *, wide: bool) -> Iterator[RenderableType]:
    """Yield by how much the list price changes; what it counts and what not where there is room."""
    if price is None:
        return
    head = headline(price, today)
    yield Text(f"\n{head[0].upper()}{line(head[1:])}", style="yellow" if price.problem else "bold")
    for clusters, change in changes_of(price):
        yield indented(Text(f"{line(clusters)}: {change}"), 2)
    details = [*details_of(price)]
    shown = details if wide else [detail for detail in details if not detail.startswith("not counted")]
    yield from (indented(Text(line(detail)), 2) for detail in shown)


def _held(held: Sequence[Item], shown: Set[str]) -> Iterator[RenderableType]:
    """Yield what would wait for the end of a freeze, or for a change window, if it were merged now."""
    lines = [f"{item.cluster}: {item.hold.cause}" for item in held if item.hold and item.cluster in shown]
    if lines:
        yield Text("\nFreezes and change windows:", style="bold")
    yield from (indented(Text(line(text)), 2) for text in lines)


def _stages(rollout: Rollout | None, durations: Durations) -> Iterator[RenderableType]:
    """Yield the stages in which the changes would reach the clusters, and where approvals are asked for."""
    groups = list(groups_of(rollout)) if rollout else []
    if rollout is None or is_one_step(rollout, groups):
        return
    named = f", strategy {rollout.choice.name}" if rollout.choice.name else ""
    yield Text(f"\nRollout{named}:", style="bold")
    for group in groups:
        if group.number == 0:
            head = Text(f"stage {group.stage.name}")
            head.append(f"  {group.asking}" if group.asking else "", style="yellow")
            yield indented(head, 2)
        bounds = f"group {group.number + 1} ({describe_bounds(group)}): "
        yield indented(Text(f"{bounds}{few(group.clusters)}"), 4)
    if gate := final_gate(rollout):
        yield indented(Text("after the last stage").append(f"  {describe_final(gate)}", style="yellow"), 2)
    if at_once(rollout):
        yield indented(Text(f"at once: {few(at_once(rollout))}"), 2)
    found = estimate(rollout.choice.kind, work_of(groups), durations)
    yield indented(Text(f"duration: {describe_estimate(found)}"), 2)


def _action(item: Item) -> str:
    return action(plan_part(item))


def _notes(against: Against) -> Iterator[str]:
    """Yield what is to be known, which deletes of the newest plan need approval, and which were approved."""
    yield from against.notes
    commit, deletes = against.commit, against.deletes
    if deletes.needs_approval:
        yield to_approve(
            commit, deletes.needs_approval, releases=len(against.attached(deletes.needs_approval))
        )
    if deletes.approved:
        by, names = line(deletes.by), few(deletes.approved)
        what = "removal" if against.attached(deletes.approved) else "delete"
        yield f"{by} approved the {what} of {names} at {commit[:8]}, for that commit only ({deletes.at})"


def _rank(item: Item) -> int:
    return _ORDER.index(item.action)


def _together(items: Sequence[Item]) -> Sequence[Sequence[Item]]:
    """Return the items as they are shown: those to which the same happens for the same reason together.

    Within an action, those with more to show than it come first.
    """
    found: dict[object, list[Item]] = {}
    for item in sorted(items, key=lambda item: (_rank(item), not _detailed(item), item.cluster)):
        what = (item.reason, item.changes) if _detailed(item) else ()
        found.setdefault((item.action, what), []).append(item)
    return list(found.values())


def _detailed(item: Item) -> bool:
    """Return whether there is more to show than the action; the problems of invalid manifests stand above."""
    return item.action is not Action.INVALID and bool(item.reason or item.changes)


def _group(items: Sequence[Item]) -> Iterator[RenderableType]:
    """Yield a line for each cluster, and then the reason or the changes that they share."""
    for item in items:
        style = _STYLE.get(item.action, "")
        head = Text.assemble((f"{_action(item):<{_MARGIN}}", style), (item.cluster, "bold"))
        if item.releases:
            head.append("  releases the cluster: what runs there stays")
        if destruction(item):
            head.append(f"  {destruction(item)}", style="bold red")
        if disruption(item):
            head.append(f"  {disruption(item)}", style="yellow")
        yield head
    item = items[0]
    if item.reason and _detailed(item):
        yield indented(Text(line(item.reason)), _MARGIN)
    for change in plan_item(item)["changes"]:
        yield indented(_change(change), _MARGIN)


def _change(change: schema.ChangeView) -> Text:
    """Return a change: the field, both values, and on the next line its effect and its source."""
    old, new = line(change["old"]) or "nothing", line(change["new"]) or "nothing"
    mild = "yellow" if change["effect"] in _NOTED else "dim"
    style = "red" if change["destroys"] else mild
    effect = ", ".join(filter(None, (change["effect"], change["source"])))
    field = change["path"].removeprefix("spec.")
    return Text.assemble((field, "cyan"), f": {old} -> {new}\n", (f"  {effect}", style))


def as_json(
    plan: Plan,
    items: Sequence[Item],
    fleet: str,
    against: Against,
    rollout: Rollout | None,
    held: Sequence[Item] = (),
    platform: PlatformView = NO_PLATFORM,
    lacking: Sequence[str] = (),
    *,
    price: ListPrice | None = None,
    today: date = date.min,
) -> Mapping[str, Any]:
    """Return the plan for scripts; ``recorded`` is what the newest plan of the app needs or has approved.

    ``held`` are the items that a freeze or a change window would hold now, and ``platform`` is what changes
    of what Flux applies. ``lacking`` is what Azure does not have.
    """
    names = {item.cluster for item in items}
    deletes = against.deletes
    approval = {"by": deletes.by, "at": deletes.at, "clusters": list(deletes.approved)}
    return {
        "fleet": fleet,
        "against": against.commit,
        "recorded": {
            "needsApproval": list(deletes.needs_approval),
            "approval": approval if deletes.approved else None,
        },
        "summary": plan.summary,
        "problems": list(plan.problems),
        "needsApproval": sorted(plan.deletes_needing_approval),
        "items": [{**plan_item(item), "destructive": bool(destruction(item))} for item in items],
        "rollout": _rollout(rollout, against.durations) if rollout else None,
        "held": [{"cluster": item.cluster, **plan_part(item)} for item in held if item.cluster in names],
        "platform": platform.as_json(),
        "azure": list(lacking),
        "listPrice": list_price_view(price, today),
    }


def _rollout(rollout: Rollout, durations: Durations) -> Mapping[str, Any]:
    return {
        "strategy": rollout.choice.name,
        "atOnce": list(at_once(rollout)),
        "groups": [*_planned(rollout)],
        "finalGate": _final(rollout),
        "estimate": as_object(estimate(rollout.choice.kind, work_of(groups_of(rollout)), durations)),
    }


def _final(rollout: Rollout) -> Mapping[str, Any] | None:
    gate = final_gate(rollout)
    if gate is None:
        return None
    return {
        "afterSeconds": int(gate.after.total_seconds()),
        "notBefore": gate.not_before.isoformat() if gate.not_before else None,
        "checks": [check.name for check in gate.checks],
    }


def _planned(rollout: Rollout) -> Iterator[Mapping[str, Any]]:
    for group in groups_of(rollout):
        yield {
            "stage": group.stage.name,
            "group": group.number + 1,
            "approvals": group.asks,
            "clusters": list(group.clusters),
            "maxConcurrency": group.rule.concurrency,
            "failureBudget": group.rule.budget,
            "soakSeconds": int(group.rule.soak.total_seconds()),
        }


def chosen_items(planned: Plan, names: list[str]) -> list[Item]:
    """Return the items of these clusters, or all; raise CommandError for an unknown name."""
    items = {item.cluster: item for item in planned.items}
    for name in names:
        if name not in items:
            near = nearest(name, items)
            hint = f"did you mean {near}?" if near else "it is neither in the repository nor recorded"
            raise CommandError(f"there is no cluster {line(name)}; {hint}")
    return [item for item in planned.items if not names or item.cluster in names]
