"""What runs: resource groups and clusters in Azure, and the Kubernetes APIs of the clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId, ObjectRef

"""A JSON object, as the service writes it."""


@dataclass(frozen=True)
class GroupWrite:
    """What came of a PUT of a resource group; ``created`` is False where the group was there already."""

    request_id: str
    created: bool


class ResourceGroups(Protocol):
    """Azure resource groups, as ARM JSON."""

    def get(self, subscription: str, name: str) -> Json | None:
        """Return the group (``location``, ``tags``, ``properties.provisioningState``), or None."""
        ...

    def put(self, subscription: str, name: str, body: Json) -> GroupWrite:
        """Create or overwrite the group: ARM takes no condition. ``body`` has ``location`` and ``tags``."""
        ...

    def delete(self, subscription: str, name: str) -> str:
        """Start to delete the group; a group that is gone is success. Return the request's id."""
        ...

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        """Return the resource ids inside the group; empty when the group is gone."""
        ...


class ManagedClusters(Protocol):
    """AKS managed clusters and their agent pools, as ARM JSON (``properties``, ``eTag``, ``tags`` ...).

    Each profile in ``properties.agentPoolProfiles`` has its own ``eTag``; a pool operation changes only
    that one, a cluster operation both. ``etag`` of a put: a value writes only over that version, None
    only where nothing is yet (``If-None-Match: *``); of a delete: only that version, None whatever is
    there. All raise Conflict when that does not hold. Writes start an operation and return; look at
    ``properties.provisioningState`` to see its end.

    Every write returns the service's id of the request, for support: "" when it gave none, which it may
    where there was nothing to do.
    """

    def get(self, cluster: ClusterId) -> Json | None:
        """Return the cluster with its ``properties.agentPoolProfiles``, or None."""
        ...

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> str:
        """Start to create or update the cluster."""
        ...

    def delete(self, cluster: ClusterId, *, etag: str | None) -> str:
        """Start to delete the cluster; one that is gone is success."""
        ...

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> str:
        """Start to create or update one agent pool; ``body`` has ``properties``."""
        ...

    def delete_pool(self, cluster: ClusterId, pool: str, *, etag: str | None) -> str:
        """Start to delete one agent pool; one that is gone is success."""
        ...

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> str:
        """Start to bring one agent pool to the newest node image; nothing to do when it has it already."""
        ...

    def upgrade_profile(self, cluster: ClusterId) -> Json:
        """Return what the cluster may be upgraded to; raise Dependency when it is gone.

        ``properties.controlPlaneProfile`` and each of ``properties.agentPoolProfiles`` (by ``name``) have
        ``kubernetesVersion`` ("1.33.4", as it is now) and ``upgrades`` ([{"kubernetesVersion": "1.33.5"}],
        with "isPreview": true for previews); no ``upgrades`` when there are none.
        """
        ...

    def versions(self, subscription: str, location: str) -> Json:
        """Return the Kubernetes versions that a region offers.

        Each of ``values`` has ``version`` ("1.33"), ``patchVersions`` ({"1.33.4": {"upgrades": ["1.33.5"]}})
        and, where it is so, "isDefault": true or "isPreview": true.
        """
        ...

    def maintenance(self, cluster: ClusterId) -> Mapping[str, Json]:
        """Return the cluster's maintenance configurations by name; raise Dependency when it is gone."""
        ...

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> str:
        """Create or replace a maintenance configuration; ``body`` has ``properties``. It holds at once."""
        ...

    def kubeconfig(self, cluster: ClusterId) -> str:
        """Return a kubeconfig for the cluster (YAML). A secret: never store, log or show it."""
        ...


class KubernetesApi(Protocol):
    """The Kubernetes API of one cluster, as JSON objects."""

    def check(self) -> None:
        """Ask ``/readyz``; raise Unavailable when it does not answer, Unauthenticated when it refuses us."""
        ...

    def get(self, ref: ObjectRef) -> Json | None:
        """Return the object, or None (also when its kind is not known to the cluster)."""
        ...

    def apply(self, manifest: Json) -> Json:
        """Server-side apply as field manager "roadstead", taking over conflicting fields.

        Raise Dependency when the cluster does not know the kind (yet), or the namespace is missing.
        """
        ...

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        """Return all objects of a kind, of all namespaces when ``namespace`` is "".

        ``labels`` ("app=web,!old") and ``fields`` ("spec.nodeName=aks-a-0") are selectors as kubectl takes
        them. Raise Dependency when the cluster does not know the kind, Conflict when the list expired
        while it was read.
        """
        ...

    def cordon(self, node: str, *, on: bool = True) -> None:
        """Let no new pod be scheduled on a node, or (``on`` False) let them again; a gone node is success."""
        ...

    def evict(self, namespace: str, pod: str) -> None:
        """Ask for a pod to end, with respect for disruption budgets; one that is gone is success.

        Raise Blocked while a PodDisruptionBudget does not allow it.
        """
        ...


class Kubernetes(Protocol):
    """Reaches the Kubernetes APIs of the fleet."""

    def connect(
        self, cluster: ClusterId, *, kubeconfig: Callable[[ClusterId], str] | None = None
    ) -> KubernetesApi:
        """Return the API of a cluster; its credentials live in memory only.

        ``kubeconfig`` fetches them in place of the port's own way, when there is no connection yet.
        """
        ...
