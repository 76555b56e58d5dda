"""How many people must approve a stage, and for how long an approval counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from shared.cluster.record_parts import Phase
from shared.rollouts.begin import begin
from shared.rollouts.decide import decide
from shared.rollouts.report import describe_wait
from shared.rollouts.rollout import StageDecision
from shared.rollouts.rollout_acts import ActKind, act_on
from shared.rollouts.strategy import Gate, GroupRule, StageRule
from shared.rollouts.waits import StartWait, WaitReason
from tests.support.rollout_fleets import NOW, Fleet, candidate, stage, summary

TWO = Gate(approvers=2)
FIVE = {"a": "dev", "b": "dev", "c": "prod", "d": "prod", "e": "prod"}


def approved(fleet: Fleet, by: str, at: datetime) -> None:
    fleet.rollout = act_on(fleet.rollout, ActKind.APPROVE, StageDecision(by, at, "tested", "prod"))


def asking(**rule: Any) -> Fleet:
    """Return a fleet whose production waits for an approval, and what is before it has ended."""
    production = StageRule("prod", environments=("prod",), gate=Gate(**{"approvers": 1, **rule}))
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")), production), FIVE)
    fleet.start()
    for name in ("a", "b"):
        fleet.end(name)
    return fleet


def test_a_stage_waits_until_as_many_different_people_have_approved_as_it_asks_for() -> None:
    fleet = asking(approvers=2)
    assert fleet.decide().waits["c"] == StartWait(WaitReason.APPROVAL, "prod", missing=2, since=NOW, gate=TWO)
    approved(fleet, "one", NOW)
    approved(fleet, "one", NOW + timedelta(seconds=1))
    assert fleet.decide().waits["c"] == StartWait(WaitReason.APPROVAL, "prod", missing=1, since=NOW, gate=TWO)
    assert describe_wait(fleet.decide().waits["c"], "c") == "waits for an approval of stage prod"
    approved(fleet, "two", NOW)
    assert fleet.start() == ("c",)


def test_an_approval_that_has_expired_counts_no_more_until_it_is_given_again() -> None:
    fleet = asking(expires=timedelta(hours=1))
    approved(fleet, "one", NOW)
    fleet.now = NOW + timedelta(hours=1)
    assert fleet.decide().waits["c"].reason is WaitReason.APPROVAL
    approved(fleet, "one", NOW)
    assert fleet.start() == ()
    approved(fleet, "one", fleet.now)
    assert fleet.start() == ("c",)


def test_an_approval_does_not_expire_once_its_stage_has_begun() -> None:
    fleet = asking(expires=timedelta(hours=1))
    approved(fleet, "one", NOW)
    assert fleet.start() == ("c",)
    fleet.wait(timedelta(hours=5))
    fleet.end("c")
    assert fleet.start() == ("d",)


def test_an_approval_that_expires_once_its_stage_has_passed_keeps_only_who_comes_back() -> None:
    every = (GroupRule(min_success="0"),)
    gate = Gate(approvers=1, expires=timedelta(hours=1))
    rule = StageRule("dev", environments=("dev",), gate=gate, groups=every)
    fleet = Fleet((rule, stage("prod", approval=True)), {"a": "dev", "c": "prod"})
    back = fleet.seen["a"]
    fleet.seen["a"] = replace(back, phase=Phase.FAILED, finding="ClusterStopped")
    fleet.rollout = act_on(fleet.rollout, ActKind.APPROVE, StageDecision("one", NOW, "tested", "dev"))
    assert fleet.decide().waits["c"].stage == "prod"
    fleet.now = NOW + timedelta(hours=2)
    assert fleet.decide().waits["c"].stage == "prod"
    approved(fleet, "one", fleet.now)
    assert fleet.start() == ("c",)
    fleet.seen["a"] = back
    assert fleet.decide().waits["a"].reason is WaitReason.APPROVAL


def test_the_same_approval_again_in_whatever_order_changes_nothing() -> None:
    fleet = asking(approvers=2)
    approved(fleet, "one", NOW + timedelta(seconds=5))
    before = fleet.rollout
    for at in (NOW, NOW + timedelta(seconds=5)):
        approved(fleet, "one", at)
        assert fleet.rollout == before


def test_a_change_that_waits_for_nobody_does_not_let_its_stage_begin() -> None:
    """What the same commit brings to the cluster later still needs the approval."""
    at_once = candidate("a", "prod")
    at_once = replace(at_once, member=replace(at_once.member, at_once=True))
    rollout = begin("a" * 40, (stage("prod", approval=True),), [at_once], None, NOW)
    decision = decide(rollout, {"a": summary("a")}, NOW)
    assert (decision.start, decision.rollout.entered) == (("a",), ())
