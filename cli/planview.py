"""A plan for a terminal and for scripts: what stops comes first, then what destroys, then the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from cli.output import line
from cli.recorded import Against
from cli.render import few, released
from shared.fleet.planning.differences import Change
from shared.fleet.planning.plan import Action, Item, Plan

_ORDER = (
    Action.REFUSED,
    Action.INVALID,
    Action.HELD,
    Action.DELETE,
    Action.UPDATE,
    Action.CREATE,
    Action.ADOPT,
    Action.RETRY,
    Action.UNCHANGED,
)
_STYLE = {
    Action.REFUSED: "bold red",
    Action.INVALID: "bold red",
    Action.HELD: "yellow",
    Action.DELETE: "bold magenta",
    Action.UPDATE: "cyan",
    Action.CREATE: "green",
    Action.ADOPT: "green",
}
DESTROYS = "DESTROYS"


class Format(StrEnum):
    """How to print a plan."""

    TABLE = "table"
    JSON = "json"


def destructive(item: Item) -> bool:
    """Tell whether something that runs would be gone: a cluster or a node pool, now or once approved."""
    return item.action is Action.DELETE or item.held_delete or any(change.destroys for change in item.changes)


def table(made: Plan, items: Sequence[Item], against: Against) -> RenderableType:
    """Return the plan for people; clusters without a change are only counted."""
    counts = Counter(item.action for item in items)
    words = ", ".join(f"{counts[action]} {action}" for action in _ORDER if counts[action]) or "no clusters"
    parts: list[RenderableType] = [Text(f"Against {against.words}: {words}", style="bold")]
    parts += [Text(said, style="yellow") for said in _said(against)]
    if made.problems:
        parts.append(Text("\nMistakes in the manifests:", style="bold red"))
        parts += [_indented(Text(line(problem)), 2) for problem in made.problems]
    told = sorted((item for item in items if item.action is not Action.UNCHANGED), key=_rank)
    for _, same in groupby(told, key=lambda item: _rank(item)[:-1]):
        parts += [Text(""), *_together(list(same))]
    return Group(*parts)


def _said(against: Against) -> Iterator[str]:
    """Yield what the planned commit holds, and what a person released at it."""
    commit, held = against.commit, against.held
    if held.deletes:
        yield released(commit, held.deletes)
    if held.approved:
        by, names = line(held.by), few(held.approved)
        yield f"{by} approved the delete of {names} at {commit[:8]}, for that commit alone ({held.at})"


def _rank(item: Item) -> tuple[int, bool, str, str]:
    """Return where an item is shown: those of one action with one reason, or none, stand together."""
    detailed = _detailed(item)
    together = (item.cluster if item.changes else item.reason) if detailed else ""
    return _ORDER.index(item.action), not detailed, together, item.cluster


def _detailed(item: Item) -> bool:
    """Tell whether more is told than the action; what is invalid is told with the mistakes."""
    return item.action is not Action.INVALID and bool(item.reason or item.changes)


def _indented(text: Text, by: int) -> Padding:
    return Padding(text, (0, 0, 0, by), expand=False)


def _together(items: Sequence[Item]) -> Iterator[RenderableType]:
    """Yield a line per cluster, and once what there is to tell of them."""
    for item in items:
        head = Text.assemble((f"{item.action:<9} ", _STYLE.get(item.action, "")), (item.cluster, "bold"))
        if destructive(item):
            head.append(f"  {DESTROYS}", style="bold red")
        yield head
    item = items[0]
    if item.reason and _detailed(item):
        yield _indented(Text(line(item.reason)), 10)
    for change in item.changes:
        yield _indented(_change(change), 10)


def _change(change: Change) -> Text:
    """Return a change: the field, both values, and on the next line what it does and where it is from."""
    old, new = line(change.old) or "nothing", line(change.new) or "nothing"
    style = "red" if change.destroys else "dim"
    effect = ", ".join(filter(None, (change.effect, change.source)))
    return Text.assemble(
        (change.path.removeprefix("spec."), "cyan"), f": {old} -> {new}\n", (f"  {effect}", style)
    )


def as_json(made: Plan, items: Sequence[Item], fleet: str, against: Against) -> dict[str, Any]:
    """Return the plan for scripts; ``recorded`` is what the commit that it is made against holds."""
    held = against.held
    approval = {"by": held.by, "at": held.at, "clusters": list(held.approved)} if held.approved else None
    return {
        "fleet": fleet,
        "against": against.commit,
        "recorded": {"heldDeletes": list(held.deletes), "approval": approval},
        "summary": made.summary,
        "problems": list(made.problems),
        "heldDeletes": sorted(made.held_deletes),
        "items": [_view(item) for item in items],
    }


def _view(item: Item) -> dict[str, Any]:
    return {
        "cluster": item.cluster,
        "action": item.action.value,
        "generation": item.generation,
        "destructive": destructive(item),
        "heldDelete": item.held_delete,
        "reason": item.reason,
        "changes": [vars(change) for change in item.changes],
    }
