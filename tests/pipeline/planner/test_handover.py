"""The hand-over of a plan: some clusters at a time, within the limits of an invocation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import Counter as Tripwires
from localcloud.memory.memory_cloud import Crash, MemoryCloud, tripwired
from shared.jobs.errors import TooLarge, Unavailable
from shared.jobs.messages import Approval, PlanRequest
from shared.jobs.record import ClusterRecord, Phase
from shared.pipeline.api.clusters import fleet_view
from shared.pipeline.planner import planner
from shared.pipeline.planner.reporter import report_open_plans
from shared.ports import Handover, Message
from tests.support.fleet_files import cluster, fleet
from tests.support.hand_overs import CONFIG, CUT, plan_step, plan_steps
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.replaced_ports import Around, around, frozen, overtake

NAMES = [f"c{number:02}" for number in range(12)]


class Counts:
    """What a hand-over reads, saves and sends, counted by cluster."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.read, self.saved, self.sent = Counter[str](), Counter[str](), Counter[str]()
        self.events, self.batches = Counter[str](), list[int]()
        state, jobs = cloud.ports.state, cloud.ports.jobs

        def read(name: str) -> ClusterRecord | None:
            self.read[name] += 1
            return state.cluster(name)

        def save(record: ClusterRecord) -> ClusterRecord:
            self.saved[record.name] += 1
            return state.save(record)

        def append(events: Any) -> None:
            self.events.update(event.cluster for event in events)
            state.append(events)

        def send(*messages: Message) -> None:
            self.batches.append(len(messages))
            self.sent.update(message.session for message in messages)
            jobs.send(*messages)

        around(cloud, "state", cluster=read, save=save, append=append)
        around(cloud, "jobs", send=send)


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
    cloud = MemoryCloud(config=replace(CUT, handover_seconds=60))
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


def test_an_approval_continues_as_approved() -> None:
    cloud = MemoryCloud(config=replace(CUT, handover_clusters=1))
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


def test_a_planner_that_takes_over_touches_only_what_the_other_one_may_still_save() -> None:
    cloud = MemoryCloud(config=replace(CONFIG, handover_clusters=3))
    push(cloud, fleet(*NAMES))
    plan_steps(cloud)
    cloud.run()
    files = {f"clusters/{name}/cluster.yaml": cluster(name, count=2) for name in NAMES}
    push(cloud, fleet(*NAMES) | files)
    counts = Counts(cloud)
    number = itertools.count()
    append = cloud.ports.state.append

    def overtaken(events: Any) -> None:
        append(events)
        if next(number) == 3:  # the first cluster of the second part
            overtake(cloud, fleet(*NAMES) | files | {"clusters/c11/cluster.yaml": cluster("c11", count=3)})

    around(cloud, "state", append=overtaken)
    plan_step(cloud)
    assert set(counts.read) == set(NAMES[3:6])
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)


def test_a_planner_frozen_in_a_part_saves_nothing_after_another_one_started() -> None:
    cloud = MemoryCloud(config=CONFIG)
    push(cloud, fleet("one", "two"))
    cloud.run()
    files = {f"clusters/{name}/cluster.yaml": cluster(name, count=2) for name in ("one", "two")}
    push(cloud, fleet("one", "two") | files)
    frozen(cloud, "state", "save", lambda: overtake(cloud, fleet("one", "two")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["update-pool", "system"] == 0


def test_a_crash_at_any_call_of_a_hand_over_in_parts_loses_and_repeats_nothing() -> None:
    def run(tripwires: Tripwires) -> None:
        cloud = MemoryCloud(config=replace(CUT, handover_clusters=1))
        push(cloud, fleet("one", "two"))
        cloud.with_ports(lambda ports: tripwired(ports, tripwires))
        cloud.run(until=lambda: cloud.state.fleet().commit != "")
        counts.append(tripwires.calls)
        cloud.run()
        assert phases(cloud) == dict.fromkeys(("one", "two"), Phase.READY)
        assert {accepted(cloud)["create", name] for name in ("one", "two")} == {1}
        assert (cloud.dead_letters, cloud.state.fleet().handover) == ([], None)

    counts: list[int] = []
    run(Tripwires())
    calls = counts[0]
    assert calls > 20
    for point in range(2 * calls):
        run(Tripwires(point))


def test_after_a_crash_between_save_and_send_the_message_is_sent_by_the_next_planner() -> None:
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))

    def crash(*_: Message) -> None:
        raise Crash

    with pytest.raises(Crash):
        planner.handle(PlanRequest(), sending_by(cloud, crash))
    counts = Counts(cloud)
    planner.handle(PlanRequest(), cloud.ports)
    assert counts.saved == counts.sent == dict.fromkeys(NAMES[:6], 1)  # of three by ``supersede``
    assert counts.batches == [3, 3]


def sending_by(cloud: MemoryCloud, send: Callable[..., None]) -> Any:
    jobs: Any = Around(cloud.ports.jobs, send=send)
    return replace(cloud.ports, jobs=jobs)


def test_records_that_are_too_large_do_not_stop_a_hand_over_in_parts() -> None:
    cloud = MemoryCloud(config=CUT)
    commit = push(cloud, fleet(*NAMES))
    state = cloud.state

    def refuse(record: ClusterRecord) -> ClusterRecord:
        if record.name in NAMES[:4]:
            raise TooLarge("the record has too many bytes")
        return state.save(record)

    around(cloud, "state", save=refuse)
    cloud.run(until=lambda: cloud.state.fleet().commit == commit)
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES[4:], Phase.READY)
    assert "too many bytes" in status(cloud, commit)[1]


def test_an_error_of_the_state_in_a_part_has_the_rest_handed_over_later() -> None:
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))
    state, number = cloud.state, itertools.count()

    def sometimes(record: ClusterRecord) -> ClusterRecord:
        if next(number) == 4:
            raise Unavailable("Table Storage did not answer")
        return state.save(record)

    around(cloud, "state", save=sometimes)
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)


def test_what_the_version_before_was_at_is_superseded_and_sent_as_a_whole() -> None:
    cloud = MemoryCloud(config=CONFIG)
    commit = push(cloud, fleet(*NAMES))
    plan_steps(cloud)
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    cloud.state.save_plan(replace(plan_record, plan=replace(plan_record.plan, applied=False)))
    cloud.state.save_fleet(replace(cloud.state.fleet(), commit="", planning=commit, handover=None))
    counts = Counts(cloud)
    planner.handle(PlanRequest(), cloud.ports)
    assert counts.read == counts.saved == counts.sent == dict.fromkeys(NAMES, 1)
