"""What may become of an object when the inventory of its Kustomization changes, and why."""

from __future__ import annotations

from enum import StrEnum

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.platform.changes.comparison import FieldDifference
from shared.platform.changes.objects import is_protected
from shared.platform.changes.side_effects import SideEffectNote
from shared.platform.inventory import ObjectId, Owner


class Fate(StrEnum):
    """What becomes of an object."""

    ADDED = "added"
    CHANGED = "changed"
    RENEWED = "renewed"
    """A generated ConfigMap or Secret is followed by one with another hash."""
    KEPT = "kept"
    """It leaves git, or its Kustomization, and stays on clusters."""
    UNREACHED = "unreached"
    """Nothing: Flux does not apply it."""
    DELETED = "deleted"
    MOVED = "moved"
    """Deleted by the Kustomization that it leaves, and created again by the one that it comes to."""
    RECREATED = "recreated"
    """Deleted, and created again."""
    UNINSTALLED = "uninstalled"
    """The release of a HelmRelease is uninstalled, and another one installed."""
    SHRUNK = "shrunk"
    """A StatefulSet stays and loses replicas, and with them their claims."""
    STOPPED = "stopped"
    """A controller of Flux stays and loses all of its pods."""
    UNKNOWN = "unknown"
    """What its Kustomization owns after is not known: it may be deleted."""
    EMPTIED = "emptied"
    """A Kustomization has objects and would have none: that is refused, and not a removal."""
    BROKEN = "broken"
    """A Kustomization cannot be built: that is refused, and the clusters keep what they have."""
    STUCK = "stuck"
    """The API server refuses the change, and its Kustomization applies nothing any more."""


class Cause(StrEnum):
    """Why that becomes of it."""

    NONE = ""
    PRUNE_OFF = "prune-off"
    PRUNE_DISABLED = "prune-disabled"
    ORPHANED = "orphaned"
    SUSPENDED = "suspended"
    ASLEEP = "asleep"
    """It is suspended itself."""
    NOT_RECONCILED = "not-reconciled"
    RESUMED = "resumed"
    FORCED = "forced"
    """Its Kustomization is forced from now on."""
    FIXED_FIELD = "fixed-field"
    DEFAULTED = "defaulted"
    """Kubernetes has filled a field in, which stays and has no place any more."""
    RELEASE_TARGET = "release-target"
    UNBUILT = "unbuilt"
    ELSEWHERE = "elsewhere"
    """Its Kustomization gets another source."""
    UNSERVED = "unserved"
    """A version of a definition is not served any more."""


DESTROYING = frozenset(
    (
        *(Fate.DELETED, Fate.MOVED, Fate.RECREATED, Fate.UNINSTALLED),
        *(Fate.SHRUNK, Fate.STOPPED, Fate.UNKNOWN),
    )
)
REFUSED = frozenset((Fate.EMPTIED, Fate.BROKEN, Fate.STUCK))


@dataclass(frozen=True)
class Consequence:
    """What becomes of an object of a Kustomization, or of the Kustomization itself (``owner`` is its own id).

    ``takes`` are the objects that are deleted with it. ``detail`` is the field, the file or the reason of the
    cause; ``other`` the object or Kustomization that takes its place. ``manifest`` is that of before, where
    there is one; no text may have its values. ``besides`` is what else happens.
    """

    owner: ObjectId
    id: ObjectId
    effect: Fate
    cause: Cause = Cause.NONE
    detail: str = ""
    fields: tuple[FieldDifference, ...] = ()
    takes: tuple[ObjectId, ...] = ()
    other: ObjectId | None = None
    manifest: Json | None = None
    besides: tuple[SideEffectNote, ...] = ()

    @property
    def destroys(self) -> bool:
        """Whether something is deleted, or may be."""
        return self.effect in DESTROYING

    @property
    def of_owner(self) -> bool:
        """Whether it is about a Kustomization that owns something, and not about one of its objects."""
        return self.owner == self.id


ExplainedFate = tuple[Fate, Cause, str]
"""What becomes of an object, why, and the detail of that."""
PRUNED: ExplainedFate = (Fate.DELETED, Cause.NONE, "")


def end_with(owner: Owner, manifest: Json) -> ExplainedFate:
    """Return what becomes of an object when its Kustomization is deleted."""
    if owner.is_suspended:
        return (Fate.KEPT, Cause.SUSPENDED, owner.file)
    policy = str(owner.spec.get("deletionPolicy") or "MirrorPrune")
    if policy == "Orphan":
        return (Fate.KEPT, Cause.ORPHANED, owner.file)
    if policy == "MirrorPrune" and not owner.prunes:
        return (Fate.KEPT, Cause.PRUNE_OFF, owner.file)
    return (Fate.KEPT, Cause.PRUNE_DISABLED, "") if is_protected(manifest) else PRUNED
