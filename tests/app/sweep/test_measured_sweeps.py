"""What is measured of sweeps and checks that Azure refuses, or whose tokens are used up."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Throttled, Unavailable
from shared.cluster.reporting.measurements import RATE_LIMITED, RETRIES, Metric
from shared.ports.azure import ListClusters
from tests.support.checks import check
from tests.support.collected_telemetry import Collected, watched
from tests.support.one_cluster import ONE, ready
from tests.support.replaced_ports import around, on_azure
from tests.support.sweeps import sweep, use_up_reads


def counted(collected: Collected, metric: Metric) -> dict[tuple[str, ...], int]:
    points = collected.metrics.get(metric.name, [])
    return {
        tuple(str(document.attributes[name]) for name in metric.attributes): document.value
        for document in points
    }


def refuse_lists(cloud: MemoryCloud) -> None:
    def refused(_: Any) -> Any:
        raise Throttled("too many requests", retry_after=5)

    on_azure(cloud, ListClusters, refused)


def test_a_429_of_a_sweep_is_counted_each_time() -> None:
    cloud = ready()
    collected = watched(cloud)
    refuse_lists(cloud)
    sweep(cloud)
    assert counted(collected, RETRIES)["Throttled", "sweep"] >= 2


def test_a_sweep_that_waits_for_a_token_is_counted() -> None:
    cloud = ready()
    collected = watched(cloud)
    use_up_reads(cloud, ONE, 3600)
    sweep(cloud)
    assert counted(collected, RATE_LIMITED)[("sweep",)] >= 1


def test_a_check_that_cannot_read_a_cluster_is_counted() -> None:
    cloud = ready()
    collected = watched(cloud)

    def refused(*_: Any, **__: Any) -> Any:
        raise Unavailable("the API server does not answer")

    around(cloud, "kubernetes", connect=refused)
    check(cloud)
    assert counted(collected, RETRIES)["Unavailable", "check"] >= 1
