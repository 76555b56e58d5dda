"""Clusters that were Ready and whose later job has failed: sweeps say what is so, and start nothing."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import refresh, replay
from shared.app.api.views.drift import drift_of_cluster
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster
from tests.support.one_cluster import ONE, files, pool, ready, record
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.sweeps import (
    delete_by_hand,
    drifted,
    in_sync,
    reads_of,
    ready_condition,
    sweep,
    tag_by_hand,
)

pytestmark = pytest.mark.lives

CORRECT = "  drift: {action: correct}\n"
RECREATE = "  drift: {missingCluster: recreate}\n"


def failed(extra: str = "") -> tuple[MemoryCloud, str]:
    """Return a cloud whose cluster was Ready and whose next generation has failed, and its commit."""
    cloud = ready(extra)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    commit = push(cloud, files(pool(count=2) + extra))
    cloud.run()
    assert (phases(cloud), ready_condition(record(cloud))) == (
        {"one": Phase.FAILED},
        (False, "InvalidManifest"),
    )
    return cloud, commit


def why(cloud: MemoryCloud) -> tuple[str, str]:
    """Return what the cluster does, and the suggested action."""
    found = why_view("one", cloud.ports)
    assert found is not None
    return found["doing"], found["suggestedAction"]


def test_what_differs_is_reported_with_both_values_and_the_failure_stays() -> None:
    cloud, commit = failed()
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert drifted(record(cloud))["tags.own"] == ("", '"x"')
    view = drift_of_cluster("one", cloud.ports)
    assert view is not None
    assert view["count"] == 1
    assert in_sync(record(cloud)) == (False, "Drifted")
    assert ready_condition(record(cloud)) == (False, "InvalidManifest")
    assert record(cloud).job.reason.startswith("InvalidManifest: ")
    assert status(cloud, commit)[0] == "failure"
    doing, _ = why(cloud)
    assert "InvalidManifest: " in doing
    assert "it differs from git in " in doing
    assert "tags.own" in doing


def test_no_policy_has_it_corrected_and_the_report_says_why() -> None:
    cloud, _ = failed(CORRECT + "  tags: {cost: a}\n")
    before = accepted(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    by_hand = accepted(cloud) - before
    sweep(cloud)
    cloud.run(seconds=3600)
    assert accepted(cloud) == before + by_hand
    assert not record(cloud).job.active
    drift = record(cloud).divergence.drift
    assert drift is not None
    notes = {field.path: (field.action, field.note) for field in drift.fields}
    assert notes["tags.cost"] == ("report", "not corrected after its job failed: InvalidManifest")


def test_no_pull_request_proposes_to_take_back_what_the_commit_asked_for() -> None:
    cloud, _ = failed("  drift: {action: propose}\n  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    assert {(field.action, field.note) for field in drift.fields} == {
        ("report", "not proposed after its job failed: InvalidManifest")
    }
    assert cloud.state.proposals() == []


def test_a_replay_writes_what_git_has_and_the_drift_is_over() -> None:
    cloud, _ = failed("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), drifted(record(cloud))) == ({"one": Phase.READY}, {})


@pytest.mark.parametrize("extra", ["", RECREATE])
def test_a_deleted_cluster_is_missing_and_both_reasons_are_shown(extra: str) -> None:
    cloud, commit = failed(extra)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    cloud.run(seconds=6 * 3600)
    sweep(cloud)
    found = record(cloud)
    assert (found.finding, ready_condition(found)) == ("ClusterMissing", (False, "ClusterMissing"))
    assert in_sync(record(cloud)) == (False, "ClusterMissing")
    assert (found.job.active, accepted(cloud)["create", "one"]) == (False, 1)
    assert found.job.reason.startswith("ClusterMissing: ")
    assert "before that, its job failed: InvalidManifest: " in found.job.reason
    doing, action = why(cloud)
    assert doing.startswith("is not Ready any more: the cluster no longer exists in Azure")
    assert "before that, it failed in the step node-pools (3 of 12 of provision): InvalidManifest: " in doing
    assert "That creates it again" in action
    assert "Correct the value" in action
    assert status(cloud, commit)[0] == "failure"


def test_a_failure_is_shown_alone_again_when_the_stopped_cluster_runs() -> None:
    cloud, _ = failed()
    before = record(cloud)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterStopped")
    sweep(cloud)
    assert ready_condition(record(cloud)) == (False, "ClusterStopped")
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    after = record(cloud)
    assert (after.phase, after.job.earlier) == (Phase.FAILED, None)
    assert (after.job.step.failure, after.job.reason) == (before.job.step.failure, before.job.reason)
    assert ready_condition(after) == (False, "InvalidManifest")
    assert in_sync(record(cloud))[0] is not None


def test_the_node_pool_on_which_the_job_failed_is_no_finding_of_its_own() -> None:
    cloud, _ = failed()
    sweep(cloud)
    assert (record(cloud).finding, ready_condition(record(cloud))) == ("", (False, "InvalidManifest"))


def test_it_is_refreshed_by_name() -> None:
    cloud, _ = failed()
    tag_by_hand(cloud, ONE, own="x")
    cloud.clock.advance(600)
    assert refresh(["one"], "someone", cloud.ports).status == 202
    cloud.run()
    assert "tags.own" in drifted(record(cloud))


def test_a_cluster_that_was_never_ready_and_one_that_is_being_deleted_are_left_to_their_jobs() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    delete_by_hand(cloud, ONE)
    reads = reads_of(cloud)
    sweep(cloud)
    assert (record(cloud).finding, record(cloud).divergence.drift) == ("", None)
    assert not [read for read in reads if isinstance(read, GetCluster)]
    assert refresh(["one"], "someone", cloud.ports).status == 409
