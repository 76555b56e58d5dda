"""What a pull request would do, as the git host shows it: a comment, a check run or a commit status.

Pure. Items that are not carried out come first, then those that destroy a resource, then the rest. Every
value from a manifest is escaped; a text that would be too long is shortened and says so.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby, islice
from typing import Any

import yaml

from shared.app.pull_requests.comment_parts import (
    held_items,
    list_price_line,
    list_price_parts,
    platform_parts,
    platform_title,
    shortages_of,
    stages_of,
    warnings_of,
)
from shared.app.pull_requests.markdown import code, details, fence, fit, line, names, prose, table
from shared.azure.changes.comparison import alike
from shared.frozen import dataclass, field
from shared.json_tree import children
from shared.language.resolve.problems import Problem, number_of
from shared.masking import cut
from shared.plan.list_price import ListPrice
from shared.plan.plan import Action, Item, Plan
from shared.platform.changes.report import ReportSection
from shared.ports import Annotation, Check, CommitStatus
from shared.ports.git_host import status_line
from shared.ports.pull_requests import PLAN_STATUS
from shared.rollouts.estimate import Durations
from shared.rollouts.rollout import Rollout
from shared.sentences import not_shown

COMMENT_LIMIT = 65_000
"""Characters; GitHub takes 65,536 in a comment and 65,535 in a summary."""
DIFF_LINES = 200
LINES_COMPARED = 4_000
"""More lines are not compared: the time that a diff takes may grow with the square of their number."""
PROBLEMS_SHOWN = 100
CHANGES_SHOWN = 100

OUTDATED = (
    "> [!WARNING]\n> **Out of date**: the base branch has moved since this plan. "
    "Update the branch of the pull request, or push to it, to get a new plan."
)
_ORDER = (
    *(Action.REFUSED, Action.INVALID, Action.ON_HOLD),
    *(
        Action.DELETE,
        Action.REBUILD,
        Action.RELEASE,
        Action.UPDATE,
        Action.ADOPT,
        Action.CREATE,
        Action.RETRY,
    ),
)

Documents = Mapping[str, tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]
"""The stored form of each cluster, as recorded and as the pull request changes it."""


@dataclass(frozen=True)
class PullWarnings:
    """What an author should know of the clusters that the plan changes.

    ``stale`` says that the table of the retirements is old. ``short`` is what the commit needs and Azure does
    not have.
    """

    retirements: tuple[Problem, ...] = ()
    stale: str = ""
    exemptions: tuple[Problem, ...] = ()
    short: tuple[str, ...] = ()


@dataclass(frozen=True)
class PullPlatform:
    """What changes of what Flux applies.

    ``notes`` are what may be wrong with it, and ``note`` says what built it, and what was not built.
    """

    sections: tuple[ReportSection, ...] = ()
    note: str = ""
    notes: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class PullPlan:
    """The plan of a pull request; ``plan`` is None for one from a ``fork``, which is only validated.

    ``head`` would be merged into ``branch`` at commit ``base``; ``note`` is a remark for the reviewer.
    ``rollout`` is the one that the commit would have, None for none, and ``durations`` are those of earlier
    changes. ``held`` are the items that a freeze or a change window would hold now. ``followed`` says who
    follows what besides the stages of this repository. ``list_price`` is by how much it changes the list
    price, None where it does not, as of ``today``. ``page`` is the address of its page in the console, "" for
    none.
    """

    fleet: str
    branch: str
    base: str
    head: str
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    documents: Documents = field(default_factory=dict)
    note: str = ""
    refusal: str = ""
    fork: bool = False
    warnings: PullWarnings = PullWarnings()
    rollout: Rollout | None = None
    durations: Durations = field(default_factory=dict)
    held: tuple[Item, ...] = ()
    platform: PullPlatform = PullPlatform()
    followed: tuple[str, ...] = ()
    list_price: ListPrice | None = None
    today: date = date.min
    page: str = ""

    @property
    def conclusion(self) -> str:
        """The conclusion of the check: failure, neutral or success; never success without a plan."""
        actions = {item.action for item in self.plan.items} if self.plan else set()
        states = {section.state for section in self.platform.sections}
        refused = actions & {Action.REFUSED, Action.INVALID} or "refused" in states
        if self.problems or self.refusal or refused:
            return "failure"
        held = any(item.needs_action for item in self.plan.items) if self.plan else False
        waits = held or Action.ON_HOLD in actions or "needs approval" in states
        return "neutral" if waits or self.note or self.plan is None else "success"

    @property
    def is_uncounted(self) -> bool:
        """Whether it removes definitions, and some clusters have not counted what goes with them."""
        counted = (
            found for part in self.platform.sections for line in part.lines for _, found in line.counted
        )
        return any(found.unknown for found in counted)

    @property
    def title(self) -> str:
        """The result in one line."""
        if self.refusal:
            return self.refusal
        count = number_of(self.problems)
        problems = f"{count} problem{'s' * (count != 1)} in the manifests" if count else ""
        if self.plan is None:
            return problems or "the manifests are valid; nothing was planned, because this comes from a fork"
        parts = (self.plan.summary, platform_title(self.platform.sections), problems)
        return "; ".join(part for part in parts if part)


def marker(fleet: str) -> str:
    """Return the first characters of a fleet's comment."""
    return f"<!-- roadstead:plan {fleet} "


