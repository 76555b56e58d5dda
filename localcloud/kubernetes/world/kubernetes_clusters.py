"""The Kubernetes side of every cluster, in memory: its API, its nodes and the controllers installed there.

It is the ``ControlPlane`` of an Azure world and the ``Kubernetes`` port at once, without a socket; the
server in ``localcloud.kubernetes.wire.kubernetes_servers`` puts TLS in front of the same worlds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from localcloud.common.control_plane import Node
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_port import WorldKubernetes
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.node_objects import mirror_nodes
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import Unavailable
from shared.ports import KubernetesApi

_DELAYS = Delays()


class Controllers(Protocol):
    """Controllers of one cluster that are no part of Kubernetes."""

    def reconcile(self) -> None:
        """Run once."""
        ...

    def due(self) -> datetime | None:
        """Return when to run again although nothing was written, None: only after a write."""
        ...


class Extension(Protocol):
    """Controllers that run in every cluster and are no part of Kubernetes, such as Flux."""

    def refresh(self) -> None:
        """Begin a round: what is outside the clusters is read again."""
        ...

    def install(self, world: KubernetesWorld) -> Controllers:
        """Return the controllers of this cluster."""
        ...


class NoExtension:
    """Nothing but Kubernetes."""

    def refresh(self) -> None:
        """Do nothing."""

    def install(self, _: KubernetesWorld) -> Controllers:
        """Return controllers that do nothing."""
        return self

    def reconcile(self) -> None:
        """Do nothing."""

    def due(self) -> datetime | None:
        """Return None: never."""


@dataclass(frozen=True)
class _Member:
    world: KubernetesWorld
    controllers: Controllers


class KubernetesClusters:
    """The clusters that are started; ``extension`` is installed into each."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        extension: Extension | None = None,
        *,
        delays: Delays = _DELAYS,
    ) -> None:
        self._clock, self._delays = clock, delays
        self._extension: Extension = extension or NoExtension()
        self._members: dict[ClusterId, _Member] = {}
        self._off: set[ClusterId] = set()
        self._seen: dict[ClusterId, int] = {}
        self._lock = threading.Lock()

    def start(self, cluster: ClusterId, nodes: Sequence[Node]) -> str:
        """Start a cluster unless it is started; its kubeconfig has no server."""
        with self._lock:
            if cluster not in self._members:
                world = KubernetesWorld(self._clock, name=cluster.resource, delays=self._delays)
                self._members[cluster] = _Member(world, self._extension.install(world))
        self.set_nodes(cluster, nodes)
        return f"apiVersion: v1\nkind: Config\ncurrent-context: {cluster.name}\n"

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[Node]) -> None:
        """Set the nodes of a started cluster; do nothing when it is not started."""
        world = self.world(cluster)
        if world is not None:
            mirror_nodes(world, nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Switch the API of a cluster off, or on again."""
        with self._lock:
            (self._off.discard if on else self._off.add)(cluster)

    def is_on(self, cluster: ClusterId) -> bool:
        """Return whether the API of a cluster answers."""
        with self._lock:
            return cluster not in self._off

    def stop(self, cluster: ClusterId) -> None:
        """Remove a cluster and all its objects."""
        with self._lock:
            self._off.discard(cluster)
            self._members.pop(cluster, None)
            self._seen.pop(cluster, None)

    def world(self, cluster: ClusterId) -> KubernetesWorld | None:
        """Return a cluster's world, or None when it is not started."""
        with self._lock:
            member = self._members.get(cluster)
        return None if member is None else member.world

    def connect(
        self,
        cluster: ClusterId,
        *,
        kubeconfig: Callable[[ClusterId], str] | None = None,  # noqa: ARG002 - nothing is protected here
    ) -> KubernetesApi:
        """Return the API of a cluster; raise Unavailable when it is not started, or its power is off."""
        world = self.world(cluster)
        if world is None or not self.is_on(cluster):
            raise Unavailable(f"the API server of {cluster.name} does not answer")
        return WorldKubernetes(world)

    def reconcile(self) -> None:
        """Run the extension once in every cluster in which something was written since, or is due."""
        with self._lock:
            members = list(self._members.items())
        self._extension.refresh()
        for cluster, member in members:
            member.world.tick()
            version, due = member.world.version, member.controllers.due()
            if self._seen.get(cluster) != version or (due is not None and self._clock() >= due):
                self._seen[cluster] = version
                member.controllers.reconcile()
