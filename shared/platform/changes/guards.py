"""What of a platform's change needs the approval that a deleted cluster needs, and what is refused.

A guard goes by effect. It names what is destroyed, and the way without loss: in two commits, because the
first one has to be on the clusters before the second one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.platform.changes.comparison import Comparison, compare
from shared.platform.changes.consequences import consequences
from shared.platform.changes.effects import REFUSED, Cause, Consequence, Fate
from shared.platform.changes.moving import MovingField, moving_parts
from shared.platform.changes.objects import (
    carries_flux,
    claims_go,
    is_definition,
    is_owner,
    is_release,
    kind_defined,
    value_at,
)
from shared.platform.changes.side_effects import SideEffectNote, of_change, of_removal, of_shared_end
from shared.platform.inventory import Inventory, ObjectId
from shared.sentences import many, some_of

_PRUNE = "the annotation kustomize.toolkit.fluxcd.io/prune: disabled"
_TAKEN = 10
"""How many of the objects that go with one are named."""


class GuardKind(StrEnum):
    """What a guard is about."""

    LOSS = "loss"
    """Something is destroyed that no commit brings back."""
    BUDGET = "budget"
    """More objects are deleted than ``guards.deleteBudget.objects`` allows."""
    UNKNOWN = "unknown"
    """It is not known what is destroyed: a tree could not be built."""
    EMPTIED = "emptied"
    """A Kustomization would lose all of its objects."""
    BROKEN = "broken"
    """A Kustomization cannot be built: Flux would apply nothing of it any more."""
    STUCK = "stuck"
    """The API server would refuse the change of an object."""


class Hint(StrEnum):
    """The way without loss, or out: a sentence with the values of its guard."""

    RENAME = (
        "first commit spec.deletionPolicy: Orphan for {id}; once every cluster has applied that, rename it"
        " in a second commit"
    )
    ORPHAN = (
        "to keep what it owns, first commit spec.deletionPolicy: Orphan for it; once every cluster has"
        " applied that, remove it in a second commit"
    )
    MOVE = (
        f"first commit {_PRUNE} for it; once every cluster has applied that, move it in a second commit, and"
        " remove the annotation later"
    )
    REMOVE = (
        f"to keep it on the clusters, first commit {_PRUNE} for it; once every cluster has applied that,"
        " remove it in a second commit"
    )
    PRUNE_OFF = (
        "first commit spec.prune: false for {owner}; once every cluster has applied that, change {field} in a"
        " second commit, and restore spec.prune later"
    )
    RETAIN = (
        "first commit spec.persistentVolumeClaimRetentionPolicy.{when}: Retain; once every cluster has"
        " applied that, make the change in a second commit: the claims stay"
    )
    SUCCESSOR = (
        "add it under another name in a first commit; remove the old one in a second commit, when nothing"
        " uses it any more"
    )
    SUSPEND = (
        "to keep its release, first commit spec.suspend: true for it; once every cluster has applied that,"
        " remove it in a second commit"
    )
    KEEP = "restore {field}: only what installs Flux stops it"
    BUILD = (
        "make it build, with copies of what is remote in the repository, or run `roadstead plan --against"
        " COMMIT` where kustomize is installed"
    )
    BUDGET = "or raise guards.deleteBudget.objects in a commit"
    PATH = "restore the files, correct spec.path, or remove the Kustomization"
    REPAIR = "correct it; until then the clusters keep what they have"
    WRITE = (
        "first commit {field} as the clusters have it; once every cluster has applied that, make the change"
        " in a second commit"
    )
    FORCE = (
        "restore {field}; or commit the annotation kustomize.toolkit.fluxcd.io/force: enabled for it, which"
        " deletes it and creates it again"
    )


@dataclass(frozen=True)
class Guard:
    """What is destroyed or refused; ``takes`` goes with it.

    ``loss`` says what else is lost, "" for nothing; ``detail`` is a field, a path or a reason. ``other`` is
    what takes its place. ``allowed`` is the budget. The guards of clusters with the same change are equal.
    """

    kind: GuardKind
    owner: ObjectId
    id: ObjectId
    effect: Fate
    hint: Hint
    takes: tuple[ObjectId, ...] = ()
    loss: str = ""
    detail: str = ""
    field: str = ""
    other: ObjectId | None = None
    allowed: int = 0

    @property
    def needs_approval(self) -> bool:
        """Whether an operator can release the change; the others are refused until a commit mends them."""
        return self.kind in (GuardKind.LOSS, GuardKind.BUDGET, GuardKind.UNKNOWN)

    @property
    def destroyed(self) -> frozenset[ObjectId]:
        """All objects that go, as far as git knows them."""
        return frozenset((*self.takes, *(() if self.kind is GuardKind.BUDGET else (self.id,))))

    @property
    def cause(self) -> str:
        """What happens, as a sentence without a full stop."""
        sentence = LOSSES[self.effect] if self.kind is GuardKind.LOSS else SENTENCES[self.kind]
        sentence = _FILLED_IN if self.hint is Hint.WRITE else sentence
        return sentence.format_map(self._values)

    @property
    def remedy(self) -> str:
        """The way without loss, or out."""
        return self.hint.value.format_map(self._values)

    @property
    def _values(self) -> Mapping[str, str]:
        names = some_of([str(name) for name in self.takes], _TAKEN)
        between = ": " if is_owner(self.id) else ", such as "
        taken = f", {between.join(filter(None, (self.loss, names)))}" if self.loss or names else ""
        return {
            "id": str(self.id),
            "owner": str(self.owner),
            "other": str(self.other),
            "taken": taken,
            "detail": self.detail,
            "field": self.field or self.detail,
            "when": "whenScaled" if self.effect is Fate.SHRUNK else "whenDeleted",
            "objects": many(len(self.takes), "object"),
            "allowed": str(self.allowed),
        }


LOSSES: Mapping[Fate, str] = {
    Fate.DELETED: "{id} is deleted{taken}",
    Fate.MOVED: "{id} is deleted by the Kustomization that it leaves, and created again{taken}",
    Fate.RECREATED: (
        "{id} is deleted and created again, because {detail} never changes and force is on{taken}"
    ),
    Fate.UNINSTALLED: "the release of {id} is uninstalled, and another one installed: {detail} differs",
    Fate.SHRUNK: "{id} gets fewer replicas, and the claims of the others are deleted (whenScaled: Delete)",
    Fate.STOPPED: "{id} gets no pods, and Flux brings no commit to these clusters any more",
    Fate.UNKNOWN: "{id} gets another source, so what it owns may be deleted{taken}",
}
"""What is said of a loss."""
SENTENCES: Mapping[GuardKind, str] = {
    GuardKind.UNKNOWN: "{id} counts as removed, because it could not be built ({detail}){taken}",
    GuardKind.BUDGET: (
        "{objects} of a cluster are deleted, guards.deleteBudget.objects in fleet.yaml allows {allowed}"
    ),
    GuardKind.EMPTIED: "{id} would lose all of its objects: its path ./{detail} has none",
    GuardKind.BROKEN: "{id} cannot be built: {detail}",
    GuardKind.STUCK: "{detail} of {id} never changes: Flux would apply nothing of {owner} any more",
}
"""What is said of the others."""
_FILLED_IN = (
    "Kubernetes has filled in {detail} of {id}, which stays and is refused then: Flux would apply nothing of"
    " {owner} any more"
)


@dataclass(frozen=True)
class PlatformChange:
    """What a commit does to what Flux applies to a cluster.

    ``moving`` is what moves by itself after it, and ``new_moving`` what did not before.
    Clusters with equal inventories have the same change.
    """

    consequences: tuple[Consequence, ...] = ()
    guards: tuple[Guard, ...] = ()
    moving: tuple[MovingField, ...] = ()
    new_moving: tuple[MovingField, ...] = ()

    @property
    def needs_approval(self) -> bool:
        """Whether an operator has to approve it, as the delete of a cluster."""
        return any(guard.needs_approval for guard in self.guards)

    @property
    def is_refused(self) -> bool:
        """Whether it is invalid: it would stop what Flux applies, or empty it."""
        return any(not guard.needs_approval for guard in self.guards)


def judge(before: Inventory, after: Inventory, budget: int) -> PlatformChange:
    """Return what happens to a cluster whose Flux applies ``before`` when it gets ``after``."""
    comparison = compare(before, after)
    every = consequences(comparison)
    ends = {consequence.id: consequence.owner for consequence in every if consequence.effect is Fate.DELETED}
    found = tuple(_with_side_effects(consequence, comparison, ends) for consequence in every)
    moving, known = moving_parts(after), frozenset(moving_parts(before))
    return PlatformChange(
        found,
        guards_of(found, budget),
        moving,
        tuple(part for part in moving if part not in known),
    )


def _with_side_effects(
    found: Consequence, comparison: Comparison, ends: Mapping[ObjectId, ObjectId]
) -> Consequence:
    if found.manifest is None:
        return found
    besides: list[SideEffectNote] = []
    if found.effect is Fate.CHANGED and (after := comparison.after.owners.get(found.owner)):
        built = None if found.of_owner else after.objects.get(found.id)
        besides += of_change(found.id, found.manifest, built.manifest) if built else ()
    elif found.effect is Fate.DELETED:
        if not found.of_owner and not comparison.places_after.get(found.id):
            besides += of_removal(found.owner, found.id, found.manifest, comparison)
        owner = comparison.before.owners.get(found.owner)
        besides += of_shared_end(found.id, found.manifest, owner, ends)
    return replace(found, besides=tuple(besides))


def judge_all(
    before: Mapping[str, Inventory], after: Mapping[str, Inventory], budget: int
) -> Mapping[str, PlatformChange]:
    """Return the changes of the clusters on both sides; those that share inventories share one."""
    known: dict[tuple[int, int], PlatformChange] = {}
    changes: dict[str, PlatformChange] = {}
    for name in sorted(before.keys() & after.keys()):
        sides = before[name], after[name]
        key = id(sides[0]), id(sides[1])
        if key not in known:
            known[key] = judge(*sides, budget)
        changes[name] = known[key]
    return changes


def guards_of(found: Sequence[Consequence], budget: int) -> tuple[Guard, ...]:
    """Return the guards of a change; what goes with something that has a guard needs none of its own."""
    changed = {consequence.id: consequence for consequence in found if consequence.of_owner}
    candidates = [guard for consequence in found if (guard := _guard(consequence, changed)) is not None]
    guards: list[Guard] = []
    covered: set[ObjectId] = set()
    for guard in sorted(candidates, key=lambda guard: -len(guard.takes)):
        if guard.id not in covered:
            guards.append(guard)
            covered |= guard.destroyed
    guards.sort(key=lambda guard: (guard.needs_approval, guard.owner, guard.id))
    rest = _destroyed(found) - covered
    if len(rest) > budget:
        first = min(rest)
        names = tuple(sorted(rest))
        guards.append(Guard(GuardKind.BUDGET, first, first, Fate.DELETED, Hint.BUDGET, names, allowed=budget))
    return tuple(guards)


def _destroyed(found: Iterable[Consequence]) -> set[ObjectId]:
    gone: set[ObjectId] = set()
    for consequence in found:
        if consequence.destroys:
            gone |= {consequence.id, *consequence.takes}
    return gone


def _guard(consequence: Consequence, changed: Mapping[ObjectId, Consequence]) -> Guard | None:
    """Return the guard of a consequence, None for none."""
    kind = _kind(consequence)
    if kind is None:
        return None
    owner = changed.get(consequence.owner)
    moved = [field.path for field in owner.fields if field.path in _PLACES] if owner else []
    in_place = consequence.effect is Fate.DELETED and not consequence.of_owner and bool(moved)
    if consequence.cause is Cause.ELSEWHERE:
        in_place, moved = True, ["spec.sourceRef"]
    return Guard(
        kind,
        consequence.owner,
        consequence.id,
        consequence.effect,
        Hint.PRUNE_OFF if in_place else _hint(consequence),
        consequence.takes,
        _loss(consequence.id, consequence.manifest or {}, consequence.effect),
        consequence.detail,
        moved[0] if in_place else "",
        consequence.other,
    )


_PLACES = ("spec.targetNamespace", "spec.path")
_GUARDED = (("", "Namespace"), ("", "PersistentVolumeClaim"), ("apps", "StatefulSet"))
_REFUSED = {
    Fate.EMPTIED: GuardKind.EMPTIED,
    Fate.BROKEN: GuardKind.BROKEN,
    Fate.STUCK: GuardKind.STUCK,
}


def _kind(consequence: Consequence) -> GuardKind | None:
    if consequence.effect in _REFUSED:
        return _REFUSED[consequence.effect]
    if not consequence.destroys:
        return None
    if consequence.of_owner:
        if consequence.cause is Cause.UNBUILT:
            return GuardKind.UNKNOWN
        return GuardKind.LOSS if consequence.takes or consequence.cause is Cause.ELSEWHERE else None
    name = consequence.id
    if is_owner(name):
        return GuardKind.LOSS if consequence.cause is Cause.NONE else None
    carries = carries_flux(name, consequence.manifest or {})
    guarded = name[:2] in _GUARDED or is_definition(name) or is_release(name) or carries
    return GuardKind.LOSS if guarded else None


def _hint(consequence: Consequence) -> Hint:
    name, effect = consequence.id, consequence.effect
    claims = name[:2] == ("apps", "StatefulSet") and claims_go(consequence.manifest or {}, "whenDeleted")
    match effect:
        case Fate.STUCK:
            return Hint.WRITE if consequence.cause is Cause.DEFAULTED else Hint.FORCE
        case Fate.EMPTIED:
            return Hint.PATH
        case Fate.BROKEN:
            return Hint.REPAIR
        case Fate.UNKNOWN:
            return Hint.BUILD
        case Fate.SHRUNK:
            return Hint.RETAIN
        case Fate.STOPPED:
            return Hint.KEEP
        case Fate.RECREATED:
            return Hint.RETAIN if claims else Hint.SUCCESSOR
        case Fate.UNINSTALLED:
            return Hint.SUCCESSOR
        case Fate.MOVED:
            return Hint.MOVE
    if consequence.of_owner or is_owner(name):
        return Hint.RENAME if consequence.other else Hint.ORPHAN
    return Hint.SUSPEND if is_release(name) else Hint.REMOVE


def _loss(name: ObjectId, manifest: Json, effect: Fate) -> str:
    """Return what else is lost with an object, which git may not know; "" for nothing."""
    if effect in REFUSED:
        return ""
    if name[:2] == ("", "Namespace"):
        return "with everything in it"
    if is_definition(name):
        scope = value_at(manifest, "spec.scope")
        where = " of every namespace" if scope == "Namespaced" else ""
        return f"with every {kind_defined(manifest)[1]}{where}"
    if name[:2] == ("", "PersistentVolumeClaim"):
        return "with its data, unless its StorageClass retains the volume"
    if name[:2] == ("apps", "StatefulSet"):
        return "with its claims" if claims_go(manifest, "whenDeleted") else "its claims stay"
    if carries_flux(name, manifest):
        return "and Flux brings no commit to these clusters any more" if effect is not Fate.STOPPED else ""
    if is_release(name) and effect is not Fate.UNINSTALLED:
        return "and its release is uninstalled"
    return "with what it owns" if is_owner(name) else ""