def comment_of(view: PullPlan) -> str:
    """Return the comment."""
    first = f"{marker(view.fleet)}base={view.base} head={view.head} -->"
    return f"{first}\n{_text(view)}\n"


def is_of(body: str, head: str) -> bool:
    """Return whether a comment describes this head."""
    return f" head={head} " in body.partition("\n")[0]


def outdated(body: str, base: str) -> str:
    """Return a comment with a warning that it is out of date, unless it has one or is for this base."""
    first, _, rest = body.partition("\n")
    if f" base={base} " in first or rest.startswith(OUTDATED):
        return body
    return cut(f"{first}\n{OUTDATED}\n\n{rest}", COMMENT_LIMIT)


def status_of(view: PullPlan) -> CommitStatus:
    """Return the commit status, for a token, which cannot write check runs.

    A status cannot be neutral. Without a plan it is pending: nothing of the pull request was tried, and a
    rule that requires this status does not let it pass.
    """
    state = "failure" if view.conclusion == "failure" else "success"
    state = "pending" if state == "success" and view.plan is None else state
    return CommitStatus(state, status_line(view.title), PLAN_STATUS, view.page)


def check_of(view: PullPlan) -> Check:
    """Return the check run, with each problem at its line."""
    notes = tuple(
        Annotation(p.file, p.line, f"{p.field}: {p.message}" if p.field else p.message) for p in view.problems
    )
    return Check(PLAN_STATUS, view.conclusion, line(view.title), _text(view), notes, view.page)


def _text(view: PullPlan) -> str:
    return fit(_parts(view), COMMENT_LIMIT, "**Shortened: a longer text is not accepted.**")


def _parts(view: PullPlan) -> Iterator[str]:
    yield f"### Roadstead: what {code(view.head[:8])} would do"
    if view.refusal:
        yield prose(view.refusal)
        return
    if view.plan is None:
        yield (
            "This pull request comes from a fork: its manifests were validated, and the recorded state of "
            "the fleet is not shown."
        )
    else:
        price = list_price_line(view.list_price, view.today)
        yield f"Merged into {_place(view)}: **{view.plan.summary}**.{price}"
    if view.page:
        yield f"[The same as a page of the console]({view.page})"
    if view.note:
        yield f"> [!NOTE]\n> {prose(view.note)}"
    yield from _problems(view)
    yield from list_price_parts(view.list_price)
    yield from warnings_of("Retirements of AKS", view.warnings.retirements)
    if view.warnings.stale:
        yield f"> [!NOTE]\n> {prose(view.warnings.stale)}"
    yield from warnings_of("Exemptions from drift that end", view.warnings.exemptions)
    yield from shortages_of(view.warnings.short)
    yield from stages_of(view.rollout, view.durations)
    yield from held_items(view.held)
    for followed in view.followed:
        yield f"{prose(followed)}."
    yield from platform_parts(view.platform.sections, view.platform.note, view.platform.notes)
    yield from _items(view)


def _place(view: PullPlan) -> str:
    return f"{code(view.branch)} at {code(view.base[:8])}"


def _problems(view: PullPlan) -> Iterator[str]:
    if not view.problems:
        if view.plan is None:
            yield "The manifests are valid."
        return
    rows = [
        (code(f"{p.file}:{p.line}:{p.column}"), code(p.field), prose(p.message))
        for p in view.problems[:PROBLEMS_SHOWN]
    ]
    more = number_of(view.problems[PROBLEMS_SHOWN:])
    yield "#### Problems\n\n" + table(("place", "field", "problem"), rows)
    if more:
        yield not_shown(more, "problem")


def _items(view: PullPlan) -> Iterator[str]:
    items = view.plan.items if view.plan else ()
    rank = {action: place for place, action in enumerate(_ORDER)}
    shown = sorted(
        (item for item in items if item.action in rank),
        key=lambda item: (rank[item.action], _guard(item), item.cluster),
    )
    for guard, same in groupby(shown, key=_guard):
        together = list(same)
        if guard and len(together) > 1:
            yield from _guarded_deletes(together, guard)
        else:
            for same_items in _together(view, together):
                yield from _of_items(view, same_items)


def _together(view: PullPlan, items: Sequence[Item]) -> Sequence[Sequence[Item]]:
    """Return items by what happens to them: those to which the same happens are shown once."""
    found: dict[object, list[Item]] = {}
    for item in items:
        old, new = view.documents.get(item.cluster, (None, None))
        own = item.cluster if _has_own_yaml(old, new) and not item.changes else ""  # it says what happens
        reason = "" if _is_listed(view, item) else item.reason
        found.setdefault((_action(item, old, new), reason, item.changes, own), []).append(item)
    return list(found.values())


