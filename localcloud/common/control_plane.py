"""What the Azure world tells the Kubernetes side of a cluster, so that neither knows the other's insides.

The Azure world calls a ``ControlPlane`` while it holds its own lock: an implementation must be quick and
must never call back into the Azure world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shared.fleet.resource_ids import ClusterId


@dataclass(frozen=True)
class Node:
    """One node as AKS registers it: ``version`` is the kubelet's without "v", as "1.33.4".

    ``labels`` hold the pool's own labels and those of AKS (pool, zone, region, instance type ...);
    ``taints`` are Kubernetes taints: {"key", "value", "effect"}.
    """

    name: str
    pool: str
    version: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


class ControlPlane(Protocol):
    """The Kubernetes API servers of the clusters."""

    def start(self, cluster: ClusterId, nodes: Sequence[Node]) -> str:
        """Start the API server of a cluster that was created; return its kubeconfig (YAML)."""
        ...

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[Node]) -> None:
        """Make these the nodes of a started cluster: add, change and remove; none while it is stopped."""
        ...

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Let the API server answer nobody while its cluster is stopped in Azure; it keeps what is in it."""
        ...

    def stop(self, cluster: ClusterId) -> None:
        """Remove the API server and all that is in it; one that never started is fine."""
        ...


class NullPlane:
    """A control plane that only remembers what it was told; its kubeconfigs lead nowhere."""

    def __init__(self) -> None:
        self.nodes: dict[ClusterId, list[Node]] = {}

    def start(self, cluster: ClusterId, nodes: Sequence[Node]) -> str:
        """Remember the nodes; return a kubeconfig whose server does not resolve."""
        self.nodes[cluster] = list(nodes)
        return _KUBECONFIG.format(name=cluster.name)

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[Node]) -> None:
        """Remember the nodes."""
        self.nodes[cluster] = list(nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Nothing is behind the kubeconfig anyway."""

    def stop(self, cluster: ClusterId) -> None:
        """Forget the cluster."""
        self.nodes.pop(cluster, None)


_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: {name}
contexts:
- name: {name}
  context: {{cluster: {name}, user: clusterUser}}
clusters:
- name: {name}
  cluster: {{server: "https://{name}.invalid:443"}}
users:
- name: clusterUser
  user: {{token: none}}
"""
