"""The seam between Azure and the Kubernetes APIs of its clusters.

The Azure world calls a ``ControlPlane`` while it holds its own lock: an implementation must be quick and
must never call back into the Azure world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from localcloud.common.kubeconfig import kubeconfig
from shared.json_tree import Json
from shared.resource_ids import ClusterId


@dataclass(frozen=True)
class KubernetesNode:
    """One node as AKS registers it: ``version`` is the kubelet's without "v", as "1.36.2".

    ``labels`` hold the pool's own labels and those of AKS (pool, zone, region, instance type ...);
    ``taints`` are Kubernetes taints: {"key", "value", "effect"}.
    """

    name: str
    pool: str
    version: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


class InsideCluster(Protocol):
    """The objects of one cluster for a part of Azure that runs in it, such as the agents of an extension."""

    def apply(self, manifest: Json, *, by_aks: bool = False) -> None:
        """Apply an object; one whose kind the cluster does not know yet is left out.

        ``by_aks``: as AKS itself, which may change what Azure Resource Manager manages.
        """
        ...

    def delete(self, api_version: str, kind: str, name: str, namespace: str, *, by_aks: bool = False) -> None:
        """Delete an object, if there is one."""
        ...

    def list(self, api_version: str, kind: str) -> Sequence[Json]:
        """Return the objects of a kind in all namespaces; none of a kind that the cluster does not know."""
        ...


class ControlPlane(Protocol):
    """The Kubernetes API servers of the clusters."""

    def start(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> str:
        """Start the API server of a cluster that was created; return its kubeconfig (YAML)."""
        ...

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> None:
        """Set the nodes of a started cluster: add, change and remove; none while it is stopped."""
        ...

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Switch the API server off while its cluster is stopped in Azure; its objects are retained."""
        ...

    def set_entra(self, cluster: ClusterId, *, on: bool) -> None:
        """Accept tokens of Entra ID at the API server, besides the certificates of local accounts, or not."""
        ...

    def inside(self, cluster: ClusterId) -> InsideCluster | None:
        """Return the objects of a cluster, None while it is not started, or is off."""
        ...

    def stop(self, cluster: ClusterId) -> None:
        """Remove the API server and all its objects; one that never started is success."""
        ...


class NullPlane:
    """A control plane that only remembers the nodes; its kubeconfigs have no server."""

    def __init__(self) -> None:
        self.nodes: dict[ClusterId, list[KubernetesNode]] = {}

    def start(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> str:
        """Remember the nodes; return a kubeconfig whose server does not resolve."""
        self.nodes[cluster] = list(nodes)
        return kubeconfig(
            cluster.name, f"https://{cluster.name}.invalid:443", "none", "clusterUser", {"token": "none"}
        )

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> None:
        """Remember the nodes."""
        self.nodes[cluster] = list(nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Do nothing: no server is behind the kubeconfig."""

    def set_entra(self, cluster: ClusterId, *, on: bool) -> None:
        """Do nothing: nobody signs in."""

    def inside(self, cluster: ClusterId) -> InsideCluster | None:  # noqa: ARG002 - a protocol's name
        """Return None: there are no objects."""
        return None

    def stop(self, cluster: ClusterId) -> None:
        """Remove the cluster."""
        self.nodes.pop(cluster, None)
