"""Apply objects to a cluster where it has others, and read what it has of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

from shared.cluster.failures.errors import Dependency
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.field_ownership import MANAGER, appliers, is_held, lost_fields, same, transferred
from shared.kubernetes.flux_objects import inventory_of, is_applied, listed_in, ref_of
from shared.kubernetes.sync_objects import SOURCE_KINDS
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from shared.sentences import some_of

# What a cluster has of some objects: a list for a kind with several of them, a read for a single one.


def served(
    api: KubernetesApi, api_version: str, kind: str, *, namespace: str = "", labels: str = ""
) -> Sequence[Json] | None:
    """Return the objects of a kind, None where the cluster does not serve it."""
    try:
        return api.list(api_version, kind, namespace=namespace, labels=labels)
    except Dependency as error:
        if error.code != "NotFound":
            raise
        return None


_Place = tuple[str, str, str]
"""The apiVersion and the kind of objects, and their namespace; a kind without namespaces ignores it."""


class LiveObjects:
    """The objects of a cluster that are at these references; each kind is read when it is asked for first.

    What is read may be outdated a moment later. That harms nobody: a write over the version that was read is
    refused then, and a dry run shows the newest one.
    """

    def __init__(self, refs: Collection[ObjectRef], api: KubernetesApi) -> None:
        self._wanted = Counter(map(_place, refs))
        self._api = api
        self._listed: dict[_Place, Sequence[Json]] = {}

    def get(self, ref: ObjectRef) -> Json | None:
        """Return an object as the cluster has it, None when it has none, or does not know the kind."""
        place = _place(ref)
        if place not in self._listed and self._wanted[place] < 2:
            return self._api.get(ref)
        return next(
            (document for document in self._list(place) if document["metadata"]["name"] == ref.name), None
        )

    def know(self, ref: ObjectRef, kin: Sequence[Json]) -> None:
        """Spare the read of the objects of this one's kind in its namespace: they are among these."""
        self._listed[_place(ref)] = [document for document in kin if _place(ref_of(document)) == _place(ref)]

    def kin(self, ref: ObjectRef) -> Sequence[Json]:
        """Return all objects of this one's kind that are in its namespace, or that have none."""
        return self._list(_place(ref))

    def _list(self, place: _Place) -> Sequence[Json]:
        if place not in self._listed:
            api_version, kind, namespace = place
            self._listed[place] = served(self._api, api_version, kind, namespace=namespace) or ()
        return self._listed[place]


def _place(ref: ObjectRef) -> _Place:
    """Return where an object is: one that names no namespace is in "default", if its kind has namespaces."""
    return ref.api_version, ref.kind, ref.namespace or "default"


SHOWN = 3


@dataclass(frozen=True)
class ApplyResult:
    """How many objects were written, and the fields that they took from other managers."""

    count: int = 0
    taken: tuple[str, ...] = ()

    def __add__(self, other: ApplyResult) -> ApplyResult:
        return ApplyResult(self.count + other.count, self.taken + other.taken)

    def note(self, what: str, of: str = "") -> str:
        """Describe what was written, such as each ``what`` of something, "" for nothing."""
        if not self.count:
            return ""
        took = f"; took over {some_of(self.taken, SHOWN, between='; ')}" if self.taken else ""
        return f"applied {self.count} {what}{'s' * (self.count > 1)}{of}{took}"


def apply_differing(
    manifests: Sequence[Json],
    live: LiveObjects,
    api: KubernetesApi,
    *,
    entirely: bool = False,
    resumes: bool = False,
) -> ApplyResult:
    """Apply the objects that the cluster does not have as an apply would leave them.

    ``entirely``: the objects are ours alone. ``resumes``: they are also not left suspended.
    """
    found = [(manifest, live.get(ref_of(manifest))) for manifest in manifests]
    return sum(
        (apply_over(known, manifest, api, entirely=entirely, resumes=resumes) for manifest, known in found),
        ApplyResult(),
    )


def apply_over(
    live: Json | None, manifest: Json, api: KubernetesApi, *, entirely: bool = False, resumes: bool = False
) -> ApplyResult:
    """Apply an object over what the cluster has, unless that would change nothing."""
    if live is None:
        api.apply(manifest)
        return ApplyResult(1)
    ours, now = transferred(live, entirely=entirely, resumes=resumes), live
    if ours is not None:
        now = api.replace(ours)
    elif is_as_applied(live, manifest, api):
        return ApplyResult()
    after = api.apply(_over(now, manifest))
    return ApplyResult(1, tuple(f"{ref_of(manifest)}: {fields}" for fields in lost_fields(live, after)))


def _over(live: Json, manifest: Json) -> Json:
    """Return an object as an apply takes it: a source over the version that was read, or not at all.

    A source has a pin. An instance that stood still before this call would take Flux back to an older one
    (kubernetes.io/docs/reference/using-api/server-side-apply: a resourceVersion is a precondition).
    """
    if manifest["kind"] not in SOURCE_KINDS:
        return manifest
    version = {"resourceVersion": live["metadata"]["resourceVersion"]}
    return {**manifest, "metadata": {**manifest["metadata"], **version}}


def is_as_applied(live: Json, manifest: Json, api: KubernetesApi) -> bool:
    """Return whether an apply would change nothing: a dry run shows what the object itself does not."""
    if not is_applied(manifest, live):
        return False
    return is_held(manifest, live) or same(live, api.apply(manifest, dry_run=True))


# What earlier manifests had is removed. Inventories on the cluster, which are ConfigMaps, say what that is:
# an object is added before it is applied, and leaves after it was removed.


def add_to_inventory(at: ObjectRef, refs: Set[ObjectRef], api: KubernetesApi) -> None:
    """Add objects to an inventory; those of earlier manifests stay in it."""
    live = api.get(at)
    save_inventory(at, listed_in(live or {}) | refs, live, api)


def save_inventory(at: ObjectRef, refs: Set[ObjectRef], live: Json | None, api: KubernetesApi) -> None:
    """Write an inventory, if it is another one."""
    inventory = inventory_of(refs, at)
    if not is_applied(inventory, live) or listed_in(live or {}) != refs:
        api.apply(inventory)


@dataclass(frozen=True)
class Removal:
    """What was removed, and why the rest stays."""

    removed: Sequence[str]
    stays: Mapping[str, str]

    @property
    def note(self) -> str:
        """What was done, "" for nothing."""
        deleted = f"removed {some_of(self.removed, REMOVED_SHOWN)}" if self.removed else ""
        stays = [f"the {ref} stays, because {why}" for ref, why in self.stays.items()]
        return "; ".join(filter(None, (deleted, *stays[:REMOVED_SHOWN])))


REMOVED_SHOWN = 5


def remove(former: Iterable[Json], api: KubernetesApi, why: Callable[[Json], str]) -> Removal:
    """Delete what nobody else applies, and of which ``why`` says no reason to stay."""
    removed, stays = list[str](), dict[str, str]()
    for live in former:
        ref, others = str(ref_of(live)), sorted(appliers(live) - {MANAGER})
        reason = why(live) or (f"it is also applied by {' and '.join(others)}" if others else "")
        if reason:
            stays[ref] = reason
        else:
            api.delete(live)
            removed.append(ref)
    return Removal(removed, stays)
