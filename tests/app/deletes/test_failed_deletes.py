"""A delete that Azure accepted and did not complete: it goes on only while git lacks the cluster."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay, take_over
from shared.cluster.job import ContestKind
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster, PutCluster
from tests.support import fleet_files
from tests.support.one_cluster import ONE, advice, cluster, files, record, tombstoned
from tests.support.pipeline_runs import accepted, phases, push, step_until

pytestmark = pytest.mark.lives

HOUR = 3600
NOTE = fleet_files.fleet() | {"README.md": b"a note"}


def deleting() -> MemoryCloud:
    """Return a cloud whose delete Azure has accepted."""
    cloud = tombstoned()
    step_until(cloud, lambda: accepted(cloud)["delete", "one"] == 1)
    return cloud


def abort(cloud: MemoryCloud) -> None:
    """Abort the delete as an operator, and let its job fail."""
    cloud.azure.interventions.abort(ONE)
    cloud.run(until=lambda: phases(cloud) == {"one": Phase.FAILED})
    assert cluster(cloud)["properties"]["provisioningState"] == "Canceled"


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud in which somebody aborted the delete that Azure had accepted, so that its job failed."""
    cloud = deleting()
    abort(cloud)
    return cloud


def test_a_failed_delete_that_is_replayed_deletes_the_cluster(cloud: MemoryCloud) -> None:
    assert replay("one", "ada", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud)["delete", "one"] == 2


@pytest.mark.parametrize("replayed", [True, False])
def test_a_delete_that_azure_accepted_and_that_failed_is_neither_taken_back_nor_sent_again(
    cloud: MemoryCloud, *, replayed: bool
) -> None:
    """What is left of the cluster is unknown, so nothing repairs it; git has it, so nothing deletes it."""
    if replayed:
        replay("one", "ada", cloud.ports)
    before, commit = accepted(cloud), push(cloud, files())
    cloud.run(HOUR)
    assert accepted(cloud) == before
    assert record(cloud).deleting
    assert not record(cloud).restorable
    assert record(cloud).needs_action
    expected = f"commit {commit[:8]} has the cluster again, after Azure had accepted its delete"
    assert record(cloud).job.reason.startswith(expected)
    assert "az aks delete" in advice(cloud)


def test_a_cluster_whose_delete_an_operator_completes_is_created_again(cloud: MemoryCloud) -> None:
    uid = record(cloud).uid
    push(cloud, files())
    cloud.run(HOUR)
    cloud.azure.delete_cluster(ONE)
    cloud.run(HOUR)
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).uid != uid


def test_a_failed_delete_goes_on_once_the_cluster_is_removed_again(cloud: MemoryCloud) -> None:
    push(cloud, files())
    cloud.run(HOUR)
    push(cloud, NOTE)
    cloud.run(HOUR)
    assert phases(cloud) == {}


def created_again() -> MemoryCloud:
    """Return a cloud whose cluster was deleted as accepted, and created again with the same tags at once."""
    cloud = deleting()
    life = {key: value for key, value in cluster(cloud).items() if key in ("location", "tags", "identity")}
    before = cluster(cloud)["properties"]
    kept = ("dnsPrefix", "kubernetesVersion", "networkProfile")
    pools = [{key: pool[key] for key in _POOL if key in pool} for pool in before["agentPoolProfiles"]]
    properties = {key: before[key] for key in kept} | {"agentPoolProfiles": pools}
    while cloud.ports.azure.call(GetCluster(ONE)) is not None:
        cloud.clock.advance(10)
    cloud.ports.azure.call(PutCluster(ONE, {**life, "properties": properties}, etag=None, only_new=True))
    assert cluster(cloud)["properties"]["resourceUID"] != before["resourceUID"]
    return cloud


_POOL = ("name", "mode", "vmSize", "count", "type", "tags")


def test_an_accepted_delete_says_nothing_about_a_cluster_that_was_created_again_since() -> None:
    cloud = created_again()
    cloud.run(HOUR, until=lambda: False)
    assert accepted(cloud)["delete", "one"] == 1
    contest = record(cloud).job.next_run.contest
    assert contest is not None
    assert contest.kind is ContestKind.RECOVERY
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run(HOUR)
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None


def test_the_removal_of_a_cluster_that_was_created_again_since_its_delete_is_taken_back() -> None:
    cloud = created_again()
    push(cloud, files())
    cloud.run(HOUR)
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 1
