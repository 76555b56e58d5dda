"""Writes that Azure accepts and a policy or a mishap reverts: reported, and not repeated indefinitely."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import (
    DeleteCluster,
    DeleteGroup,
    DeletePool,
    GetCluster,
    PutCluster,
    Write,
    WriteResponse,
)
from tests.support import fleet_files
from tests.support.one_cluster import files, pool
from tests.support.one_cluster import ready as ready_with_pool
from tests.support.one_cluster import record as one
from tests.support.pipeline_runs import accepted, phases, push, ready, record_of, status
from tests.support.replaced_ports import frozen, on_azure

pytestmark = pytest.mark.lives


def test_a_resource_that_vanishes_during_a_job_is_created_again() -> None:
    cloud = MemoryCloud()

    def vanishes() -> None:
        record = record_of(cloud, "one")
        cloud.ports.azure.call(DeleteCluster(record.desired.id, etag=None))
        cloud.clock.advance(10)
        cloud.azure.complete_due()

    frozen(cloud, "kubernetes", "connect", vanishes)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["create", "one"] == 2
    assert any(event.reason == "Restarted" for event in cloud.state.events("one", 50))


def test_a_reverted_write_is_not_repeated_indefinitely() -> None:
    cloud = ready("one")
    azure = cloud.ports.azure

    def policy(read: GetCluster) -> Json | None:
        live = azure.call(read)
        return {**live, "tags": {**live["tags"], "cost": "set by a policy"}} if live else None

    on_azure(cloud, GetCluster, policy)
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] += b"  tags: {cost: ours}\n"
    commit = push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "it still differs from the manifest" in status(cloud, commit)[1]
    assert accepted(cloud)["update", "one"] == 1


def test_a_tag_that_a_policy_removes_is_written_once() -> None:
    cloud = ready("one")
    azure, writes = cloud.ports.azure, []

    def policy(write: PutCluster) -> WriteResponse:
        writes.append(write.body)
        tags = {key: value for key, value in write.body["tags"].items() if key != "cost"}
        body = {**write.body, "tags": {**tags, "stamp": str(len(writes))}}
        return azure.call(replace(write, body=body))

    on_azure(cloud, PutCluster, policy)
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] += b"  tags: {cost: ours}\n"
    push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert len(writes) == 1


def test_a_creation_without_effect_is_sent_twice_and_then_reported() -> None:
    cloud = MemoryCloud()
    azure, writes = cloud.ports.azure, []

    def vanishes(write: PutCluster) -> WriteResponse:
        writes.append(write.target)
        cloud.azure.interventions.vanish_next("one")
        return azure.call(write)

    on_azure(cloud, PutCluster, vanishes)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    record = record_of(cloud, "one")
    assert "accepted the creation of the cluster one twice, and it does not exist" in record.job.reason
    assert len(writes) == 2


def test_a_cluster_that_always_vanishes_is_not_created_indefinitely() -> None:
    cloud = MemoryCloud(throttle=False)
    azure, shown = cloud.ports.azure, itertools.count(1)

    def cleaned(read: GetCluster) -> Json | None:
        live = azure.call(read)
        if live and live["properties"]["provisioningState"] == "Succeeded" and next(shown) % 2 == 0:
            azure.call(DeleteCluster(read.target, etag=None))
        return live

    on_azure(cloud, GetCluster, cleaned)
    push(cloud, fleet_files.fleet("one"))
    cloud.run(24 * 3600)
    assert phases(cloud) == {"one": Phase.FAILED}
    record = record_of(cloud, "one")
    assert "; the job started again 5 times for such reasons" in record.job.reason
    assert accepted(cloud)["create", "one"] <= 12


@pytest.mark.parametrize("kind", [DeleteGroup, DeleteCluster])
def test_a_delete_without_effect_is_sent_twice_and_then_reported(kind: type[Write]) -> None:
    cloud = ready("one")
    sent, azure = list[Write](), cloud.ports.azure

    def accepts(write: Write) -> WriteResponse:
        sent.append(write)
        return WriteResponse("a-request")

    on_azure(cloud, kind, accepts)
    push(cloud, fleet_files.fleet())
    cloud.run(24 * 3600)
    assert len(sent) == 2
    assert phases(cloud) == {"one": Phase.FAILED}
    record = record_of(cloud, "one")
    assert "twice, and it still exists" in record.job.reason
    on_azure(cloud, kind, azure.call)
    push(cloud, fleet_files.fleet() | {"README.md": b"the next commit tries again"})
    cloud.run()
    assert phases(cloud) == {}


def test_a_pool_that_azure_does_not_remove_is_reported() -> None:
    cloud = ready_with_pool(pool())
    sent = list[str]()

    def accepts(write: DeletePool) -> WriteResponse:
        sent.append(write.pool)
        return WriteResponse("a-request")

    on_azure(cloud, DeletePool, accepts)
    push(cloud, files())
    cloud.run(24 * 3600)
    assert sent == ["apps", "apps"]
    assert "the node pool apps twice, and it still exists" in one(cloud).job.reason