def _has_own_yaml(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return whether the resolved YAML shows what happens to a cluster; a pin is no part of it."""
    return new is not None and (old is None or old["spec"] != new["spec"])


def _is_listed(view: PullPlan, item: Item) -> bool:
    """Return whether what is wrong with an item stands among the problems above it."""
    return item.action is Action.INVALID and bool(view.problems)


def _guard(item: Item) -> str:
    """Return why a delete needs approval, "" for every other item."""
    return item.reason if item.needs_approval and not item.retained else ""


def _guarded_deletes(items: Sequence[Item], reason: str) -> Iterator[str]:
    """Yield the deletes that one guard blocks, with the reason once."""
    what = "losses" if items[0].keeps_pin else f"{items[0].removal}s"
    yield f"#### {len(items)} clusters: **{what} that need approval**\n\n{prose(reason)}"
    yield from names([member.cluster for member in items])


def _of_items(view: PullPlan, items: Sequence[Item]) -> Iterator[str]:
    """Yield what happens to these clusters, to each the same; one of them has its resolved YAML shown."""
    item, several = items[0], len(items) > 1
    old, new = view.documents.get(item.cluster, (None, None))
    name = f"Each of {len(items)} clusters" if several else code(item.cluster)
    head = f"#### {name}: {_action(item, old, new)}"
    yield f"{head}\n\n{prose(item.reason)}" if item.reason and not _is_listed(view, item) else head
    if several:
        yield from names([member.cluster for member in items])
    if item.changes:
        yield _changes(item)
    if new is not None and _has_own_yaml(old, new):
        of = f" of {line(item.cluster)}, one of {len(items)}" if several else ""
        yield details(f"Resolved YAML{of}", fence(_diff(old, new), "diff"))


def _action(item: Item, old: object, new: object) -> str:
    """Return the action as text; bold if it is not carried out, or destroys a resource."""
    if item.action is Action.REBUILD:
        return "**rebuild: delete the cluster and everything that runs there, then create it again**"
    if item.action is Action.DELETE:
        group = "its resource group if Roadstead created it and nothing else is in it"
        return f"**delete the cluster and everything that runs there, and {group}**"
    if item.action is Action.RELEASE:
        return "release the cluster: everything that runs there stays"
    if item.action is Action.ON_HOLD:
        if item.retained and item.removal != "loss":
            return "**removal of namespaces, needs approval**" if item.needs_approval else "**on hold**"
        if item.needs_approval:
            return f"**{item.removal}, needs approval**"
        return "**on hold**" if new else f"**{item.removal}, on hold**"
    if item.action is Action.INVALID:
        return "**invalid: keeps its last valid spec**" if old else "**invalid: not created**"
    return f"**{item.action.value}**" if item.not_carried_out else item.action.value


def _changes(item: Item) -> str:
    hidden = len(item.changes) - CHANGES_SHOWN
    more = f"\n\n{not_shown(hidden, 'field')}" if hidden > 0 else ""
    rows = [
        (
            code(change.path.removeprefix("spec.")),
            code(change.old),
            code(change.new),
            f"**{change.effect}**" if change.destroys else change.effect,
            code(change.source),
        )
        for change in item.changes[:CHANGES_SHOWN]
    ]
    return table(("field", "old", "new", "effect", "from"), rows) + more


def _diff(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """Return a unified diff of two clusters' resolved specs, bounded in lines and in work."""
    before, after = _yaml(_as_written(old, new, ())), _yaml(new)
    if len(before) + len(after) > LINES_COMPARED:
        return f"({len(after)} lines are too many for a diff: see the fields above)"
    lines = list(islice(difflib.unified_diff(before, after, "recorded", "this", lineterm=""), DIFF_LINES + 1))
    if len(lines) > DIFF_LINES:
        lines[DIFF_LINES:] = ["(the rest of the diff is not shown)"]
    return "\n".join(lines)


def _as_written(old: Any, new: Any, path: tuple[str, ...]) -> Any:
    """Return ``old`` in the order of ``new``, so that a diff shows no differences in order."""
    if alike(old, new, path):
        return new
    pairs = children(new, old)
    if pairs is None:
        return old
    if isinstance(old, Mapping):
        return {key: _as_written(before, after, (*path, key)) for key, after, before in pairs if key in old}
    return [_as_written(before, after, path) for _, after, before in pairs if before is not None]


def _yaml(document: Mapping[str, Any] | None) -> list[str]:
    if document is None:
        return []
    out = io.StringIO()
    yaml.safe_dump(_without_empty(document["spec"]), out, sort_keys=True, allow_unicode=True, width=100)
    return out.getvalue().splitlines()


def _without_empty(value: Any) -> Any:
    """Return a value without its empty parts, which no manifest sets."""
    if isinstance(value, Mapping):
        return {key: _without_empty(inner) for key, inner in value.items() if inner not in ({}, [], None)}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value
