"""What Azure accepted and does not keep, by a policy or a mishap: it is told, and not written for ever."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.jobs.record import Phase
from shared.ports import Json
from tests import fleetfiles
from tests.pipeline.around import around, frozen
from tests.pipeline.onecluster import files, pool
from tests.pipeline.onecluster import ready as ready_with_pool
from tests.pipeline.onecluster import record as one
from tests.pipeline.test_main_job import accepted, phases, push, status
from tests.pipeline.test_safety import ready


def test_what_vanishes_in_the_middle_is_made_again() -> None:
    cloud = MemoryCloud()

    def vanishes() -> None:
        record = cloud.state.cluster("one")
        assert record is not None
        cloud.ports.aks.delete(record.desired.id, etag=None)
        cloud.clock.advance(10)
        cloud.azure.settle()

    frozen(cloud, "kubernetes", "connect", vanishes)
    push(cloud, fleetfiles.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["create", "one"] == 2
    assert any(event.reason == "Restarted" for event in cloud.state.events("one", 50))


def test_a_write_that_azure_does_not_keep_is_not_repeated_for_ever() -> None:
    cloud = ready("one")
    get = cloud.ports.aks.get

    def policy(cluster: ClusterId) -> Json | None:
        live = get(cluster)
        return {**live, "tags": {**live["tags"], "cost": "set by a policy"}} if live else None

    around(cloud, "aks", get=policy)
    files = fleetfiles.fleet("one")
    files["clusters/one/cluster.yaml"] += b"  tags: {cost: ours}\n"
    commit = push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "it still differs from the manifest" in status(cloud, commit)[1]
    assert accepted(cloud)["update", "one"] == 1


def test_a_tag_that_a_policy_takes_away_is_written_once_whatever_else_the_policy_changes() -> None:
    cloud = ready("one")
    put, writes = cloud.ports.aks.put, []

    def policy(cluster: ClusterId, body: Json, **options: Any) -> str:
        writes.append(body)
        tags = {key: value for key, value in body["tags"].items() if key != "cost"}
        return put(cluster, {**body, "tags": {**tags, "stamp": str(len(writes))}}, **options)

    around(cloud, "aks", put=policy)
    files = fleetfiles.fleet("one")
    files["clusters/one/cluster.yaml"] += b"  tags: {cost: ours}\n"
    push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert len(writes) == 1


def test_a_creation_that_azure_accepts_and_does_not_keep_is_made_once_more_and_then_told() -> None:
    cloud = MemoryCloud()
    put, writes = cloud.ports.aks.put, []

    def vanishes(cluster: ClusterId, body: Json, **options: Any) -> str:
        writes.append(cluster)
        cloud.azure.vanish_next("one")
        return put(cluster, body, **options)

    around(cloud, "aks", put=vanishes)
    push(cloud, fleetfiles.fleet("one"))
    cloud.run()
    record = cloud.state.cluster("one")
    assert record is not None
    assert "accepted the creation of the cluster one twice, and it is not there" in record.job.reason
    assert len(writes) == 2


def test_a_cluster_that_something_removes_each_time_is_not_made_for_ever() -> None:
    cloud = MemoryCloud(throttle=False)
    aks, shown = cloud.ports.aks, itertools.count(1)

    def cleaned(cluster: ClusterId) -> Json | None:
        live = aks.get(cluster)
        if live and live["properties"]["provisioningState"] == "Succeeded" and next(shown) % 2 == 0:
            aks.delete(cluster, etag=None)
        return live

    around(cloud, "aks", get=cleaned)
    push(cloud, fleetfiles.fleet("one"))
    cloud.run(24 * 3600)
    assert phases(cloud) == {"one": Phase.FAILED}
    record = cloud.state.cluster("one")
    assert record is not None
    assert "it vanished 5 times before" in record.job.reason
    assert accepted(cloud)["create", "one"] <= 12


@pytest.mark.parametrize("port", ["groups", "aks"])
def test_a_delete_that_azure_accepts_and_does_not_make_is_sent_twice_and_then_told(port: str) -> None:
    cloud = ready("one")
    sent, delete = list[str](), getattr(cloud.ports, port).delete

    def accepts(*_: object, **__: object) -> str:
        sent.append(port)
        return "a-request"

    around(cloud, port, delete=accepts)
    push(cloud, fleetfiles.fleet())
    cloud.run(24 * 3600)
    assert len(sent) == 2
    assert phases(cloud) == {"one": Phase.FAILED}
    record = cloud.state.cluster("one")
    assert record is not None
    assert "twice, and it is still there" in record.job.reason
    around(cloud, port, delete=delete)
    push(cloud, fleetfiles.fleet() | {"README.md": b"the next commit tries again"})
    cloud.run()
    assert phases(cloud) == {}


def test_a_pool_that_azure_does_not_remove_is_told() -> None:
    cloud = ready_with_pool(pool())
    sent = list[str]()

    def accepts(_: ClusterId, name: str, **__: object) -> str:
        sent.append(name)
        return "a-request"

    around(cloud, "aks", delete_pool=accepts)
    push(cloud, files())
    cloud.run(24 * 3600)
    assert sent == ["apps", "apps"]
    assert "the node pool apps twice, and it is still there" in one(cloud).job.reason
