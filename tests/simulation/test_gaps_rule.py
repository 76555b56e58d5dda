"""The rule about repaired gaps: only a purge that was due excuses one whose push was announced."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import Draft
from shared.cluster.history import FoundBy, Gap, Gaps
from shared.cluster.queues.message_parts import MissedHead
from shared.cluster.queues.messages import PlanRequest, RolloutRequest
from shared.ports import FleetRecord
from simulation.desired_state import RequestedFleet
from simulation.event_loop import Actor, EventLoop
from simulation.history import AzureHistory, FleetHistory
from simulation.invariants.context import Context
from simulation.invariants.gaps import GapInvariant as Rule
from simulation.oracle import Oracle
from simulation.rule import RuleViolated

COMMIT = "c" * 40


class NotifierRecord:
    """A fleet whose head was announced a minute ago, and the rule that noted it."""

    def __init__(self) -> None:
        self.cloud = MemoryCloud()
        self.loop = EventLoop(random.Random(0), [self.cloud], verbose=False)
        self.history = history = FleetHistory()
        history.add(COMMIT, RequestedFleet())
        history.moved(COMMIT, self.loop.clock())
        oracle, azure = Oracle(self.loop.azure, self.cloud.kubernetes), AzureHistory(self.loop.clock)
        self.rule = Rule(Context(self.loop, oracle, azure, {self.cloud: history}))
        pushed = history.moved_at(COMMIT)
        self.cloud.state.remember_delivery("a webhook", self.loop.clock(), head=COMMIT, pushed=pushed)
        self.rule.announced(self.cloud, COMMIT, pushed)
        self.cloud.clock.advance(60)

    def forget(self) -> None:
        """Remove the announcement from the tables, as a purge does."""
        assert self.cloud.state.prune_deliveries(self.loop.clock()) == 2

    def count(self) -> None:
        """Count the head as a gap, by a function that begins now."""
        before = FleetRecord(planning=COMMIT)
        gap = Gap(COMMIT, self.loop.clock(), FoundBy.TIMER)
        with self.loop.as_actor(Actor(self.loop.clock())):
            self.rule.saved(self.cloud, before, FleetRecord(planning=COMMIT, gaps=Gaps(1, gap)))


def test_a_head_that_was_announced_is_no_gap_although_the_tables_lost_that() -> None:
    fleet = NotifierRecord()
    fleet.forget()
    with pytest.raises(RuleViolated, match="was announced before"):
        fleet.count()


@pytest.mark.parametrize("during", [True, False])
def test_a_purge_a_week_later_excuses_a_gap_from_its_beginning_on(*, during: bool) -> None:
    fleet = NotifierRecord()
    with fleet.rule.purging(fleet.cloud, fleet.loop.clock() + timedelta(days=8)):
        fleet.forget()
        if during:
            fleet.count()
    if not during:
        fleet.count()


def test_a_purge_that_was_not_due_excuses_no_gap() -> None:
    fleet = NotifierRecord()
    with fleet.rule.purging(fleet.cloud, fleet.loop.clock() + timedelta(days=6)):
        fleet.forget()
    with pytest.raises(RuleViolated):
        fleet.count()


@pytest.mark.parametrize("by", [None, FoundBy.TIMER])
def test_a_head_was_looked_for_only_if_its_plan_began_for_what_looks_for_heads(by: FoundBy | None) -> None:
    fleet = NotifierRecord()
    found = MissedHead(by=by, at=fleet.loop.clock()) if by else None
    request = (PlanRequest(found=found) if by else RolloutRequest()).model_dump_json()
    with fleet.loop.as_actor(Actor(fleet.loop.clock(), fleet.cloud, "plans", request=request.encode())):
        fleet.rule.saved(fleet.cloud, FleetRecord(), FleetRecord(planning=COMMIT))
    assert fleet.history.looked_for == {COMMIT: bool(by)}


def test_a_planner_is_known_by_the_message_that_it_gets_next() -> None:
    cloud = MemoryCloud()
    loop = EventLoop(random.Random(0), [cloud], verbose=False)
    loop.workers, seen = {cloud: [cloud.ports]}, list[bytes]()
    loop.on_end = lambda actor: seen.append(actor.request)
    bodies = [PlanRequest(reason=reason).model_dump_json().encode() for reason in ("first", "second")]
    for body in bodies:
        cloud.broker.send("plans", Draft(body, session="fleet"))
    loop.run_until(loop.clock() + timedelta(seconds=1))
    assert [each for each in seen if each in bodies] == bodies
