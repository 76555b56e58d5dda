"""A commit that creates many clusters starts them at the pace at which Azure lets them end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.pace import PACE
from shared.cluster.record_parts import Phase
from tests.support.fleet_files import cluster, fleet
from tests.support.hand_overs import CONFIG, plan_step, plan_steps
from tests.support.pipeline_runs import phases, push, record_of

pytestmark = pytest.mark.lives

MANY = [f"c{number:02}" for number in range(PACE.usable + 8)]


def planned(handover_clusters: int) -> MemoryCloud:
    """Return a cloud whose planner has handed many new clusters over, some in each message."""
    parts = replace(
        CONFIG, limits=replace(CONFIG.limits, handover_clusters=handover_clusters, handover_seconds=0)
    )
    cloud = MemoryCloud(config=parts)
    push(cloud, fleet(*MANY))
    plan_steps(cloud)
    return cloud


def test_the_first_clusters_start_at_once_and_each_other_one_says_when_and_why() -> None:
    cloud = planned(100)
    at_once = cloud.state.clusters()[: PACE.usable]
    (planned_at,) = {record.job.next_run.at for record in at_once}
    last = cloud.state.clusters()[-1].job
    assert last.next_run.at - planned_at > timedelta(seconds=7)
    assert last.step.last_progress == last.next_run.at
    view = why_view(MANY[-1], cloud.ports)
    assert view is not None
    assert "Azure lets 59 clusters of a subscription a minute be completed" in view["doing"] + view["next"]
    assert view["suggestedAction"] == "No action needed."


def test_a_hand_over_in_parts_gives_the_times_of_one_in_a_single_message() -> None:
    whole, parts = planned(100), planned(10)
    starts = [
        [record.job.next_run.at - cloud.state.clusters()[0].created for record in cloud.state.clusters()]
        for cloud in (whole, parts)
    ]
    assert starts[0][PACE.usable :] == starts[1][PACE.usable :]


def test_no_write_of_a_large_commit_and_no_credential_waits_for_a_token() -> None:
    cloud = planned(100)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    found = [event for name in MANY for event in cloud.state.events(name, 100)]
    waits = [event.message for event in found if event.reason == "RateLimited"]
    assert len(waits) < 8
    assert all("Azure's read limit" in message for message in waits)


def test_a_commit_that_changes_a_cluster_before_its_start_does_not_wait_for_it() -> None:
    cloud = planned(100)
    name = MANY[-1]
    push(cloud, fleet(*MANY) | {f"clusters/{name}/cluster.yaml": cluster(name, count=2)})
    cloud.run(seconds=5)
    record = record_of(cloud, name)
    assert record.generation == 2
    assert record.azure.creation_requested


def test_a_hand_over_that_takes_long_or_is_continued_late_does_not_move_the_starts() -> None:
    parts = replace(CONFIG, limits=replace(CONFIG.limits, handover_clusters=10, handover_seconds=0))
    cloud = MemoryCloud(config=parts)
    push(cloud, fleet(*MANY))
    while cloud.state.fleet().planning or not cloud.state.clusters():
        plan_step(cloud)
        cloud.clock.advance(1)
    first, last = cloud.state.clusters()[0], cloud.state.clusters()[-1]
    assert last.created - first.created >= timedelta(seconds=4)
    waits = (last.job.next_run.at - first.created).total_seconds()
    assert waits == pytest.approx(8 / PACE.per_second, abs=0.001)
