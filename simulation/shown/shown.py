"""Compares what an event has changed with the truth."""

from __future__ import annotations

from collections import defaultdict

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory, Histories
from simulation.oracle import Oracle
from simulation.shown.clusters import ShownClusters
from simulation.shown.fleets import ShownFleets


class FleetObserver:
    """Knows what has changed since the last event; ``histories`` are those of the apps."""

    def __init__(
        self,
        loop: EventLoop,
        oracle: Oracle,
        azure: AzureHistory,
        histories: Histories,
    ) -> None:
        self._loop = loop
        self._clusters = ShownClusters(loop, oracle, histories)
        self._fleets = ShownFleets(loop, oracle, azure, histories)
        self._changed: defaultdict[MemoryCloud, set[str]] = defaultdict(set)

    def changed(self, cloud: MemoryCloud, cluster: str = "") -> None:
        """Note that the record of a cluster changed; without one, that of the fleet or of a plan."""
        self._changed[cloud].add(cluster)

    def tables_replaced(self, cloud: MemoryCloud) -> None:
        """Note that the tables of a fleet were lost, or have an older moment."""
        self._fleets.replaced.add(cloud.ports.config.fleet)

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Compare what a step reports of Azure with Azure."""
        self._clusters.saved(cloud, before, after)

    def after_event(self) -> None:
        """Compare what the last event changed."""
        for cloud in self._loop.clouds:
            changed = self._changed.pop(cloud, set())
            for name in sorted(changed - {""}):
                self._clusters.compare(cloud, name)
            if changed:
                self._fleets.compare(cloud)
