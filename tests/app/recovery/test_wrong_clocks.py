"""An instance whose clock is wrong for a moment delays nothing for long, and makes no write unsafe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import RateLimiter
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.why import why_view
from shared.cluster.job import FARTHEST, Delay, Job, Lease, NextRun
from shared.cluster.record import ClusterRecord, Phase
from tests.support import fleet_files
from tests.support.one_cluster import cluster, files, ready, record
from tests.support.pipeline_runs import phases, push, status

MONTH = timedelta(days=30)


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud in which Azure is creating the cluster "one", and no message waits for it."""
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: bool(cloud.state.clusters()) and "creating" in record(cloud).job.reason)
    for message in cloud.broker.peek("changes"):
        cloud.broker.cancel_scheduled("changes", message.sequence)
    return cloud


def save_job(cloud: MemoryCloud, **changed: object) -> ClusterRecord:
    job: Job = replace(record(cloud).job, **changed)  # type: ignore[arg-type]
    return cloud.state.save(replace(record(cloud), job=job))


def becomes_ready(cloud: MemoryCloud) -> bool:
    cloud.run(FARTHEST.total_seconds(), until=lambda: phases(cloud) == {"one": Phase.READY})
    return phases(cloud) == {"one": Phase.READY}


def test_a_wait_of_a_month_is_over_at_once(cloud: MemoryCloud) -> None:
    save_job(cloud, next_run=NextRun(cloud.clock() + MONTH, Delay.WAIT, "Azure is creating the cluster"))
    assert becomes_ready(cloud)


def test_a_lease_of_a_month_of_a_worker_that_died_is_over_at_once(cloud: MemoryCloud) -> None:
    save_job(cloud, lease=Lease("died", cloud.clock() + MONTH, cloud.clock()))
    assert becomes_ready(cloud)


def test_the_time_of_the_next_check_is_shown_as_it_will_be(cloud: MemoryCloud) -> None:
    save_job(cloud, next_run=NextRun(cloud.clock() + MONTH, Delay.WAIT, "Azure is creating the cluster"))
    why, detail = why_view("one", cloud.ports), cluster_detail("one", cloud.ports)
    now = cloud.clock().isoformat(timespec="seconds")
    assert why is not None
    assert detail is not None
    assert (why["nextAt"], detail.get("nextCheckAt")) == (now, now)


def test_a_commit_status_does_not_wait_for_a_month(cloud: MemoryCloud) -> None:
    commit = cloud.state.fleet().commit
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    cloud.state.save_plan(replace(plan_record, not_before=cloud.clock() + MONTH))
    assert becomes_ready(cloud)
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_reservation_of_a_month_ahead_is_not_kept(cloud: MemoryCloud) -> None:
    near, far = cloud.clock() + timedelta(hours=1), cloud.clock() + MONTH
    reserved: Mapping[str, tuple[datetime, ...]] = {"s|arm-read": (near, far)}
    saved = save_job(cloud, next_run=NextRun(near, Delay.RATE_LIMIT, "waits", reservations=reserved))
    assert RateLimiter(saved, cloud.ports).reserved == {"s|arm-read": (near,)}


def accepted_by_a_clock_that_is_behind(cloud: MemoryCloud, *commits: dict[str, bytes]) -> None:
    """Let a planner whose clock is a month behind accept commits, and nobody else act meanwhile."""
    real = cloud.ports
    for manifests in commits:
        commit = push(cloud, manifests)
        cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - MONTH))
        while record(cloud).commit != commit:
            lock = cloud.broker.accept_session("plans")
            if lock is None:
                cloud.clock.advance(1)
            else:
                cloud.deliver("plans", lock, cloud.ports)
        cloud.ports = real


def test_a_change_that_a_clock_which_is_behind_accepted_waits_for_nobody() -> None:
    cloud = ready()
    cloud.clock.advance(86400)
    commits = [files(f"  tags: {{team: {team}}}\n") for team in ("shop", "books")]
    accepted_by_a_clock_that_is_behind(cloud, *commits)
    cloud.run(600)
    assert phases(cloud) == {"one": Phase.READY}, record(cloud).job.reason
    assert cluster(cloud)["tags"]["team"] == "books"
    assert not record(cloud).rebuilding


def test_a_removal_that_a_clock_which_is_behind_accepted_waits_for_nobody() -> None:
    cloud = ready()
    cloud.clock.advance(86400)
    accepted_by_a_clock_that_is_behind(cloud, fleet_files.fleet())
    cloud.run(600)
    assert phases(cloud) == {}


def test_a_job_of_a_clock_that_was_ahead_moves_no_later_one(cloud: MemoryCloud) -> None:
    saved = save_job(cloud, started=cloud.clock() + MONTH)
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run(until=lambda: record(cloud).generation > saved.generation)
    assert record(cloud).job.started <= cloud.clock()
