"""Clusters that are left alone for a time: suspended in git, or stopped in Azure."""

from __future__ import annotations

from shared.cluster.record import Phase
from tests.support import fleet_files
from tests.support.one_cluster import ONE, WINDOW, cluster, files, pool, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push, status


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
