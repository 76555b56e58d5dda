"""Since when each wait lasts: by what is recorded, and the same whenever it is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import SummaryTimes
from shared.rollouts.calendar import Freeze, Window
from shared.rollouts.rollout import RolloutCalendar, StageDecision
from shared.rollouts.rollout_acts import ActKind, act_on
from shared.rollouts.strategy import GroupRule, RefusedStrategy
from shared.rollouts.waits import StartWait, WaitReason
from tests.support.rollout_fleets import NOW, Fleet, stage

CLUSTERS = {"a": "dev", "b": "dev", "c": "prod"}
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def fleet(soak: timedelta = timedelta(0), budget: str = "") -> Fleet:
    """Return a rollout in which one cluster of dev is first, an hour after it began."""
    first = GroupRule(clusters="1", soak=soak, failure_budget=budget)
    found = Fleet((stage("dev", first, GroupRule(max_concurrency="1")), stage("prod")), CLUSTERS)
    found.start()
    found.wait(HOUR)
    return found


def wait_of(of: Fleet, name: str) -> StartWait:
    """Return the wait of a cluster, and check that a later decision has the same begin of it."""
    wait = of.decide().waits[name]
    of.wait(MINUTE)
    again = of.decide().waits[name]
    assert (again.reason, again.since) == (wait.reason, wait.since)
    return wait


def test_the_wait_for_a_group_began_when_that_became_the_next_one() -> None:
    found = fleet()
    assert wait_of(found, "b").since == NOW
    found.end("a")
    found.start()
    passed = found.now
    found.wait(HOUR)
    wait = wait_of(found, "c")
    assert (wait.reason, wait.group, wait.since) == (WaitReason.STAGE, 1, passed)


def test_the_wait_for_a_soak_began_when_the_group_had_succeeded() -> None:
    found = fleet(soak=4 * HOUR)
    found.end("a")
    assert wait_of(found, "b") == StartWait(WaitReason.SOAK, "dev", 0, until=NOW + 5 * HOUR, since=NOW + HOUR)


def test_the_wait_for_a_spent_budget_began_with_the_failure_that_spent_it() -> None:
    found = fleet()
    found.end("a", Phase.FAILED)
    failed = found.now
    found.wait(HOUR)
    wait = wait_of(found, "b")
    assert (wait.reason, wait.since) == (WaitReason.BUDGET, failed)


def test_the_wait_for_others_of_a_group_began_when_the_group_did() -> None:
    found = Fleet((stage("dev", GroupRule(max_concurrency="1")),), {"a": "dev", "b": "dev"})
    found.start()
    found.wait(HOUR)
    wait = wait_of(found, "b")
    assert (wait.reason, wait.since) == (WaitReason.CONCURRENCY, NOW)


@pytest.mark.parametrize("kind", [ActKind.PAUSE, ActKind.ABORT, ActKind.SKIP])
def test_what_a_person_decided_is_waited_for_since_then(kind: ActKind) -> None:
    found = fleet()
    decided = StageDecision("ops", found.now, subject="b" if kind is ActKind.SKIP else "")
    found.rollout = act_on(found.rollout, kind, decided)
    found.wait(HOUR)
    assert wait_of(found, "b").since == decided.at


def test_a_strategy_that_may_not_be_selected_is_waited_for_since_that_was_found() -> None:
    found = fleet()
    found.rollout = replace(found.rollout, refused=RefusedStrategy(("x",), (), NOW - MINUTE))
    assert wait_of(found, "b").since == NOW - MINUTE


def test_a_cluster_that_cannot_take_part_waits_since_that_was_found() -> None:
    found = fleet()
    found.seen["b"] = replace(
        found.seen["b"],
        phase=Phase.FAILED,
        finding="ClusterStopped",
        times=SummaryTimes(failed_since=found.now),
    )
    wait = wait_of(found, "b")
    assert (wait.reason, wait.since) == (WaitReason.ASIDE, NOW + HOUR)


@pytest.mark.parametrize(
    ("starts", "since"), [(NOW - HOUR, NOW), (NOW + MINUTE, NOW + MINUTE)], ids=["before", "after"]
)
def test_a_freeze_is_waited_for_since_it_began_or_the_cluster_was_next(starts: object, since: object) -> None:
    found = Fleet((stage("dev"),), {"a": "dev"})
    freeze = Freeze("holidays", starts, NOW + 9 * HOUR, "platform", "away")  # type: ignore[arg-type]
    members = tuple(replace(member, freezes=("holidays",)) for member in found.rollout.members)
    found.rollout = replace(found.rollout, calendar=RolloutCalendar(freezes=(freeze,)), members=members)
    found.wait(HOUR)
    wait = wait_of(found, "a")
    assert (wait.reason, wait.since) == (WaitReason.FREEZE, since)


def test_a_window_is_waited_for_since_it_closed_last() -> None:
    found = Fleet((stage("dev"),), {"a": "dev"})
    window = Window("nights", "UTC", "FREQ=DAILY", "02:00", HOUR + 10 * MINUTE)
    members = tuple(replace(member, windows=("nights",)) for member in found.rollout.members)
    found.rollout = replace(found.rollout, calendar=RolloutCalendar((window,)), members=members)
    found.wait(HOUR)
    wait = wait_of(found, "a")
    closed = NOW.replace(hour=3, minute=10, second=0)
    assert (wait.reason, wait.since) == (WaitReason.WINDOW, closed)
