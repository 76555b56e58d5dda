"""The Kubernetes side of every cluster, in memory: its API, its nodes and its Flux.

It is the ``ControlPlane`` of an Azure world and the ``Kubernetes`` port at once, without a socket; the
server in ``localcloud.kubernetes.wire.kubernetes_servers`` puts TLS in front of the same worlds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from localcloud.common.control_plane import Node
from localcloud.flux.flux_controllers import Flux, ReadSource, Source
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_port import WorldKubernetes
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.node_objects import mirror_nodes
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import Unavailable
from shared.ports import KubernetesApi

_DELAYS = Delays()


@dataclass(frozen=True)
class _Member:
    world: KubernetesWorld
    flux: Flux


class KubernetesFleet:
    """The clusters that are started; ``read_source`` reads the git repositories for Flux."""

    def __init__(
        self, clock: Callable[[], datetime], read_source: ReadSource, *, delays: Delays = _DELAYS
    ) -> None:
        self._clock, self._delays = clock, delays
        self._reader = _Reader(read_source)
        self._members: dict[ClusterId, _Member] = {}
        self._off: set[ClusterId] = set()
        self._seen: dict[ClusterId, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def start(self, cluster: ClusterId, nodes: Sequence[Node]) -> str:
        """Start a cluster, or keep one that is started; its kubeconfig leads nowhere."""
        with self._lock:
            if cluster not in self._members:
                world = KubernetesWorld(self._clock, name=cluster.resource, delays=self._delays)
                self._members[cluster] = _Member(world, Flux(world, self._reader, self._clock))
        self.set_nodes(cluster, nodes)
        return f"apiVersion: v1\nkind: Config\ncurrent-context: {cluster.name}\n"

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[Node]) -> None:
        """Make these the nodes of a started cluster; nothing when it is not started."""
        world = self.world(cluster)
        if world is not None:
            mirror_nodes(world, nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Let the API of a cluster answer nobody, or answer again."""
        with self._lock:
            (self._off.discard if on else self._off.add)(cluster)

    def is_on(self, cluster: ClusterId) -> bool:
        """Tell whether the API of a cluster answers."""
        with self._lock:
            return cluster not in self._off

    def stop(self, cluster: ClusterId) -> None:
        """Forget a cluster and all that is in it."""
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

    def reconcile(self, *, fresh: bool = True) -> None:
        """Run Flux once in every cluster in which something was written since.

        A ``fresh`` round looks at the git repositories again; a new commit there counts for all clusters.
        """
        with self._lock:
            members = list(self._members.items())
        if fresh:
            self._reader.begin()
        for cluster, member in members:
            member.world.tick()
            seen = (member.world.version, self._reader.news)
            if self._seen.get(cluster) != seen:
                self._seen[cluster] = seen
                member.flux.reconcile()


class _Reader:
    """Reads each branch once a round, and the files of a commit once, whatever the number of clusters."""

    def __init__(self, read: ReadSource) -> None:
        self._read = read
        self._round: dict[tuple[str, str], Source | None] = {}
        self._files: dict[tuple[str, str], tuple[str, Mapping[str, bytes]]] = {}
        self.news = 0
        """How often a branch was found to have changed."""

    def begin(self) -> None:
        """Begin a round: look at every branch that was asked for before."""
        before = {key: source and source.revision for key, source in self._round.items()}
        self._round = {key: self._kept(key, self._read(*key)) for key in before}
        if before != {key: source and source.revision for key, source in self._round.items()}:
            self.news += 1

    def __call__(self, url: str, branch: str) -> Source | None:
        """Return the branch as it was at the first question of this round."""
        key = (url, branch)
        if key not in self._round:
            self._round[key] = self._kept(key, self._read(url, branch))
        return self._round[key]

    def _kept(self, key: tuple[str, str], source: Source | None) -> Source | None:
        if source is None:
            return None

        def files() -> Mapping[str, bytes]:
            revision, content = self._files.get(key, ("", {}))
            if revision != source.revision:
                content = source.files()
                self._files[key] = (source.revision, content)
            return content

        return replace(source, files=files)
