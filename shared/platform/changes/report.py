"""The changes of a platform as people read them: by change, and not by cluster.

What is the same on several clusters is one section with their names. Texts are plain, and each line is at
most as wide as given, unless a name is longer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.frozen import dataclass, replace
from shared.platform.changes.comparison import FieldDifference
from shared.platform.changes.counts import Counts, Total, total
from shared.platform.changes.effects import DESTROYING, REFUSED, Cause, Consequence, Fate
from shared.platform.changes.guards import Guard, GuardKind, PlatformChange
from shared.platform.changes.moving import Movement, MovingField
from shared.platform.changes.objects import is_definition
from shared.platform.changes.side_effects import SideEffect
from shared.platform.inventory import ObjectId
from shared.sentences import many, not_shown, some_of

FIELDS_SHOWN = 5
"""How many fields of an object are shown."""
NAMED = 6
"""How many objects or clusters are named in a sentence."""
_INDENT = " " * 4
_SIGNS: Mapping[Fate, str] = {
    Fate.ADDED: "+",
    Fate.DELETED: "-",
    Fate.KEPT: "-",
    Fate.MOVED: "-",
    Fate.UNKNOWN: "?",
}


@dataclass(frozen=True)
class ObjectLine:
    """A change of one object: its sign, its name, the fields that differ and what else is to be known.

    ``path`` is the Kustomization that it belongs to, None for what belongs to none. A change that needs an
    approval, or is refused, has its guard, which says what happens, and ``counted`` what goes with each
    definition that is lost, where clusters can count that.
    """

    sign: str
    name: str
    path: ObjectId | None = None
    fields: tuple[FieldDifference, ...] = ()
    remark: str = ""
    effect: Fate | None = None
    guard: Guard | None = None
    counted: tuple[tuple[str, Total], ...] = ()


@dataclass(frozen=True)
class ReportSection:
    """Changes that the same clusters have."""

    clusters: tuple[str, ...]
    environments: tuple[str, ...]
    lines: tuple[ObjectLine, ...]

    @property
    def heading(self) -> str:
        """Which clusters they are: ``Flux on 14 clusters of staging and production (2 paths)``."""
        paths = len({line.path for line in self.lines if line.path is not None})
        known = [name for name in self.environments if name]
        of = f" of {_listed(known)}" if known else ""
        one = len(self.clusters) == 1
        where = self.clusters[0] if one else f"{len(self.clusters)} clusters{of}"
        return f"Flux on {where}" + (f" ({many(paths, 'path')})" if paths else "")

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards of its changes."""
        return tuple(line.guard for line in self.lines if line.guard is not None)

    @property
    def state(self) -> str:
        """Whether something is refused or needs an approval, "" for neither."""
        if any(not guard.needs_approval for guard in self.guards):
            return "refused"
        return "needs approval" if self.guards else ""


def sections_of(
    changes: Mapping[str, PlatformChange],
    environments: Mapping[str, str],
    order: Sequence[str] = (),
    counts: Counts | None = None,
) -> tuple[ReportSection, ...]:
    """Return the changes of clusters by what they have in common; what is refused or needs approval first."""
    having: dict[int, tuple[PlatformChange, list[str]]] = {}  # many clusters share one
    for cluster in sorted(changes):
        having.setdefault(id(changes[cluster]), (changes[cluster], []))[1].append(cluster)
    by_line: dict[ObjectLine, list[int]] = {}
    for key, (change, _) in having.items():
        for line in dict.fromkeys(lines_of(change)):
            by_line.setdefault(line, []).append(key)
    together: dict[tuple[int, ...], list[ObjectLine]] = {}
    for line, keys in by_line.items():
        together.setdefault(tuple(keys), []).append(line)
    rank = {name: place for place, name in enumerate(order)}
    found = []
    for keys_of, lines in together.items():
        names = sorted(cluster for key in keys_of for cluster in having[key][1])
        known = {environments.get(name, "") for name in names}
        ordered = sorted(known, key=lambda name: (rank.get(name, len(rank)), name))
        told = lines if counts is None else [_with_counts(line, names, counts) for line in lines]
        found.append(ReportSection(tuple(names), tuple(ordered), tuple(told)))
    states = ("refused", "needs approval", "")
    return tuple(sorted(found, key=lambda section: (states.index(section.state), -len(section.clusters))))


def _with_counts(line: ObjectLine, clusters: Sequence[str], counts: Counts) -> ObjectLine:
    guard = line.guard
    if guard is None or not guard.needs_approval:
        return line
    lost = sorted(found for found in guard.destroyed if is_definition(found))
    return replace(line, counted=tuple((found.name, total(found.name, clusters, counts)) for found in lost))


