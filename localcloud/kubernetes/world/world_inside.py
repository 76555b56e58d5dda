"""The objects of one cluster for a part of Azure that runs in it: it applies without a login."""

from __future__ import annotations

from collections.abc import Sequence

from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.managed_by_arm import AKS
from localcloud.kubernetes.world.object_store import At, Deletion, WriteMode
from shared.json_tree import Json

_WRITE = WriteMode(manager="fluxconfig-agent", force=True)
_BY_AKS = WriteMode(manager=AKS, force=True)


class WorldInside:
    """The objects of a world, without a socket."""

    def __init__(self, world: KubernetesWorld) -> None:
        self._world = world

    def apply(self, manifest: Json, *, by_aks: bool = False) -> None:
        """Apply an object; one whose kind the cluster does not know yet is left out."""
        at = self._at(
            manifest["apiVersion"],
            manifest["kind"],
            manifest["metadata"]["name"],
            manifest["metadata"].get("namespace", ""),
        )
        if at is not None:
            self._world.apply(at, manifest, _BY_AKS if by_aks else _WRITE)

    def delete(self, api_version: str, kind: str, name: str, namespace: str, *, by_aks: bool = False) -> None:
        """Delete an object, if there is one."""
        at = self._at(api_version, kind, name, namespace)
        if at is not None and self._world.find(at) is not None:
            self._world.delete(at, Deletion(manager=AKS if by_aks else ""))

    def list(self, api_version: str, kind: str) -> Sequence[Json]:
        """Return the objects of a kind in all namespaces; none of a kind that the cluster does not know."""
        found = self._world.kind(api_version, kind)
        return [] if found is None else self._world.list(found)[0]

    def _at(self, api_version: str, kind: str, name: str, namespace: str) -> At | None:
        found = self._world.kind(api_version, kind)
        return None if found is None else At(found, name, namespace if found.namespaced else "")
