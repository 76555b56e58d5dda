"""The Kubernetes side of every cluster, in memory: its API, its nodes and the controllers installed there.

It is the ``ControlPlane`` of an Azure world, and has the APIs behind the ``Kubernetes`` port, without a
socket; the server in ``localcloud.kubernetes.wire.kubernetes_servers`` puts TLS in front of the same worlds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from localcloud.common.control_plane import InsideCluster, KubernetesNode
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_port import WorldKubernetes
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.logins import (
    ClusterLogin,
    kubeconfig_of,
    login_of,
    outside_kubeconfig,
    outside_token,
)
from localcloud.kubernetes.world.node_objects import mirror_nodes
from localcloud.kubernetes.world.refusals import RefusedWrites
from localcloud.kubernetes.world.world_inside import WorldInside
from shared.cluster.failures.errors import Unauthenticated, Unavailable
from shared.kubernetes.kubeconfig import ApiServer
from shared.resource_ids import ClusterId

_DELAYS = Delays()


def outside(name: str) -> ClusterId:
    """Return the id under which a cluster that is not in Azure is stored."""
    return ClusterId("", "", name)


def nodes_outside(name: str) -> Sequence[KubernetesNode]:
    """Return the nodes of a cluster that is not in Azure: without pools, and without labels of AKS."""
    return [KubernetesNode(f"{name}-{number}", "", "1.34.4") for number in range(1, 4)]


class ClusterControllers(Protocol):
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

    def install(self, world: KubernetesWorld) -> ClusterControllers:
        """Return the controllers of this cluster."""
        ...


class NoExtension:
    """Nothing but Kubernetes."""

    def refresh(self) -> None:
        """Do nothing."""

    def install(self, _: KubernetesWorld) -> ClusterControllers:
        """Return controllers that do nothing."""
        return self

    def reconcile(self) -> None:
        """Do nothing."""

    def due(self) -> datetime | None:
        """Return None: never."""


@dataclass
class _Member:
    """A cluster: ``seen`` is the version at which its controllers ran last, ``due`` when they run next."""

    number: int
    world: KubernetesWorld
    controllers: ClusterControllers
    seen: int = 0
    entra: bool = False
    due: datetime | None = None


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
        self.refused: list[RefusedWrites] = []
        """What every cluster that starts refuses, as with a policy of the whole subscription."""
        self._extension: Extension = extension or NoExtension()
        self._members: dict[ClusterId, _Member] = {}
        self._off: set[ClusterId] = set()
        self._numbers = count()
        self._started: dict[int, _Member] = {}
        self._changed: set[int] = set()
        self._agenda: list[tuple[datetime, int]] = []
        self._lock = threading.Lock()

    def start(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> str:
        """Start a cluster unless it is started; return its kubeconfig, behind which nobody listens."""
        with self._lock:
            if cluster not in self._members:
                world = KubernetesWorld(self._clock, name=cluster.resource, delays=self._delays)
                world.refused += self.refused
                number = next(self._numbers)
                member = _Member(number, world, self._extension.install(world))
                self._members[cluster] = self._started[number] = member
                world.subscribe(lambda: self._changed.add(number))
                self._changed.add(number)
            number = self._members[cluster].number
        self.set_nodes(cluster, nodes)
        return kubeconfig_of(cluster, login_of(cluster, number))

    def start_outside(self, name: str) -> str:
        """Start a cluster that is not in Azure, unless it is started; return its kubeconfig."""
        cluster = outside(name)
        self.start(cluster, nodes_outside(name))
        with self._lock:
            return outside_kubeconfig(name, self._members[cluster].number)

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> None:
        """Set the nodes of a started cluster; do nothing when it is not started."""
        world = self.world(cluster)
        if world is not None:
            mirror_nodes(world, nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Switch the API of a cluster off, or on again."""
        with self._lock:
            (self._off.discard if on else self._off.add)(cluster)

    def set_entra(self, cluster: ClusterId, *, on: bool) -> None:
        """Let tokens of Entra ID in, or not."""
        with self._lock:
            if cluster in self._members:
                self._members[cluster].entra = on

    def has_entra(self, cluster: ClusterId) -> bool:
        """Return whether tokens of Entra ID are let in."""
        with self._lock:
            return cluster in self._members and self._members[cluster].entra

    def is_on(self, cluster: ClusterId) -> bool:
        """Return whether the API of a cluster answers."""
        with self._lock:
            return cluster not in self._off

    def stop(self, cluster: ClusterId) -> None:
        """Remove a cluster and all its objects."""
        with self._lock:
            self._off.discard(cluster)
            member = self._members.pop(cluster, None)
            if member is not None:
                del self._started[member.number]

    def world(self, cluster: ClusterId) -> KubernetesWorld | None:
        """Return a cluster's world, or None when it is not started."""
        with self._lock:
            member = self._members.get(cluster)
        return None if member is None else member.world

    def inside(self, cluster: ClusterId) -> InsideCluster | None:
        """Return the objects of a cluster for what runs in it; None while it is not started, or is off."""
        world = self.world(cluster)
        return WorldInside(world) if world is not None and self.is_on(cluster) else None

    def connect(self, cluster: ClusterId) -> WorldKubernetes:
        """Return the API of a cluster for whoever needs no login, such as a pod.

        Raise Unavailable when the cluster is not started, or its power is off.
        """
        world = self.world(cluster)
        if world is None or not self.is_on(cluster):
            raise Unavailable(f"the API server of {cluster.name} does not answer")
        return WorldKubernetes(world)

    def enter(self, cluster: ClusterId, login: ClusterLogin) -> WorldKubernetes:
        """Return the API of a cluster for a login, as its server checks it; raise also Unauthenticated.

        The client proves the server first: no token reaches one that the authority does not know.
        """
        api = self.connect(cluster)
        with self._lock:
            member = self._members[cluster]
        if replace(login, token=False) != login_of(cluster, member.number):
            raise Unavailable(f"the API server of {cluster.name} does not answer: SSLError")
        if not login.token:
            return api
        if not member.entra:
            raise Unauthenticated(f"the API server of {cluster.name}: Unauthorized", code="Unauthorized")
        return api.with_token(ApiServer(login.url, login.ca))

    def enter_outside(self, url: str, token: str) -> WorldKubernetes:
        """Return the API of a cluster that is not in Azure, by its address, for whoever has its token."""
        with self._lock:
            members = [(cluster, member.number) for cluster, member in self._members.items()]
        for cluster, number in members:
            if cluster == outside(cluster.name) and login_of(cluster, number).url == url:
                api = self.connect(cluster)
                if token != outside_token(cluster.name, number):
                    refused = f"the API server of {cluster.name}: Unauthorized"
                    raise Unauthenticated(refused, code="Unauthorized")
                return api
        raise Unavailable("the API server does not answer: NewConnectionError")

    def reconcile(self) -> None:
        """Run the extension once in every cluster in which something was written since, or is due.

        The other clusters cost nothing.
        """
        self._extension.refresh()
        waiting = self._waiting()
        try:
            while waiting:
                self._run(waiting[0])
                del waiting[0]
        finally:  # those that did not run because of an error run in the next round
            self._changed.update(member.number for member in waiting)

    def _run(self, member: _Member) -> None:
        member.world.tick()
        version, due = member.world.version, member.controllers.due()
        if member.seen != version or (due is not None and self._clock() >= due):
            member.seen = version
            member.controllers.reconcile()
        self._plan(member)

    def due(self) -> datetime | None:
        """Return when to reconcile although nothing is written, None: only after a write."""
        with self._lock:
            return self._agenda[0][0] if self._agenda else None

    def _waiting(self) -> list[_Member]:
        """Return the clusters in which something was written since, or is due, the oldest first."""
        waiting: set[int] = set()
        while self._changed:
            waiting.add(self._changed.pop())
        now = self._clock()
        with self._lock:
            while self._agenda and self._agenda[0][0] <= now:
                due, number = heappop(self._agenda)
                member = self._started.get(number)
                if member is not None and member.due == due:
                    member.due = None
                    waiting.add(number)
            return [self._started[number] for number in sorted(waiting) if number in self._started]

    def _plan(self, member: _Member) -> None:
        """Note when the next run of a cluster is due; an entry with another time no longer counts."""
        times = [time for time in (member.world.due(), member.controllers.due()) if time is not None]
        due = min(times, default=None)
        with self._lock:
            if due is not None and due != member.due:
                heappush(self._agenda, (due, member.number))
            member.due = due