def lines_of(change: PlatformChange) -> Iterator[ObjectLine]:
    """Yield the changes of a cluster; what a Kustomization brings or takes along is in its line."""
    guards = {(guard.owner, guard.id): guard for guard in change.guards if guard.kind is not GuardKind.BUDGET}
    told = {
        consequence.owner: consequence
        for consequence in change.consequences
        if consequence.of_owner and consequence.effect not in (Fate.CHANGED, Fate.STUCK)
    }
    for consequence in change.consequences:
        whole = told.get(consequence.owner)
        if whole is not None and not consequence.of_owner and consequence.effect in _TOLD_WITH[whole.effect]:
            continue
        guard = guards.get((consequence.owner, consequence.id))
        remark = _remark(consequence, change.consequences) if guard is None else ""
        yield ObjectLine(
            _sign(consequence),
            str(consequence.id),
            consequence.owner,
            consequence.fields,
            "; ".join(filter(None, (remark, *_besides(consequence)))),
            consequence.effect,
            guard,
        )
    for guard in change.guards:
        if guard.kind is GuardKind.BUDGET:
            yield ObjectLine("-", many(len(guard.takes), "object"), guard=guard)
    yield from _moving(change)


_STAYING = frozenset((Fate.KEPT, Fate.UNREACHED))
_TOLD_WITH: Mapping[Fate, frozenset[Fate]] = {
    Fate.ADDED: frozenset((Fate.ADDED,)),
    Fate.UNREACHED: frozenset((Fate.ADDED, *_STAYING)),
    Fate.KEPT: _STAYING,
    **dict.fromkeys(REFUSED, _STAYING),
    **dict.fromkeys(DESTROYING, DESTROYING | _STAYING),
}
"""Which effects of objects the line of their Kustomization shows already."""


def _sign(consequence: Consequence) -> str:
    if consequence.effect is Fate.UNREACHED and not consequence.fields:
        return "+" if consequence.manifest is None else "-"
    return _SIGNS.get(consequence.effect, "~")


def _moving(change: PlatformChange) -> Iterator[ObjectLine]:
    for part in change.new_moving:
        value = f"{part.field} {part.value}".strip()
        name = f"{part.id} {value}" if part.id else value
        yield ObjectLine("!", name, remark=f"moves by itself: {_why(part)}")
    known = [part for part in change.moving if part not in change.new_moving]
    if known and (change.new_moving or change.consequences):
        names = some_of([str(part.id or part.value) for part in known], NAMED)
        yield ObjectLine("!", names, remark="moves by itself, as before")


def _why(part: MovingField) -> str:
    return str(part.why) if part.why is not Movement.REMOTE else "it is not in the repository"


# Remarks


def _remark(consequence: Consequence, every: Sequence[Consequence]) -> str:
    """Return what is to be known of a change besides its fields and its guard, "" for nothing."""
    effect, other, detail = consequence.effect, consequence.other, consequence.detail
    match effect:
        case Fate.ADDED | Fate.UNREACHED if consequence.of_owner:
            return _new_owner(consequence, every)
        case Fate.RENEWED:
            return f"generated again as {other.name if other else 'another one'}"
        case Fate.KEPT:
            where = f"; now of {other}" if other and not consequence.of_owner else ""
            return f"stays on the clusters: {_because(consequence)}{where}"
        case Fate.UNREACHED:
            return f"reaches no cluster: {_because(consequence)}"
        case Fate.MOVED:
            where = f"moves to {other}, so it" if other else "another Kustomization applies it now, so it"
            return f"{where} is deleted and created again"
        case Fate.RECREATED:
            return f"deleted and created again: {detail} never changes, and force is on"
        case Fate.DELETED if consequence.of_owner:
            if consequence.takes:
                return ""
            return f"what it owns stays: {_because(consequence)}" if consequence.cause else ""
        case Fate.CHANGED if consequence.cause is Cause.RESUMED:
            return "no longer suspended: all that changed since is applied, and what left it is deleted"
        case Fate.CHANGED if consequence.cause is Cause.SUSPENDED:
            return "suspended from now on: no later commit reaches what it owns, and this one may not either"
        case Fate.CHANGED if consequence.cause is Cause.FORCED:
            return "from now on, what Kubernetes does not change is deleted and created again, data included"
        case Fate.CHANGED if consequence.cause is Cause.UNSERVED:
            return f"version {detail} is not served any more; where objects are stored in it, it has to stay"
        case Fate.CHANGED if consequence.cause is Cause.UNBUILT:
            return f"what it owns is not known: {detail}"
    return ""


_BESIDES: Mapping[SideEffect, str] = {
    SideEffect.ADDRESS: "Azure takes its address back",
    SideEffect.DROPPED: "objects of the kind lose {names}",
    SideEffect.REFUSED: "objects of the kind that do not fit are refused: {names}",
    SideEffect.USED: "{names} still refers to it",
    SideEffect.ONE_POD: "Kubernetes keeps 1 pod, until an autoscaler asks for more",
    SideEffect.UNINSTALLS: "an upgrade that fails uninstalls the release",
    SideEffect.SUSPENDED: "suspended from now on: Flux does nothing with it, this change included",
    SideEffect.RESUMED: "no longer suspended: Flux does all that changed since",
    SideEffect.PULLS: "Flux fetches from elsewhere: this plan does not show what differs there",
    SideEffect.UNLISTED: "its file {names} is unchanged: a list, a patch or a prefix makes it go",
    SideEffect.STILL_CLOSED: (
        "its policyTypes, which Kubernetes filled in, still have Egress: nothing leaves its pods; write them"
    ),
    SideEffect.STILL_OPEN: (
        "its policyTypes, which Kubernetes filled in, lack Egress: its egress rules do nothing; write them"
    ),
    SideEffect.OPERATOR: (
        "{names} ends with it and may be needed to delete it: remove that in a later commit"
    ),
    SideEffect.HEADLESS: "stays headless: only a Service that is deleted and created again gets an address",
}


