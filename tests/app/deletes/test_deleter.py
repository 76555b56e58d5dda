"""Deletes run in an app of their own: two queues for the jobs of a cluster, and one record that decides."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.app.worker import worker
from shared.cluster.failures.errors import Unavailable
from shared.cluster.job import JobQueue
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.messages import JobMessage
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports.azure import DeleteCluster, PutCluster, WriteResponse
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, deliver_due, one_step_a_message, phases, push, ready
from tests.support.replaced_ports import around, on_azure

pytestmark = pytest.mark.lives


def deleting() -> MemoryCloud:
    """Return a cloud whose one cluster is to be deleted; the first message of that job waits."""
    cloud = ready("one")
    push(cloud, fleet_files.fleet())
    while not record(cloud).deleting:
        assert cloud.step()
    deliver_due(cloud, "plans")
    return cloud


def record(cloud: MemoryCloud) -> ClusterRecord:
    (found,) = cloud.state.clusters()
    return found


def message(cloud: MemoryCloud) -> JobMessage:
    return job_message(record(cloud))


def test_a_delete_waits_in_the_queue_of_the_deleter_alone() -> None:
    cloud = deleting()
    assert [cloud.broker.counts(queue).active for queue in ("jobs", "changes", "deletes")] == [0, 0, 1]


def test_a_message_of_the_worker_deletes_nothing_whatever_it_names() -> None:
    cloud = one_step_a_message(deleting())
    while record(cloud).job.step.name is not Step.DELETE_CLUSTER:
        assert cloud.step()
    named = message(cloud)
    for sequence in range(named.sequence + 2):
        worker.handle(named.model_copy(update={"sequence": sequence}), JobQueue.JOBS, cloud.ports)
    assert record(cloud).job.lease is None
    assert accepted(cloud)["delete", "one"] == 0


def test_a_message_of_the_deleter_changes_no_cluster() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    while not cloud.state.clusters():
        assert cloud.step()
    before = record(cloud)
    worker.handle(message(cloud), JobQueue.DELETES, cloud.ports)
    assert record(cloud) == before
    assert not accepted(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_delete_that_is_accepted_while_the_worker_runs_a_step_waits_for_its_lease() -> None:
    cloud = ready("one")
    azure, during = cloud.ports.azure, []

    def meanwhile(write: PutCluster) -> WriteResponse:
        push(cloud, fleet_files.fleet())
        while not record(cloud).deleting:
            assert cloud.step()
        for _ in range(5):
            cloud.step()
        during.append((record(cloud).job.lease, accepted(cloud)["delete", "one"]))
        return azure.call(write)

    on_azure(cloud, PutCluster, meanwhile)
    changed = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra="  tags: {a: b}\n")}
    push(cloud, fleet_files.fleet("one") | changed)
    cloud.run()
    ((lease, deleted),) = during
    assert (lease is not None, deleted) == (True, 0)
    assert cloud.state.clusters() == []
    assert accepted(cloud)["delete", "one"] == 1


def test_a_deleter_that_cannot_read_the_state_postpones_its_message_in_its_own_queue() -> None:
    cloud = deleting()
    back, read = cloud.clock() + timedelta(seconds=100), cloud.state.cluster

    def away(name: str) -> ClusterRecord | None:
        if cloud.clock() < back:
            raise Unavailable("the tables do not answer")
        return read(name)

    around(cloud, "state", cluster=away)
    assert cloud.step()
    assert cloud.broker.counts("deletes").scheduled == 1
    for queue in ("jobs", "changes"):
        assert (cloud.broker.counts(queue).active, cloud.broker.counts(queue).scheduled) == (0, 0)
    cloud.run()
    assert cloud.state.clusters() == []


@pytest.mark.parametrize("times", [1, 3])
def test_a_deleter_that_dies_is_continued_by_the_timer_and_deletes_once(times: int) -> None:
    cloud = deleting()
    azure, deaths = cloud.ports.azure, list[WriteResponse]()

    def dies(write: DeleteCluster) -> WriteResponse:
        if len(deaths) < times:
            deaths.append(azure.call(write))
            raise Crash
        return azure.call(write)

    on_azure(cloud, DeleteCluster, dies)
    cloud.run()
    assert cloud.state.clusters() == []
    assert accepted(cloud)["delete", "one"] == 1


def test_a_dead_letter_of_the_deleter_fails_the_delete_with_its_reason() -> None:
    cloud = deleting()
    letter = message(cloud).model_dump_json().encode()
    received = ReceivedDeadLetter("deletes", "1:m", cloud.clock(), letter, letter.decode(), reason="TooOften")
    handle_dead_letter(received, cloud.ports)
    assert record(cloud).phase is Phase.FAILED
    assert "the queue gave up the message of tombstone: TooOften" in record(cloud).job.reason
    assert cloud.state.count_dead_letters() == 0
