"""The objects of one cluster by resource, and the changes in their order, for watches.

Stored objects are never changed in place, so a reader may hold on to one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kinds import ResourceKind

Object = Mapping[str, Any]
Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is ""."""


@dataclass(frozen=True)
class At:
    """Where an object is: kind, name, and namespace ("" for cluster-scoped kinds)."""

    kind: ResourceKind
    name: str
    namespace: str = ""


def _unheard(_: str) -> None:
    """Take a warning that nobody reads."""


@dataclass(frozen=True)
class WriteMode:
    """How to write: the field manager, force for applies, dry run, and the subresource ("" or "status").

    ``validation`` (Ignore, Warn, Strict) is about fields that the kind does not have; ``warn`` takes
    warnings.
    """

    manager: str = "unknown"
    force: bool = False
    dry_run: bool = False
    subresource: str = ""
    validation: str = "Warn"
    warn: Callable[[str], None] = _unheard


@dataclass(frozen=True)
class Deletion:
    """How to delete: preconditions ("" for none), what to do with dependents, seconds of grace, dry run.

    ``policy`` is Foreground, Background, Orphan, or "" for the default of the kind. ``manager`` is a part of
    AKS that deletes, "" for anybody else.
    """

    uid: str = ""
    version: str = ""
    policy: str = ""
    grace: int | None = None
    dry_run: bool = False
    manager: str = ""


@dataclass(frozen=True)
class StoreChange:
    """One write: ``type`` is ADDED, MODIFIED or DELETED, as in a watch; ``before`` is the state before."""

    version: int
    type: str
    storage: tuple[str, str]
    value: Object
    before: Object | None = None


class Store:
    """Objects under one counter of versions; ``on_change`` is called after every write."""

    def __init__(self, *, history: int = 2000) -> None:
        self.version = 1
        self._objects: dict[tuple[str, str], dict[Key, Object]] = {}
        self._written: dict[tuple[str, str], int] = {}
        self._changes: deque[StoreChange] = deque(maxlen=history)
        self._dropped_before = 1
        self._owned: set[tuple[tuple[str, str], Key]] = set()
        self.on_change: list[Callable[[], None]] = []

    def written(self, kind: ResourceKind) -> int:
        """Return the version of the newest write of a kind, 0 for none."""
        return self._written.get(kind.storage, 0)

    def get(self, kind: ResourceKind, key: Key) -> Object | None:
        """Return the object in the kind's version, or None."""
        found = self._objects.get(kind.storage, {}).get(key)
        return None if found is None else in_version(kind, found)

    def list(self, kind: ResourceKind, namespace: str = "", *, at: int = 0) -> list[Object]:
        """Return the objects of a kind by namespace and name; all namespaces when ``namespace`` is "".

        ``at`` is a version, 0 the present one; raise ApiError (410) when it is no longer stored.
        """
        found = self._objects.get(kind.storage, {})
        if at and at != self.version:
            found = self._undone(kind, found, self.since(at))
        return [in_version(kind, found[key]) for key in sorted(found) if not namespace or key[0] == namespace]

    def _undone(
        self, kind: ResourceKind, found: Mapping[Key, Object], changes: Sequence[StoreChange]
    ) -> dict[Key, Object]:
        """Return the objects as they were before the changes."""
        then = dict(found)
        for change in reversed(changes):
            metadata = change.value["metadata"]
            key = (metadata.get("namespace", ""), metadata["name"])
            if change.storage == kind.storage and change.before is None:
                del then[key]
            elif change.storage == kind.storage and change.before is not None:
                then[key] = change.before
        return then

    def keeps(self, version: int) -> bool:
        """Return whether the changes after a version are still stored."""
        return version >= self._dropped_before

    def put(self, kind: ResourceKind, key: Key, value: Mapping[str, Any]) -> Object:
        """Store a new state of an object under the next version; return it as stored."""
        objects = self._objects.setdefault(kind.storage, {})
        sort = "MODIFIED" if key in objects else "ADDED"
        objects[key] = self._record(kind, sort, value, objects.get(key))
        metadata = value["metadata"]
        waits = "deletionTimestamp" in metadata and metadata.get("finalizers")
        has_owner = bool(metadata.get("ownerReferences") or waits)
        (self._owned.add if has_owner else self._owned.discard)((kind.storage, key))
        return objects[key]

    @property
    def owned(self) -> bool:
        """Whether any object has an owner, or waits for a finalizer."""
        return bool(self._owned)

    def remove(self, kind: ResourceKind, key: Key, final: Object | None = None) -> Object:
        """Remove an object; return its last state, ``final`` if given, under the next version."""
        self._owned.discard((kind.storage, key))
        last = self._objects[kind.storage].pop(key)
        return self._record(kind, "DELETED", final or last, last)

    def since(self, version: int) -> Sequence[StoreChange]:
        """Return the changes after a version; raise ApiError (410) when they are no longer stored."""
        if not self.keeps(version):
            raise StatusError(410, "Expired", f"too old resource version: {version} ({self._dropped_before})")
        fresh: list[StoreChange] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            fresh.append(change)
        return fresh[::-1]

    def forget(self) -> None:
        """Drop the stored changes; ``since`` knows only the present version from now on."""
        self._changes.clear()
        self._dropped_before = self.version

    def _record(
        self, kind: ResourceKind, sort: str, value: Mapping[str, Any], before: Object | None
    ) -> Object:
        self.version += 1
        self._written[kind.storage] = self.version
        stamped = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.version)}}
        if len(self._changes) == self._changes.maxlen:
            self._dropped_before = self._changes[0].version
        self._changes.append(StoreChange(self.version, sort, kind.storage, stamped, before))
        for call in self.on_change:
            call()
        return stamped


def in_version(kind: ResourceKind, value: Object) -> Object:
    """Return the object under the kind's version; nothing else is converted."""
    return value if value["apiVersion"] == kind.api_version else {**value, "apiVersion": kind.api_version}
