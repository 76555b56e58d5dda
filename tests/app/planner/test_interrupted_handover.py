"""A hand-over that is interrupted: by a crash, another planner, or an error."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.crashes import Counter as Tripwires
from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.app.planner import planner
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import Message
from tests.support.fleet_files import all_at_once, cluster, fleet
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
from tests.support.pipeline_runs import accepted, cloud_with, deliver_due, phases, push
from tests.support.replaced_ports import Around, around, frozen, overtake
from tests.support.sample import sample


def test_a_continuing_message_that_is_delivered_twice_repeats_nothing_and_leaves_none_behind() -> None:
    cloud = MemoryCloud(config=CUT)
    commit = push(cloud, fleet(*NAMES))
    plan_step(cloud)
    (continuing,) = waiting_plans(cloud)
    assert continuing.reason == "handover"
    counts = Counts(cloud)
    for _ in range(2):
        planner.handle(continuing, cloud.ports)
    assert len(counts.sent) == 6
    messages = plan_steps(cloud)
    assert cloud.state.fleet().commit == commit
    assert counts.sent == counts.saved == dict.fromkeys(NAMES[3:], 1)
    assert messages == 3  # one for each of these, and the first again
    assert waiting_plans(cloud) == []


@pytest.mark.lives
def test_a_planner_that_takes_over_touches_only_what_the_other_one_may_still_save() -> None:
    cloud = MemoryCloud(config=replace(CONFIG, limits=replace(CONFIG.limits, handover_clusters=3)))
    push(cloud, fleet(*NAMES))
    plan_steps(cloud)
    cloud.run()
    files = {f"clusters/{name}/cluster.yaml": cluster(name, count=2) for name in NAMES}
    push(cloud, all_at_once(fleet(*NAMES)) | files)
    counts = Counts(cloud)
    number = itertools.count()
    save = cloud.ports.state.save

    def overtaken(record: Any) -> Any:
        saved = save(record)
        if next(number) == 3:  # the first cluster of the second part
            overtake(
                cloud,
                all_at_once(fleet(*NAMES)) | files | {"clusters/c11/cluster.yaml": cluster("c11", count=3)},
            )
        return saved

    around(cloud, "state", save=overtaken)
    plan_step(cloud)
    assert set(counts.read) == set(NAMES[3:6])
    cloud.run()
    assert phases(cloud) == dict.fromkeys(NAMES, Phase.READY)


def test_a_planner_frozen_in_a_part_saves_nothing_after_another_one_started() -> None:
    cloud = cloud_with(fleet("one", "two"), config=CONFIG)
    files = {f"clusters/{name}/cluster.yaml": cluster(name, count=2) for name in ("one", "two")}
    push(cloud, fleet("one", "two") | files)
    frozen(cloud, "state", "save", lambda: overtake(cloud, fleet("one", "two")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["update-pool", "system"] == 0


def test_a_crash_at_any_call_of_a_hand_over_in_parts_loses_and_repeats_nothing() -> None:
    """Only the planner and its reports run: no timer mends what they leave."""

    def run(tripwires: Tripwires) -> None:
        cloud = MemoryCloud(config=ONE_BY_ONE)
        push(cloud, fleet("one", "two"))
        cloud.with_ports(lambda ports: tripwired(ports, tripwires))
        while cloud.state.fleet().commit == "":
            deliver_due(cloud, "plans")
            cloud.clock.advance(5)
        counts.append(tripwires.calls)
        assert [record.generation for record in cloud.state.clusters()] == [1, 1]
        assert sorted(message.draft.session for message in cloud.broker.peek("changes")) == ["one", "two"]
        assert (cloud.dead_letters, cloud.state.fleet().handover) == ([], None)

    counts: list[int] = []
    run(Tripwires())
    calls = counts[0]
    assert calls > 20
    for point in sample("hand-overs", range(2 * calls), 6):
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
    changes: Any = Around(cloud.ports.changes, send=send)
    return replace(cloud.ports, changes=changes)


@pytest.mark.lives
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
