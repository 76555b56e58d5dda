"""The URLs of a Kubernetes API: which kind, namespace, name and subresource a path means."""

from __future__ import annotations

from dataclasses import dataclass

from localcloud.kubernetes.world.kinds import POD, Kinds, ResourceKind
from localcloud.kubernetes.world.object_store import At

_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True)
class ResourcePath:
    """What a path means; ``name`` is "" for a collection, ``namespace`` "" for all or none."""

    kind: ResourceKind
    namespace: str
    name: str
    subresource: str

    @property
    def at(self) -> At:
        """The one object."""
        return At(self.kind, self.name, self.namespace)


def _is_eviction(kind: ResourceKind, subresource: str) -> bool:
    return kind == POD and subresource == "eviction"


def group_is_served(path: str, kinds: Kinds) -> bool:
    """Return whether any kind is served in the group and version of a path."""
    parts = path.strip("/").split("/")
    group_version = "/".join(parts[1:3]) if parts[0] == "apis" else "/".join(parts[1:2])
    return any(kind.api_version == group_version for kind in kinds.all())


def route(path: str, kinds: Kinds) -> ResourcePath | None:
    """Return what a path below ``/api/V`` or ``/apis/G/V`` means, or None when nothing is there."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and (rest[2] not in _OF_NAMESPACES or len(rest) > 3):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.resource(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if kind.namespaced and name and not namespace:
        return None
    if subresource and not (subresource == "status" and kind.status) and not _is_eviction(kind, subresource):
        return None
    return ResourcePath(kind, namespace, name, subresource)
