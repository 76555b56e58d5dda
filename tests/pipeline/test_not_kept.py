"""What Azure accepted and does not keep, by a policy or a mishap: it is told, and not written for ever."""

from __future__ import annotations

from typing import Any

from localcloud.world.cloud import MemoryCloud
from shared.fleet.ids import ClusterId
from shared.jobs.row import Phase
from shared.ports import Json
from tests import fleetfiles
from tests.pipeline.around import around, frozen
from tests.pipeline.test_main_job import accepted, phases, push, status
from tests.pipeline.test_safety import ready


def test_what_vanishes_in_the_middle_is_made_again() -> None:
    cloud = MemoryCloud()

    def vanishes() -> None:
        row = cloud.state.cluster("one")
        assert row is not None
        cloud.ports.aks.delete(row.desired.id, etag=None)
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
    row = cloud.state.cluster("one")
    assert row is not None
    assert "accepted the creation of the cluster one twice, and it is not there" in row.job.reason
    assert len(writes) == 2
