"""Clusters that are left alone for a time: suspended in git, or stopped in Azure, also during a job."""

from __future__ import annotations

import pytest

from localcloud.azure.world.arm_errors import ArmError
from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.rate_limits import ARM_WRITE
from shared.cluster.job import Delay
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.limited_clusters import without_tokens
from tests.support.one_cluster import ONE, WINDOW, advice, cluster, files, pool, ready, record, suspended
from tests.support.pipeline_runs import accepted, one_step_a_message, phases, push, status

pytestmark = pytest.mark.lives


def test_a_suspended_cluster_is_left_alone_and_its_drift_is_reported_until_the_end() -> None:
    cloud = ready()
    commit = push(cloud, files("  tags: {a: b}\n" + suspended(cloud, 3)))
    before = accepted(cloud)
    cloud.run(seconds=2 * 3600)
    assert (record(cloud).phase, accepted(cloud)) == (Phase.SUSPENDED, before)
    assert "suspended by team-a until" in record(cloud).job.reason
    assert "it differs in tags.a" in record(cloud).job.reason
    state, description = status(cloud, commit)
    assert (state, description[:58]) == (
        "error",
        "suspended: 0 of 1 clusters in sync; one: suspended by team",
    )
    assert [plan_record.settled for plan_record in cloud.state.open_plans()] == [True]
    cloud.run(seconds=2 * 3600)
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["a"] == "b"
    assert status(cloud, commit)[0] == "success"


def test_a_commit_ends_a_suspension_early() -> None:
    cloud = ready()
    push(cloud, files("  tags: {a: b}\n" + suspended(cloud, 30)))
    cloud.run(seconds=3600)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_stopped_cluster_waits_for_its_start_and_can_be_deleted() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600)
    assert "the cluster is stopped" in record(cloud).job.reason
    cloud.azure.interventions.start(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    cloud.azure.interventions.stop(ONE)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}


def test_a_suspended_cluster_reports_a_removed_pool_a_window_and_a_stop() -> None:
    cloud = ready(pool() + WINDOW)
    push(cloud, files(WINDOW.replace("durationHours: 4", "durationHours: 5") + suspended(cloud, 3)))
    cloud.run(seconds=600)
    assert "nodePools[apps] is not in the manifest" in record(cloud).job.reason
    assert "maintenanceWindows[aksManagedAutoUpgradeSchedule]" in record(cloud).job.reason
    cloud.azure.interventions.stop(ONE)
    cloud.run(seconds=1800)
    assert "it is stopped" in record(cloud).job.reason


@pytest.mark.parametrize("step", [Step.ACCESS, Step.FLUX_COMPONENTS, Step.FLUX_SYNC, Step.VERIFY])
def test_a_cluster_stopped_during_the_flux_steps_waits_for_its_start(step: Step) -> None:
    cloud = one_step_a_message(MemoryCloud())
    push(cloud, files())
    while (current := cloud.state.cluster("one")) is None or current.job.step.name != step:
        if not cloud.step():
            cloud.clock.advance(1)
            cloud.azure.complete_due()
    cloud.azure.interventions.stop(ONE)
    cloud.run(seconds=4 * 3600)
    assert (record(cloud).phase, record(cloud).job.attempts) == (Phase.PROVISIONING, 0)
    assert "the cluster is stopped" in record(cloud).job.reason
    cloud.azure.interventions.start(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_stopped_cluster_is_no_failure_and_why_says_to_start_it() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    commit = push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=4 * 3600)
    assert record(cloud).phase is Phase.UPDATING
    assert advice(cloud).startswith("Start the cluster with `az aks start`")
    description = "0 of 1 clusters in sync; one: the cluster is stopped; Azure allows nothing but a start"
    assert status(cloud, commit) == ("pending", description)
    assert [plan_record.settled for plan_record in cloud.state.open_plans()] == [True]
    cloud.azure.interventions.start(ONE)
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    assert advice(cloud) == ""


def test_azure_stops_no_cluster_during_an_operation() -> None:
    cloud = MemoryCloud()
    push(cloud, files())
    while not cloud.azure.ids():
        cloud.step()
    with pytest.raises(ArmError, match="in progress"):
        cloud.azure.interventions.stop(ONE)


def test_a_cluster_that_was_started_is_not_called_stopped_while_its_write_waits_for_a_token() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600, until=lambda: record(cloud).needs_action)
    assert record(cloud).needs_action
    cloud.azure.interventions.start(ONE)
    without_tokens(cloud, ARM_WRITE)
    cloud.run(seconds=600, until=lambda: record(cloud).job.next_run.delay is Delay.RATE_LIMIT)
    assert record(cloud).job.reason.startswith("waits for Azure's write limit")
    assert not record(cloud).needs_action