def _besides(consequence: Consequence) -> Iterator[str]:
    for found in consequence.besides:
        more = [f"{found.more} more"] if found.more else []
        yield _BESIDES[found.effect].format(names=_listed([*found.names, *more]))


def _new_owner(consequence: Consequence, every: Sequence[Consequence]) -> str:
    objects = [
        str(known.id) for known in every if known.owner == consequence.id and known.id != consequence.id
    ]
    text = f"with {some_of(objects, NAMED)}" if objects else ""
    if consequence.effect is Fate.UNREACHED:
        return "; ".join(filter(None, (text, f"reaches no cluster: {_because(consequence)}")))
    return text


def _because(consequence: Consequence) -> str:
    match consequence.cause:
        case Cause.PRUNE_OFF:
            return "spec.prune of its Kustomization is false"
        case Cause.PRUNE_DISABLED:
            return "it has kustomize.toolkit.fluxcd.io/prune: disabled"
        case Cause.ORPHANED:
            return "deletionPolicy is Orphan"
        case Cause.NOT_RECONCILED:
            return "Flux does not reconcile it, as its annotation says"
        case Cause.ASLEEP:
            return f"it is suspended in {consequence.detail or 'the manifest of the cluster'}"
        case Cause.SUSPENDED:
            name = "it" if consequence.of_owner or _is_release(consequence) else str(consequence.owner)
            where = f" in {consequence.detail or 'the manifest of the cluster'}"
            suspended = f"{name} is suspended{where}"
            return suspended if name != "it" else f"a suspension{where}"
        case Cause.ELSEWHERE:
            return "its Kustomization gets another source"
    return "its Kustomization is refused"


def _is_release(consequence: Consequence) -> bool:
    return consequence.id.kind == "HelmRelease" and consequence.effect is Fate.KEPT


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# Text


def text_of(section: ReportSection, width: int, most: int = 1_000) -> Iterator[str]:
    """Yield the lines of a section for a text of ``width`` columns, without its heading; ``most`` changes."""
    hint = ""
    for line in section.lines[:most]:
        yield from _change(line, width)
        guard = line.guard
        if guard is None:
            continue
        what = "needs approval" if guard.needs_approval else "refused"
        yield from wrapped(f"{what}: {guard.cause}", width)
        for definition, found in line.counted:
            yield from wrapped(f"{definition}: {found}", width)
        if guard.remedy != hint:
            yield from wrapped(f"hint: {guard.remedy}", width)
        hint = guard.remedy
    if len(section.lines) > most:
        yield not_shown(len(section.lines) - most, "change")


def _change(line: ObjectLine, width: int) -> Iterator[str]:
    head = f"{line.sign} {line.name}"
    fields = [_field(field) for field in line.fields[:FIELDS_SHOWN]]
    hidden = len(line.fields) - FIELDS_SHOWN
    parts = [*fields, *([not_shown(hidden, "field")] if hidden > 0 else [])]
    if line.remark:
        parts.append(line.remark)
    if len(parts) == 1 and len(head) + 1 + len(parts[0]) <= width:
        yield f"{head} {parts[0]}" if fields else f"{head}: {parts[0]}"
        return
    yield head
    for part in parts:
        yield from wrapped(part, width)


def _field(field: FieldDifference) -> str:
    if field.old == field.new:
        return f"{field.path} differs"
    return f"{field.path} {field.old or 'nothing'} -> {field.new or 'nothing'}"


def wrapped(text: str, width: int, first: str = _INDENT) -> list[str]:
    """Return a text as lines of at most ``width`` columns, indented; ``first`` stands before it."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


# JSON


def as_json(section: ReportSection) -> Mapping[str, Any]:
    """Return a section for scripts."""
    return {
        "clusters": list(section.clusters),
        "environments": list(section.environments),
        "state": section.state,
        "changes": [_line_json(line) for line in section.lines],
    }


def _line_json(line: ObjectLine) -> Mapping[str, Any]:
    guard = line.guard
    return {
        "sign": line.sign,
        "object": line.name,
        "kustomization": f"{line.path.namespace}/{line.path.name}" if line.path else "",
        "effect": str(line.effect or ""),
        "fields": [{"path": field.path, "old": field.old, "new": field.new} for field in line.fields],
        "remark": line.remark,
        "needsApproval": bool(guard and guard.needs_approval),
        "refused": bool(guard and not guard.needs_approval),
        "destroys": sorted(map(str, guard.destroyed)) if guard and guard.needs_approval else [],
        "reason": guard.cause if guard else "",
        "hint": guard.remedy if guard else "",
        "counted": {definition: str(found) for definition, found in line.counted},
    }
