"""A job whose cluster somebody has deleted: it creates the cluster again only if somebody asks for that."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster, GetGroup
from tests.support.one_cluster import ONE, advice, cluster, files, pool, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import delete_by_hand, ready_condition, sweep

pytestmark = pytest.mark.lives

RECREATE = "  drift: {missingCluster: recreate}\n"
TAGGED = "  tags: {a: b}\n"


def creations(cloud: MemoryCloud) -> int:
    return accepted(cloud)["create", "one"]


def deleted(cloud: MemoryCloud) -> MemoryCloud:
    """Return the cloud after somebody has deleted its cluster, and no sweep has seen that."""
    delete_by_hand(cloud, ONE)
    return cloud


def is_reported(cloud: MemoryCloud) -> bool:
    """Whether the cluster is missing, its record says so, and nothing was created."""
    found = record(cloud).finding, ready_condition(record(cloud)), phases(cloud), creations(cloud)
    return found == ("ClusterMissing", (False, "ClusterMissing"), {"one": Phase.FAILED}, 1)


def test_the_end_of_a_suspension_does_not_create_a_missing_cluster() -> None:
    cloud = ready()
    commit = push(cloud, files(suspended(cloud, 3)))
    cloud.run(seconds=600)
    deleted(cloud)
    cloud.run(seconds=5 * 3600)
    assert is_reported(cloud)
    assert status(cloud, commit)[0] == "failure"
    assert "`roadstead replay one`" in advice(cloud)


@pytest.mark.parametrize("seen", [False, True])
def test_a_commit_does_not_create_a_missing_cluster_whether_or_not_a_sweep_has_seen_it(seen: bool) -> None:
    cloud = deleted(ready())
    if seen:
        sweep(cloud)
    push(cloud, files(TAGGED))
    cloud.run()
    assert is_reported(cloud)
    found = record(cloud)
    assert (
        found.observation.verified,
        found.observation.running,
        found.observation.inside,
        found.observation.api_server,
    ) == (None, None, None, None)


def test_a_replay_of_a_missing_cluster_creates_it_as_the_newest_commit_has_it() -> None:
    cloud = deleted(ready())
    push(cloud, files(TAGGED))
    cloud.run()
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), creations(cloud)) == ({"one": Phase.READY}, 2)
    assert cluster(cloud)["tags"]["a"] == "b"


def test_the_replay_of_a_job_that_failed_for_another_reason_first_says_that_the_cluster_is_missing() -> None:
    cloud = ready()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    push(cloud, files(pool(count=2)))
    cloud.run()
    assert record(cloud).job.reason.startswith("InvalidManifest")
    deleted(cloud)
    replay("one", "someone", cloud.ports)
    cloud.run()
    assert is_reported(cloud)
    replay("one", "someone", cloud.ports)
    cloud.run()
    assert (phases(cloud), creations(cloud)) == ({"one": Phase.READY}, 2)


def test_a_creation_that_a_replay_asked_for_goes_on_with_the_commit_that_corrects_it() -> None:
    cloud = deleted(ready())
    sweep(cloud)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    replay("one", "someone", cloud.ports)
    cloud.run()
    assert record(cloud).job.reason.startswith("InvalidManifest")
    deleted(cloud)
    push(cloud, files(TAGGED))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    delete_by_hand(cloud, ONE)
    creations_before = creations(cloud)
    push(cloud, files())
    cloud.run()
    assert (record(cloud).finding, creations(cloud)) == ("ClusterMissing", creations_before)


@pytest.mark.parametrize("suspends", [False, True])
def test_a_job_creates_a_missing_cluster_again_where_the_policy_says_so(suspends: bool) -> None:
    cloud = ready(RECREATE)
    if suspends:
        push(cloud, files(RECREATE + suspended(cloud, 3)))
        cloud.run(seconds=600)
    deleted(cloud)
    if not suspends:
        push(cloud, files(RECREATE + TAGGED))
    cloud.run(seconds=5 * 3600)
    assert (phases(cloud), creations(cloud)) == ({"one": Phase.READY}, 2)


def test_the_resource_group_of_a_missing_cluster_is_not_created_either() -> None:
    cloud = ready()
    cloud.azure.delete_group(ONE.subscription, ONE.resource_group)
    cloud.clock.advance(3600)
    cloud.azure.complete_due()
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None
    push(cloud, files(TAGGED))
    cloud.run()
    assert is_reported(cloud)
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_one_read_that_shows_no_cluster_does_not_end_a_job() -> None:
    cloud = ready()
    azure, reads = cloud.ports.azure, list[Any]()

    def once_absent(operation: GetCluster) -> Any:
        reads.append(operation)
        return None if len(reads) == 1 else azure.call(operation)

    on_azure(cloud, GetCluster, once_absent)
    push(cloud, files(TAGGED))
    cloud.run()
    assert (phases(cloud), creations(cloud)) == ({"one": Phase.READY}, 1)


def test_a_job_that_ended_because_azure_did_not_show_its_cluster_starts_again_once_a_sweep_sees_it() -> None:
    cloud = ready()
    azure = cloud.ports.azure
    on_azure(cloud, GetCluster, lambda _: None)
    push(cloud, files(TAGGED))
    cloud.run()
    assert is_reported(cloud)
    on_azure(cloud, GetCluster, azure.call)
    sweep(cloud)
    cloud.run()
    assert (phases(cloud), creations(cloud)) == ({"one": Phase.READY}, 1)
    assert cluster(cloud)["tags"]["a"] == "b"
