"""A small change waits behind no large one: it has a queue of its own, and is handed over first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import Draft
from shared.cluster.job import JobQueue
from shared.cluster.queues.envelopes import job_message
from shared.cluster.record_parts import Phase
from shared.ports.azure import PutGroup
from tests.support.fleet_files import all_at_once, cluster, fleet
from tests.support.hand_overs import CONFIG, CUT, plan_step, plan_steps
from tests.support.pipeline_runs import accepted, deliver_due, phases, push, record_of
from tests.support.replaced_ports import frozen_before

pytestmark = pytest.mark.lives

FEW = 2
SMALL, LARGE = ["a1", "a2"], [f"z{number}" for number in range(6)]


def changed(*names: str) -> dict[str, bytes]:
    """Return the fleet of all clusters with some of them changed."""
    files = {f"clusters/{name}/cluster.yaml": cluster(name, count=2) for name in names}
    return all_at_once(fleet(*SMALL, *LARGE, budget=9)) | files


def ready_fleet() -> MemoryCloud:
    """Return a cloud whose clusters are all Ready."""
    cloud = MemoryCloud(config=replace(CONFIG, limits=replace(CONFIG.limits, small_change=FEW)))
    push(cloud, changed())
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    return cloud


def queued(cloud: MemoryCloud, queue: str) -> set[str]:
    return {message.draft.session for message in cloud.broker.peek(queue)}


def serve(cloud: MemoryCloud, *queues: str, seconds: int = 300) -> None:
    """Let only the workers of some queues run for so long."""
    for _ in range(seconds):
        for queue in queues:
            deliver_due(cloud, queue)
        cloud.clock.advance(1)
        cloud.azure.complete_due()
        cloud.kubernetes.reconcile()


def test_a_small_change_becomes_ready_while_no_message_of_a_large_one_is_served() -> None:
    cloud = ready_fleet()
    push(cloud, changed(*LARGE))
    plan_steps(cloud)
    cloud.clock.advance(5)
    push(cloud, changed(*LARGE, *SMALL))
    plan_steps(cloud)
    assert (queued(cloud, "jobs"), queued(cloud, "changes")) == ({*LARGE}, {*SMALL})
    serve(cloud, "changes")
    assert {name for name, phase in phases(cloud).items() if phase is Phase.READY} == {*SMALL}
    serve(cloud, "jobs")
    assert set(phases(cloud).values()) == {Phase.READY}


def test_small_changes_in_a_row_are_a_large_one_once_they_are_too_many() -> None:
    cloud = ready_fleet()
    for number in range(1, 4):
        push(cloud, changed(*LARGE[:number]))
        plan_steps(cloud)
        cloud.clock.advance(5)
    assert (queued(cloud, "changes"), queued(cloud, "jobs")) == ({"z0", "z1"}, {"z2"})
    cloud.run()
    push(cloud, changed(*LARGE[:4]))
    plan_steps(cloud)
    assert queued(cloud, "changes") == {"z3"}


def test_a_push_between_the_parts_of_a_large_hand_over_is_handed_over_first() -> None:
    cloud = ready_fleet()
    cloud.with_ports(
        lambda ports: replace(ports, config=replace(CUT, limits=replace(CUT.limits, small_change=FEW)))
    )
    *larger, last = LARGE
    push(cloud, changed(*SMALL, *larger))
    plan_step(cloud)
    assert queued(cloud, "jobs") == {*SMALL, "z0"}
    cloud.clock.advance(5)
    push(cloud, changed(*SMALL, *larger, last))
    while not queued(cloud, "changes"):
        assert plan_step(cloud)
    assert queued(cloud, "changes") == {last}
    assert queued(cloud, "jobs") < {*SMALL, *larger}, "the large change is not handed over yet"
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}


def test_a_cluster_that_is_created_by_a_large_change_can_be_changed_by_a_small_one() -> None:
    cloud = MemoryCloud(config=replace(CONFIG, limits=replace(CONFIG.limits, small_change=FEW)))
    push(cloud, changed())
    plan_steps(cloud)
    serve(cloud, "jobs", seconds=2)
    assert record_of(cloud, "a1").job.step.last_write
    push(cloud, changed("a1"))
    plan_steps(cloud)
    assert record_of(cloud, "a1").job.queue is JobQueue.CHANGES
    serve(cloud, "changes", "jobs")
    assert set(phases(cloud).values()) == {Phase.READY}
    assert accepted(cloud)["create", "a1"] == 1


def test_a_step_that_runs_on_one_queue_is_awaited_on_the_other() -> None:
    cloud = MemoryCloud(config=replace(CONFIG, limits=replace(CONFIG.limits, small_change=FEW)))
    push(cloud, changed())
    plan_steps(cloud)
    writers: list[bool] = []

    def small_change_arrives() -> None:
        cloud.clock.advance(5)
        push(cloud, changed("a1"))
        plan_steps(cloud)
        assert queued(cloud, "changes") == {"a1"}
        before = len(cloud.azure.accepted)
        deliver_due(cloud, "changes")
        writers.append(len(cloud.azure.accepted) > before)

    frozen_before(cloud, PutGroup, small_change_arrives)
    lock = cloud.broker.accept_session("jobs", "a1")
    assert lock is not None
    cloud.deliver("jobs", lock, cloud.ports)
    assert writers == [False]
    serve(cloud, "changes")
    assert record_of(cloud, "a1").observed_generation == 2


@pytest.mark.parametrize("queue", [JobQueue.JOBS, JobQueue.CHANGES])
def test_a_message_runs_on_either_queue_and_its_job_decides_where_the_next_one_goes(queue: JobQueue) -> None:
    cloud = ready_fleet()
    push(cloud, changed("a1"))
    plan_steps(cloud)
    body = job_message(record_of(cloud, "a1")).model_dump_json()
    cloud.broker.send(queue, Draft(body.encode(), session="a1"))
    serve(cloud, queue, seconds=1)
    assert record_of(cloud, "a1").job.sequence > 1
    assert queued(cloud, "changes") == {"a1"}
    serve(cloud, "changes")
    assert record_of(cloud, "a1").observed_generation == 2


def test_a_delete_of_a_small_change_stays_with_the_deleter() -> None:
    cloud = ready_fleet()
    files = changed()
    del files["clusters/a1/cluster.yaml"]
    push(cloud, files)
    plan_steps(cloud)
    job = record_of(cloud, "a1").job
    assert (job.small_change, job.queue) == (True, JobQueue.DELETES)
    assert queued(cloud, "deletes") == {"a1"}
    cloud.run()
    assert "a1" not in phases(cloud)
