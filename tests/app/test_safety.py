"""Failures around the pipeline: nothing is lost, repeated or changed without need."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery import missed_work
from shared.app.worker import worker
from shared.cluster.failures.errors import InvalidManifest, Throttled, Unauthorized, Unavailable
from shared.cluster.job import Delay, JobQueue, Lease, NextRun
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.messages import JobMessage
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import CommitStatus, Message
from shared.ports.azure import AzureCall, GetCluster, PutCluster, WriteResponse
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, phases, push, ready, record_of, status
from tests.support.replaced_ports import around, on_azure

pytestmark = pytest.mark.lives


def test_a_worker_frozen_before_its_write_does_not_restore_a_deleted_cluster() -> None:
    cloud = MemoryCloud()
    azure = cloud.ports.azure

    def late(read: GetCluster) -> Json | None:
        seen = azure.call(read)
        on_azure(cloud, GetCluster, azure.call)
        cloud.clock.advance(120)
        push(cloud, fleet_files.fleet())
        cloud.run()
        assert phases(cloud) == {}
        return seen

    push(cloud, fleet_files.fleet("one"))
    on_azure(cloud, GetCluster, late)
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud)["create", "one"] == 0


def test_a_restored_cluster_is_created_even_after_a_crash_at_the_finalize_step() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: phases(cloud).get("two") is Phase.DELETING)
    push(cloud, fleet_files.fleet("one", "two"))
    forget = cloud.state.delete

    def dies(record: Any) -> None:
        forget(record)
        around(cloud, "state", delete=forget)
        raise Crash

    around(cloud, "state", delete=dies)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_a_cluster_that_azure_never_let_us_create_can_be_removed() -> None:
    cloud = MemoryCloud()

    def refuse(*_: object) -> None:
        raise Unauthorized("no role in this subscription")

    on_azure(cloud, AzureCall, refuse)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}


def test_the_next_commit_retries_failed_deletes_and_transient_failures() -> None:
    cloud = ready("one", "two")
    azure = cloud.ports.azure

    def down(_: GetCluster) -> None:
        raise Unavailable("Azure is down")

    on_azure(cloud, GetCluster, down)
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=2)
    push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.FAILED}
    on_azure(cloud, GetCluster, azure.call)
    commit = push(cloud, files | {"README.md": b"again"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert status(cloud, commit) == ("success", "2 of 2 clusters in sync (2 retry)")


def test_an_unforeseen_error_fails_the_job_with_its_name_after_a_few_attempts() -> None:
    cloud = MemoryCloud()
    calls: list[int] = []

    def broken(_: GetCluster) -> None:
        calls.append(1)
        raise KeyError("surprise")

    on_azure(cloud, GetCluster, broken)
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "Unexpected: KeyError in cluster; the log has the details" in status(cloud, commit)[1]
    assert len(calls) == 6


each_invalid = pytest.mark.parametrize(
    "components",
    [
        b"apiVersion: v1\nkind: Namespace\nmetadata: {}\n",
        b"apiVersion: v1\nkind: Namespace\nmetadata: {name: 5}\n",
        b"a: &x [1]\nb: *x\n",
        b"[]\n",
        b"",
        b"{" * 5000,
    ],
)


@each_invalid
def test_a_plan_refuses_an_invalid_components_file_with_its_name(components: bytes) -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one") | {"flux/gotk-components.yaml": components})
    cloud.run()
    assert phases(cloud) == {}
    refused = "one: the cluster is not created, because what Flux would apply is invalid:"
    assert status(cloud, commit)[1].startswith(f"{refused} flux/gotk-components.yaml:")


@each_invalid
def test_an_invalid_components_file_fails_with_its_name_where_flux_follows_the_branch(
    components: bytes,
) -> None:
    cloud = MemoryCloud()
    files = fleet_files.following_branch(fleet_files.fleet("one"))
    commit = push(cloud, files | {"flux/gotk-components.yaml": components})
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "InvalidManifest: flux/gotk-components.yaml:" in status(cloud, commit)[1]


@pytest.mark.parametrize(
    ("error", "calls_at_most"),
    [(InvalidManifest("No commit found for SHA"), 1), (Throttled("slow down", retry_after=600), 10)],
)
def test_a_status_that_github_refuses_prevents_no_plan(error: Exception, calls_at_most: int) -> None:
    cloud = MemoryCloud()
    calls: list[str] = []

    def refuse(commit: str, _: CommitStatus) -> None:
        calls.append(commit)
        raise error

    around(cloud, "git_host", set_status=refuse)
    push(cloud, fleet_files.fleet("one"))
    cloud.run(3600)
    assert phases(cloud) == {"one": Phase.READY}
    assert len(calls) <= calls_at_most
    assert cloud.dead_letters == []


def seconds_until_ready(skew: float) -> float:
    """Return how long one cluster takes when our clock is so many seconds behind that of Service Bus."""
    cloud = MemoryCloud()
    began = cloud.clock()
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - timedelta(seconds=skew)))
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: phases(cloud) == {"one": Phase.READY})
    return (cloud.clock() - began).total_seconds()


@pytest.mark.parametrize("skew", [1.5, 2.5])
def test_a_clock_behind_service_bus_costs_little_time(skew: float) -> None:
    assert seconds_until_ready(skew) <= seconds_until_ready(0) + 5


@pytest.mark.parametrize("reason", ["another worker has the lease", "it is not due"])
def test_all_early_messages_become_one_for_the_time_of_the_record(reason: str) -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: bool(cloud.state.clusters()))
    (record,) = cloud.state.clusters()
    at = cloud.clock() + timedelta(seconds=90)
    changed = (
        {"lease": Lease("other", at, cloud.clock())}
        if reason.startswith("another")
        else {"next_run": NextRun(at, Delay.WAIT, "Azure is at work")}
    )
    early = cloud.state.save(replace(record, job=replace(record.job, **changed)))
    before = len(cloud.broker.peek("changes", session="one"))
    for _ in range(5):
        cloud.clock.advance(7)
        worker.handle(job_message(early), JobQueue.CHANGES, cloud.ports)
    waiting = cloud.broker.peek("changes", session="one")
    assert len(waiting) == before + 1
    assert waiting[-1].draft.at == at


def test_a_backlog_is_not_answered_with_ever_more_messages() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet(*(f"c{n}" for n in range(20))))
    cloud.step()
    for _ in range(120):  # two hours without a worker
        cloud.clock.advance(60)
        missed_work.resend_overdue(cloud.ports)
    assert sum(cloud.broker.counts(queue).active for queue in JobQueue) <= 20 * 20


def test_a_message_delivered_again_after_the_job_has_no_effect() -> None:
    cloud = ready("one")
    record = cloud.state.clusters()[0]
    before = accepted(cloud)
    for sequence in range(record.job.sequence + 2):
        message = JobMessage(cluster="one", uid=record.uid, generation=1, sequence=sequence)
        worker.handle(message, JobQueue.CHANGES, cloud.ports)
    cloud.run()
    assert accepted(cloud) == before
    assert cloud.state.clusters() == [record]


def test_a_step_that_always_kills_its_worker_fails_and_is_reported() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one", "two"))
    azure, deaths = cloud.ports.azure, []

    def dies(write: PutCluster) -> WriteResponse:
        if write.target.name == "one":
            deaths.append(write)
            raise Crash
        return azure.call(write)

    on_azure(cloud, PutCluster, dies)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}
    record = record_of(cloud, "one")
    assert "the worker died 8 times in cluster" in record.job.reason
    assert len(deaths) == 8


def test_a_queue_that_is_unavailable_for_a_while_loses_no_job() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    cloud.step()
    back, send = cloud.clock() + timedelta(seconds=200), cloud.ports.changes.send

    def away(message: Message) -> None:
        if cloud.clock() < back:
            raise Unavailable("Service Bus does not answer")
        send(message)

    around(cloud, "changes", send=away)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cloud.dead_letters == []
    assert accepted(cloud)["create", "one"] == 1
