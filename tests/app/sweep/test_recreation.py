"""Missing clusters that the drift policy has created again: announced, counted, and not without end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification
from shared.ports.azure import GetCluster, ListClusters, PutCluster, WriteResponse
from tests.support.foreign_cluster import foreign
from tests.support.one_cluster import ONE, cluster, files, ready, record
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import around, on_azure
from tests.support.sweeps import delete_by_hand, reads_of, sweep

pytestmark = pytest.mark.lives

RECREATE = "  drift: {missingCluster: recreate}\n"


def exhausted() -> MemoryCloud:
    """Return a cloud whose cluster something deleted so often that it is not created again."""
    cloud = ready(RECREATE)
    for _ in range(4):
        delete_by_hand(cloud, ONE)
        sweep(cloud)
        cloud.run()
    assert record(cloud).finding == "ClusterMissing"
    return cloud


def test_a_missing_cluster_is_created_again_only_where_the_policy_says_so() -> None:
    cloud = ready("  drift: {action: correct}\n")
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    assert record(cloud).finding == "ClusterMissing"
    cloud = ready(RECREATE)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["create", "one"] == 2
    assert "Correcting" in [event.reason for event in cloud.state.events("one", 50)]


def test_a_missing_cluster_whose_manifest_adopts_it_is_created_only_once_it_no_longer_does() -> None:
    cloud = MemoryCloud(throttle=False)
    foreign(cloud)
    push(cloud, files(RECREATE, annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    assert (record(cloud).finding, record(cloud).job.active) == ("ClusterMissing", False)
    push(cloud, files(RECREATE))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_what_a_policy_of_azure_adds_to_a_cluster_that_is_created_again_is_no_drift() -> None:
    cloud = ready(RECREATE)
    azure = cloud.ports.azure

    def policy(write: PutCluster) -> WriteResponse:
        return azure.call(replace(write, body={**write.body, "tags": {**write.body["tags"], "stamp": "x"}}))

    on_azure(cloud, PutCluster, policy)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run()
    assert cluster(cloud)["tags"]["stamp"] == "x"
    sweep(cloud)
    assert (phases(cloud), record(cloud).divergence.drift) == ({"one": Phase.READY}, None)


def test_a_cluster_that_something_deletes_again_and_again_is_created_three_times() -> None:
    cloud = exhausted()
    assert accepted(cloud)["create", "one"] == 4


def test_a_missing_cluster_is_announced_also_where_a_job_creates_it_again() -> None:
    cloud = ready(RECREATE)
    notifications = list[Notification]()
    around(cloud, "state", add_notification=notifications.append)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run()
    lost, known, again = notifications
    assert (lost.kind, lost.reason, lost.over) == (NotificationKind.LOST, "ClusterMissing", False)
    assert (known.kind, known.outputs) == (NotificationKind.OUTPUTS, record(cloud).observation.facts)
    assert (again.kind, again.key) == (NotificationKind.READY, lost.key)


def test_a_cluster_that_was_created_too_often_is_created_again_once_that_is_long_ago() -> None:
    cloud = exhausted()
    reads = reads_of(cloud)
    sweep(cloud)
    assert len([read for read in reads if isinstance(read, GetCluster)]) == 1, "it is read once in each sweep"
    cloud.clock.advance(8 * 86400)
    sweep(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_missing_cluster_that_no_policy_creates_again_is_not_read_by_itself() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    reads = reads_of(cloud)
    sweep(cloud)
    assert [type(read) for read in reads] == [ListClusters]


def test_a_cluster_that_azure_was_deleting_when_a_sweep_saw_it_is_created_again_once_it_is_gone() -> None:
    cloud = ready(RECREATE)
    cloud.azure.engine.timings = replace(cloud.azure.engine.timings, delete_cluster=3000)
    cloud.azure.delete_cluster(ONE)
    sweep(cloud)
    assert (record(cloud).finding, record(cloud).job.active) == ("ClusterMissing", False)
    cloud.clock.advance(3000)
    sweep(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
