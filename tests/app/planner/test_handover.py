"""The hand-over of a plan: some clusters at a time, within the limits of an invocation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.app.planner import planner
from shared.app.planner.reporter import report_open_plans
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import Handover
from tests.support.fleet_files import cluster, fleet
from tests.support.hand_overs import (
    CONFIG,
    CUT,
    NAMES,
    ONE_BY_ONE,
    Counts,
    plan_step,
    plan_steps,
    waiting_plans,
)
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.replaced_ports import around, frozen

pytestmark = pytest.mark.lives


def handover_of(cloud: MemoryCloud) -> Handover:
    handover = cloud.state.fleet().handover
    assert handover is not None
    return handover


def test_a_plan_reads_no_record_a_second_time_and_saves_and_sends_each_once() -> None:
    cloud = MemoryCloud(config=CONFIG)
    push(cloud, fleet(*NAMES))
    counts = Counts(cloud)
    plan_steps(cloud)
    assert counts.read == {}
    assert counts.saved == counts.sent == counts.events == dict.fromkeys(NAMES, 1)
    assert counts.batches == [12]


def test_a_worker_that_saved_its_step_meanwhile_costs_one_more_read() -> None:
    cloud = MemoryCloud(config=CONFIG)
    push(cloud, fleet("one"))
    cloud.run()
    push(cloud, fleet() | {"clusters/one/cluster.yaml": cluster("one", count=2)})

    def step() -> None:
        record = cloud.state.cluster("one")
        assert record is not None
        cloud.state.save(record)

    frozen(cloud, "state", "save_plan", step)
    counts = Counts(cloud)
    plan_steps(cloud)
    assert (counts.read["one"], counts.saved["one"], counts.sent["one"]) == (1, 2, 1)


def test_a_plan_that_is_made_again_sends_nothing_again() -> None:
    cloud = MemoryCloud(config=CONFIG)
    push(cloud, fleet(*NAMES))
    plan_steps(cloud)
    counts = Counts(cloud)
    planner.handle(PlanRequest(again=True), cloud.ports)
    assert (counts.read, counts.saved, counts.sent) == ({}, {}, {})


def test_a_hand_over_that_takes_long_continues_by_messages_and_does_nothing_twice() -> None:
    cloud = MemoryCloud(config=CUT)
    commit = push(cloud, fleet(*NAMES))
    counts = Counts(cloud)
    done = []
    while cloud.state.fleet().commit != commit:
        assert plan_step(cloud)
        done.append(sum(counts.sent.values()))
    assert done == [3, 6, 9, 12]
    assert counts.read == {}
    assert counts.saved == counts.sent == counts.events == dict.fromkeys(NAMES, 1)
    assert cloud.state.fleet().handover is None
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)
    assert status(cloud, commit) == ("success", "12 of 12 clusters in sync (12 create)")


@pytest.mark.lives
def test_the_commit_and_the_fleet_say_how_far_it_is() -> None:
    cloud = MemoryCloud(config=CUT)
    commit = push(cloud, fleet(*NAMES))
    plan_step(cloud)
    plan_step(cloud)
    report_open_plans(cloud.ports)
    assert status(cloud, commit) == ("pending", "6 of 12 clusters handed over")
    assert len(cloud.state.clusters()) == 6
    assert fleet_view(cloud.ports)["waiting"] == f"{commit[:8]}: 6 of 12 clusters handed over"
    cloud.run()
    assert fleet_view(cloud.ports)["waiting"] == ""


def test_it_is_cut_by_the_time_that_it_takes() -> None:
    cloud = MemoryCloud(config=replace(CUT, limits=replace(CUT.limits, handover_seconds=60)))
    push(cloud, fleet(*NAMES))
    state = cloud.state

    def slow(record: ClusterRecord) -> ClusterRecord:
        cloud.clock.advance(11)
        return state.save(record)

    around(cloud, "state", save=slow)
    plan_step(cloud)
    assert len(state.clusters()) == 6


def test_a_newer_push_comes_in_between_and_what_is_removed_by_it_is_not_handed_over() -> None:
    cloud = MemoryCloud(config=CUT)
    first = push(cloud, fleet(*NAMES))
    plan_step(cloud)
    cloud.clock.advance(60)
    second = push(cloud, fleet(*NAMES[:5]))
    counts = Counts(cloud)
    plan_steps(cloud)
    assert cloud.state.fleet().commit == second
    assert counts.sent == counts.saved == dict.fromkeys(NAMES[3:5], 1)
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES[:5], Phase.READY)
    assert status(cloud, first)[0] == "error"
    created = {name: number for (kind, name), number in accepted(cloud).items() if kind == "create"}
    assert created == dict.fromkeys(NAMES[:5], 1)


@pytest.mark.lives
def test_a_push_that_waits_comes_before_the_rest_of_a_hand_over() -> None:
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))
    pushes = [fleet(*NAMES, "urgent")]

    def saves(record: ClusterRecord) -> ClusterRecord:
        while pushes:
            cloud.clock.advance(2)
            push(cloud, pushes.pop())
        return cloud.state.save(record)

    around(cloud, "state", save=saves)
    plan_step(cloud)
    assert [request.reason for request in waiting_plans(cloud)] == ["push", "handover"]
    plan_step(cloud)
    assert cloud.state.fleet().planning == cloud.repository.head("main")
    cloud.run()
    assert phases(cloud) == dict.fromkeys([*NAMES, "urgent"], Phase.READY)


def test_an_approval_continues_as_approved() -> None:
    cloud = MemoryCloud(config=ONE_BY_ONE)
    push(cloud, fleet("one", "two", "three"))
    cloud.run()
    commit = push(cloud, fleet(budget=0))
    cloud.run()
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    assert plan_record.plan.deletes_needing_approval == {"one", "two", "three"}
    approval = Approval(commit=commit, clusters=("one", "three", "two"), by="ann", at=cloud.clock())
    planner.handle(PlanRequest(commit=commit, again=True, approval=approval), cloud.ports)
    assert handover_of(cloud).done == 1
    cloud.run()
    assert phases(cloud) == {}
