"""The activity log is minutes late: what a sweep found without a name has one with a later sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.queues.messages import SweepRequest
from shared.ports.azure import GetCluster
from shared.ports.azure.clusters import ListActivity
from tests.support.activity import asked
from tests.support.fleet_files import all_at_once
from tests.support.notifications import notifying
from tests.support.notified import OPS, kinds
from tests.support.one_cluster import ONE, files, record, suspended
from tests.support.pipeline_runs import cloud_with, push, status
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import handle, reads_of, sweep

pytestmark = pytest.mark.lives

HOURS = timedelta(hours=5)


SOMEBODY = "somebody@example.com"


def deleted(cloud: MemoryCloud) -> None:
    with cloud.azure.called_by(SOMEBODY):
        cloud.azure.delete_cluster(ONE)


def stopped(cloud: MemoryCloud) -> None:
    cloud.azure.interventions.stop(ONE)


def fleet(extra: str = "") -> dict[str, bytes]:
    return notifying(files(extra), OPS)


def ready(extra: str = "") -> MemoryCloud:
    cloud = cloud_with(fleet(), throttle=False)
    if extra:
        push(cloud, fleet(extra))
        cloud.run(seconds=60, until=lambda: False)
    return cloud


def late(cloud: MemoryCloud) -> Callable[[], None]:
    """Let the log lack everything; what is returned lets it have all of it."""
    azure = cloud.ports.azure
    lacking = True

    def read(operation: Any) -> Any:
        answer = azure.call(operation)
        return replace(answer, documents=()) if lacking else answer

    def arrives() -> None:
        nonlocal lacking
        lacking = False

    on_azure(cloud, ListActivity, read)
    return arrives


def lost(cloud: MemoryCloud) -> int:
    """Return how many times the loss of the cluster was announced."""
    for _ in range(2):
        wake_notifier(cloud.ports)
        cloud.run(700)
    return len([kind for kind, _, over in kinds(cloud) if not over])


@pytest.mark.parametrize("change", [deleted, stopped])
def test_a_later_sweep_completes_the_report_and_announces_nothing_again(change: Any) -> None:
    cloud = ready()
    arrives = late(cloud)
    change(cloud)
    sweep(cloud)
    since = record(cloud).job.step.failure
    assert SOMEBODY not in record(cloud).job.reason
    assert lost(cloud) == 1
    commit = cloud.state.fleet().commit
    before = status(cloud, commit)
    reads = reads_of(cloud)
    sweep(cloud)
    assert (record(cloud).job.step.failure, status(cloud, commit)) == (since, before)
    arrives()
    sweep(cloud)
    assert record(cloud).job.reason.endswith(f" UTC by {SOMEBODY}")
    assert (
        lost(cloud),
        status(cloud, commit)[0],
        [read for read in reads if isinstance(read, GetCluster)],
    ) == (1, "failure", [])
    after = record(cloud).job.step.failure
    assert since is not None
    assert after is not None
    assert after.since == since.since
    log = asked(cloud)
    sweep(cloud)
    assert log == [], "what is known is not asked again"


def test_a_refresh_of_the_cluster_completes_it_too() -> None:
    cloud = ready()
    arrives = late(cloud)
    deleted(cloud)
    sweep(cloud)
    arrives()
    handle(cloud, SweepRequest(sweep="asked", clusters=("one",)))
    assert record(cloud).job.reason.endswith(f" UTC by {SOMEBODY}")


@pytest.mark.parametrize("change", [deleted, stopped])
def test_a_suspended_cluster_is_completed_too(change: Any) -> None:
    cloud = ready()
    push(cloud, fleet(suspended(cloud, 100)))
    cloud.run(seconds=60, until=lambda: False)
    arrives = late(cloud)
    change(cloud)
    sweep(cloud)
    in_sync = record(cloud).condition("InSync")
    assert in_sync is not None
    assert SOMEBODY not in in_sync.message
    assert lost(cloud) == 1
    arrives()
    sweep(cloud)
    in_sync = record(cloud).condition("InSync")
    assert in_sync is not None
    assert in_sync.message.endswith(f" UTC by {SOMEBODY}")
    assert lost(cloud) == 1


def test_a_log_that_stays_without_it_is_asked_for_some_hours_and_no_longer() -> None:
    cloud = ready()
    late(cloud)
    deleted(cloud)
    sweep(cloud)
    for _ in range(3):
        cloud.clock.advance(HOURS.total_seconds())
        sweep(cloud)
    log = asked(cloud)
    sweep(cloud)
    assert log == []


def test_the_job_of_a_commit_keeps_who_deleted_the_cluster() -> None:
    cloud = ready()
    deleted(cloud)
    sweep(cloud)
    push(cloud, all_at_once(fleet("  tags: {cost: a}\n")))
    cloud.run()
    assert (record(cloud).finding, record(cloud).generation) == ("ClusterMissing", 2)
    assert record(cloud).job.reason.endswith(f" UTC by {SOMEBODY}")


def test_a_cluster_that_is_stopped_again_has_who_did_that() -> None:
    cloud = ready()
    stopped(cloud)
    sweep(cloud)
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    cloud.clock.advance(HOURS.total_seconds())
    moment = f"{cloud.clock():%Y-%m-%d %H:%M}"
    stopped(cloud)
    sweep(cloud)
    assert record(cloud).job.reason.endswith(f"; stopped {moment} UTC by {SOMEBODY}")
