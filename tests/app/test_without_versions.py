"""A cloud that shows no ETags: nothing is mistaken for new, and writes without a condition are bounded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import (
    Conditional,
    DeleteCluster,
    DeletePool,
    GetCluster,
    PutCluster,
    PutPool,
    WriteResponse,
)
from tests.support.one_cluster import ONE, cluster, files, pool, pools, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure

pytestmark = pytest.mark.lives


def without_etags(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: without_etags(value) for key, value in document.items() if key != "eTag"}
    return [without_etags(entry) for entry in document] if isinstance(document, list) else document


def show_no_etags(cloud: MemoryCloud) -> list[Conditional]:
    """Let Azure show no ETags from now on; return the conditional writes, as they come."""
    azure, writes = cloud.ports.azure, list[Conditional]()

    def shown(operation: GetCluster) -> Json | None:
        document: Json | None = without_etags(azure.call(operation))
        return document

    def noted(operation: Conditional) -> WriteResponse:
        writes.append(operation)
        return azure.call(operation)

    on_azure(cloud, GetCluster, shown)
    on_azure(cloud, Conditional, noted)
    return writes


def test_what_exists_is_written_without_a_condition_after_a_second_read() -> None:
    cloud = ready(pool())
    writes = show_no_etags(cloud)
    push(cloud, files(pool(count=3) + "  tags: {a: b}\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["a"] == "b"
    assert pools(cloud)["apps"]["count"] == 3
    assert [(type(write), write.etag, write.only_new) for write in writes] == [
        (PutCluster, None, False),
        (PutPool, None, False),
    ]
    events = [event for event in cloud.state.events("one", 100) if "no version (eTag)" in event.message]
    assert [event.step for event in events] == ["node-pools", "cluster"]


def test_what_is_new_is_created_only_where_nothing_exists() -> None:
    cloud = MemoryCloud(throttle=False)
    writes = show_no_etags(cloud)
    push(cloud, files())
    cloud.run()
    push(cloud, files(pool()))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert [(type(write), write.only_new) for write in writes] == [(PutCluster, True), (PutPool, True)]


def test_pools_and_clusters_are_deleted_after_a_fresh_read() -> None:
    cloud = ready(pool())
    writes = show_no_etags(cloud)
    push(cloud, files())
    cloud.run()
    assert list(pools(cloud)) == ["system"]
    push(cloud, {path: text for path, text in files().items() if not path.startswith("clusters/")})
    cloud.run()
    assert cloud.ports.azure.call(GetCluster(ONE)) is None
    assert [type(write) for write in writes] == [DeletePool, DeleteCluster]


@pytest.mark.parametrize("seconds", [1, 4])
def test_a_write_without_a_condition_needs_a_read_of_a_moment_ago(seconds: float) -> None:
    cloud = ready()
    writes = show_no_etags(cloud)
    azure, late = cloud.ports.azure, True

    def slow(operation: GetCluster) -> Json | None:
        seen = azure.call(operation)
        if late:
            cloud.clock.advance(timedelta(seconds=seconds).total_seconds())
        return seen

    on_azure(cloud, GetCluster, slow)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(600)
    assert bool(writes) is (seconds < 3)
    late = False
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert len(writes) == 1


def test_nothing_is_adopted_without_a_version() -> None:
    cloud = ready()
    azure = cloud.ports.azure
    foreign = {**cluster(cloud), "tags": {}}
    azure.call(PutCluster(ONE, {**foreign, "tags": {}}, etag=foreign["eTag"]))
    cloud.run(60)
    writes = show_no_etags(cloud)
    push(cloud, files("  tags: {a: b}\n", annotations="{roadstead.dev/adopt: with-differences}"))
    cloud.run(3600)
    assert writes == []
    assert "no version (eTag)" in record(cloud).job.reason
    assert "AKS_API_VERSION" in record(cloud).job.next_run.action_required
