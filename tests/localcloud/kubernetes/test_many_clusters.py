"""Many clusters of the local cloud: one that nothing happens to costs nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock, system_clock
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import Unauthenticated
from shared.resource_ids import ClusterId
from tests.support.kubernetes_ports import config_map, widgets
from tests.support.waiting import until

COUNT = 40
CLUSTERS = [ClusterId("s", "rg", f"cluster-{number:03}") for number in range(COUNT)]


class Counted:
    """Controllers that count runs and looks at them; ``after``: seconds until the next run."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.runs: Counter[int] = Counter()
        self.looked: Counter[int] = Counter()
        self.after: dict[int, float] = {}
        self.broken: set[int] = set()
        self.installed = 0

    def refresh(self) -> None:
        """Do nothing."""

    def install(self, _: KubernetesWorld) -> _Member:
        self.installed += 1
        return _Member(self, self.installed - 1)


class _Member:
    def __init__(self, all_of_them: Counted, number: int) -> None:
        self._all, self._number = all_of_them, number
        self._due: datetime | None = None

    def reconcile(self) -> None:
        if self._number in self._all.broken:
            raise RuntimeError("a controller is broken")
        self._all.runs[self._number] += 1
        after = self._all.after.get(self._number)
        self._due = None if after is None else self._all.clock() + timedelta(seconds=after)

    def due(self) -> datetime | None:
        self._all.looked[self._number] += 1
        return self._due


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def counted(clock: ManualClock) -> Counted:
    return Counted(clock)


@pytest.fixture
def clusters(counted: Counted, clock: ManualClock) -> KubernetesClusters:
    """Return the clusters after their first round."""
    started = KubernetesClusters(clock, counted, delays=Delays(crd=5))
    for cluster in CLUSTERS:
        started.start(cluster, [])
    started.reconcile()
    assert counted.runs == dict.fromkeys(range(COUNT), 1)
    counted.runs.clear()
    counted.looked.clear()
    return started


def test_only_the_cluster_that_changed_is_looked_at(clusters: KubernetesClusters, counted: Counted) -> None:
    clusters.connect(CLUSTERS[7]).apply(config_map({"a": "b"}))
    clusters.reconcile()
    clusters.reconcile()
    assert counted.runs == {7: 1}
    assert set(counted.looked) == {7}


def test_a_cluster_is_reconciled_again_when_it_is_due(
    clusters: KubernetesClusters, counted: Counted, clock: ManualClock
) -> None:
    counted.after[3] = 60.0
    clusters.connect(CLUSTERS[3]).apply(config_map({"a": "b"}))
    clusters.reconcile()
    assert clusters.due() == clock() + timedelta(seconds=60)
    clock.advance(59)
    clusters.reconcile()
    assert counted.runs == {3: 1}
    clock.advance(1)
    clusters.reconcile()
    assert counted.runs == {3: 2}


def test_what_kubernetes_itself_has_to_do_later_is_done_then(
    clusters: KubernetesClusters, counted: Counted, clock: ManualClock
) -> None:
    api = clusters.connect(CLUSTERS[5])
    api.apply(widgets())
    clusters.reconcile()
    counted.runs.clear()
    clusters.reconcile()
    assert counted.runs == {}
    assert clusters.due() == clock() + timedelta(seconds=5)
    clock.advance(5)
    clusters.reconcile()
    assert counted.runs == {5: 1}
    assert clusters.due() is None


def test_an_error_in_one_cluster_stops_none_of_the_others(
    clusters: KubernetesClusters, counted: Counted
) -> None:
    counted.broken.add(2)
    for number in (1, 2, 3):
        clusters.connect(CLUSTERS[number]).apply(config_map({"a": "b"}))
    with pytest.raises(RuntimeError):
        clusters.reconcile()
    assert counted.runs == {1: 1}
    counted.broken.clear()
    clusters.reconcile()
    assert counted.runs[3] == 1


def test_a_stopped_cluster_is_not_reconciled(clusters: KubernetesClusters, counted: Counted) -> None:
    clusters.connect(CLUSTERS[1]).apply(config_map({"a": "b"}))
    clusters.stop(CLUSTERS[1])
    clusters.reconcile()
    assert counted.runs == {}


@pytest.mark.lives
def test_many_api_servers_share_their_threads_and_each_admits_its_own_credentials_only() -> None:
    with KubernetesPlane(Authority(), accepts_token=lambda _: False) as plane:
        before = threading.active_count()
        texts = {cluster: plane.start(cluster, []) for cluster in CLUSTERS}
        assert threading.active_count() <= before
        swapped = {
            cluster: texts[cluster].replace(plane.url(cluster), plane.url(CLUSTERS[0]))
            for cluster in CLUSTERS
        }
        with closing(
            KubernetesConnections(texts.__getitem__, aad_token=None, clock=system_clock)
        ) as connections:
            for cluster in CLUSTERS:
                connections.connect(cluster).check()
        assert len({plane.url(cluster) for cluster in CLUSTERS}) == COUNT
        with (
            closing(
                KubernetesConnections(swapped.__getitem__, aad_token=None, clock=system_clock)
            ) as connections,
            pytest.raises(Unauthenticated),
        ):
            connections.connect(CLUSTERS[1]).check()


def test_a_change_in_one_cluster_is_handled_without_a_periodic_look(counted: Counted) -> None:
    with KubernetesPlane(
        Authority(), accepts_token=lambda _: False, extension=counted, interval=600
    ) as plane:
        for cluster in CLUSTERS[:3]:
            plane.start(cluster, [])
        until(lambda: set(counted.runs) == {0, 1, 2})
        counted.runs.clear()
        plane.clusters.connect(CLUSTERS[1]).apply(config_map({"a": "b"}))
        until(lambda: bool(counted.runs))
        assert set(counted.runs) == {1}
