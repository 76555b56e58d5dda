"""The garbage collector: objects whose owners no longer exist, and the two finalizers that wait for it.

Source: the Kubernetes documentation of owners and dependents, and of cascading deletion; and
``pkg/controller/garbagecollector/garbagecollector.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from localcloud.kubernetes.world.deletion.deletion import FOREGROUND, ORPHAN
from localcloud.kubernetes.world.kinds import Kinds, ResourceKind
from localcloud.kubernetes.world.object_store import At, Deletion, Object, WriteMode
from localcloud.kubernetes.world.writes.patches import JSON

_WRITE = WriteMode(manager="kube-controller-manager")


class CollectorApi(Protocol):
    """What the collector needs of the API."""

    kinds: Kinds

    def owned(self) -> bool:
        """Return whether any object has an owner, or waits for the collector."""
        ...

    def list(self, kind: ResourceKind, namespace: str = "") -> tuple[Sequence[Object], int]:
        """Return the objects of a kind, and the version they were read at."""
        ...

    def patch(self, at: At, patch: Any, media_type: str, write: WriteMode) -> Object:
        """Patch an object."""
        ...

    def delete(self, at: At, options: Deletion = ...) -> Object:
        """Delete an object."""
        ...


def collect(api: CollectorApi) -> None:
    """Run the collector once."""
    if not api.owned():
        return
    everything = list(_all(api))
    present = {value["metadata"]["uid"] for _, value in everything}
    doomed = {
        value["metadata"]["uid"]
        for _, value in everything
        if FOREGROUND in _finalizers(value) and "deletionTimestamp" in value["metadata"]
    }
    for at, value in everything:
        if "deletionTimestamp" in value["metadata"]:
            _finish(api, at, value, everything)
        elif _owners(value):
            _release(api, at, value, everything, present, doomed)


def _release(
    api: CollectorApi,
    at: At,
    value: Object,
    everything: Sequence[tuple[At, Object]],
    present: set[str],
    doomed: set[str],
) -> None:
    """Keep what an owner still needs, without the owners that do not; delete what none needs.

    The dependents of a dependent go first when an owner waits, as its own do.
    """
    owners = _owners(value)
    needing = [owner for owner in owners if owner["uid"] in present - doomed]
    if needing:
        if len(needing) < len(owners):
            _write(api, at, "ownerReferences", needing)
        return
    waited = any(owner["uid"] in doomed for owner in owners) and _dependents(value, everything)
    collected = {FOREGROUND: "Foreground", ORPHAN: "Orphan"}
    own = next((collected[name] for name in _finalizers(value) if name in collected), "Background")
    api.delete(at, Deletion(policy="Foreground" if waited else own))


def _finish(api: CollectorApi, at: At, value: Object, everything: Sequence[tuple[At, Object]]) -> None:
    """Take away the finalizer that waited for the dependents of a deleted object."""
    uid = value["metadata"]["uid"]
    dependents = _dependents(value, everything)
    if ORPHAN in _finalizers(value):
        for dependent, content in dependents:
            left = [owner for owner in _owners(content) if owner["uid"] != uid]
            _write(api, dependent, "ownerReferences", left)
        _write(api, at, "finalizers", [name for name in _finalizers(value) if name != ORPHAN])
    elif FOREGROUND in _finalizers(value):
        blocking = [
            owner
            for _, content in dependents
            for owner in _owners(content)
            if owner["uid"] == uid and owner.get("blockOwnerDeletion")
        ]
        if not blocking:
            _write(api, at, "finalizers", [name for name in _finalizers(value) if name != FOREGROUND])


def _dependents(value: Object, everything: Sequence[tuple[At, Object]]) -> list[tuple[At, Object]]:
    uid = value["metadata"]["uid"]
    return [pair for pair in everything if any(owner["uid"] == uid for owner in _owners(pair[1]))]


def _write(api: CollectorApi, at: At, field: str, value: Sequence[Any]) -> None:
    change = {"op": "add", "path": f"/metadata/{field}", "value": list(value)}
    api.patch(at, [change], JSON, _WRITE)


def _all(api: CollectorApi) -> Iterator[tuple[At, Object]]:
    kinds = {kind.storage: kind for kind in api.kinds.all()}
    for kind in kinds.values():
        for value in api.list(kind)[0]:
            metadata = value["metadata"]
            yield At(kind, metadata["name"], metadata.get("namespace", "")), value


def _owners(value: Object) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = value["metadata"].get("ownerReferences") or ()
    return found


def _finalizers(value: Object) -> Sequence[str]:
    found: Sequence[str] = value["metadata"].get("finalizers") or ()
    return found
