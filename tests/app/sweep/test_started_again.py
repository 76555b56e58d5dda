"""Stopped clusters that the drift policy has started again: announced, counted, and not without end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification
from shared.ports.azure import StartCluster, WriteResponse
from tests.support.foreign_cluster import foreign
from tests.support.one_cluster import ONE, advice, cluster, files, pool, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import around, on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand

pytestmark = pytest.mark.lives

START = "  drift: {stoppedCluster: start}\n"


def stop_by_hand(cloud: MemoryCloud) -> None:
    cloud.azure.interventions.stop(ONE)


def runs(cloud: MemoryCloud) -> bool:
    return bool(cluster(cloud)["properties"]["powerState"]["code"] == "Running")


def test_a_stopped_cluster_is_started_again_only_where_the_policy_says_so() -> None:
    cloud = ready("  drift: {action: correct, missingCluster: recreate}\n")
    stop_by_hand(cloud)
    sweep(cloud)
    assert (record(cloud).finding, runs(cloud)) == ("ClusterStopped", False)
    cloud = ready(START)
    stop_by_hand(cloud)
    sweep(cloud)
    cloud.run()
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    assert accepted(cloud)["start", "one"] == 1
    messages = [event.message for event in cloud.state.events("one", 50) if event.reason == "Correcting"]
    assert ["a job starts the cluster again" in message for message in messages] == [True]


def test_a_job_that_starts_a_cluster_leaves_what_its_policy_only_reports() -> None:
    cloud = ready(pool(count=2) + START)
    tag_by_hand(cloud, ONE, own="x")
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    stop_by_hand(cloud)
    sweep(cloud)
    cloud.run()
    sweep(cloud)
    assert runs(cloud)
    assert drifted(record(cloud)) == {"nodePools[apps].count": ("2", "5"), "tags.own": ("", '"x"')}


def test_a_cluster_that_something_stops_again_and_again_is_started_three_times() -> None:
    cloud = ready(START)
    for _ in range(5):
        if runs(cloud):
            stop_by_hand(cloud)
        sweep(cloud)
        cloud.run()
    assert accepted(cloud)["start", "one"] == 3
    assert (record(cloud).finding, runs(cloud)) == ("ClusterStopped", False)


def test_a_cluster_that_azure_was_stopping_when_a_sweep_saw_it_is_started_once_that_has_ended() -> None:
    cloud = ready(START)
    cloud.azure.engine.timings = replace(cloud.azure.engine.timings, stop_cluster=3000)
    cloud.azure.stop_cluster(ONE)
    engine = cloud.azure.engine
    engine.cluster(ONE).properties["powerState"] = {"code": "Stopped"}
    sweep(cloud)
    assert (record(cloud).finding, record(cloud).job.active) == ("ClusterStopped", False)
    cloud.clock.advance(3000)
    sweep(cloud)
    cloud.run()
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_stopped_cluster_is_announced_also_where_a_job_starts_it_again() -> None:
    cloud = ready(START)
    notifications = list[Notification]()
    around(cloud, "state", add_notification=notifications.append)
    stop_by_hand(cloud)
    sweep(cloud)
    cloud.run()
    lost, again = notifications
    assert (lost.kind, lost.reason, lost.over) == (NotificationKind.LOST, "ClusterStopped", False)
    assert (again.kind, again.key) == (NotificationKind.READY, lost.key)


def test_a_commit_for_a_stopped_cluster_starts_it_where_the_policy_says_so() -> None:
    cloud = ready(START)
    stop_by_hand(cloud)
    push(cloud, files(START + "  tags: {a: b}\n"))
    cloud.run()
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)


def test_a_start_that_azure_accepts_without_effect_is_sent_twice_and_then_left_to_a_person() -> None:
    cloud = ready(START)
    stop_by_hand(cloud)
    started = list[StartCluster]()

    def without_effect(start: StartCluster) -> WriteResponse:
        started.append(start)
        return WriteResponse()

    on_azure(cloud, StartCluster, without_effect)
    sweep(cloud)
    cloud.run(seconds=3600, until=lambda: False)
    assert len(started) == 2
    assert "it was started twice, and is stopped" in record(cloud).job.reason
    assert advice(cloud).startswith("Start the cluster with `az aks start`")


def test_a_suspended_cluster_and_one_that_is_not_ours_are_not_started() -> None:
    cloud = ready(START)
    push(cloud, files(START + suspended(cloud, 100)))
    cloud.run(seconds=600, until=lambda: False)
    stop_by_hand(cloud)
    sweep(cloud)
    cloud.run(seconds=600, until=lambda: False)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SUSPENDED}, False)
    cloud = MemoryCloud(throttle=False)
    foreign(cloud)
    stop_by_hand(cloud)
    push(cloud, files(START, annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=600, until=lambda: False)
    assert accepted(cloud)["start", "one"] == 0
    assert not runs(cloud)
