"""What a rollout may start, and why the others wait: examples."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.cluster.forms import UnreadableRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import SummaryTimes
from shared.rollouts.calendar import Freeze
from shared.rollouts.decide import decide
from shared.rollouts.report import describe, describe_wait, remedy
from shared.rollouts.rollout import RolloutCalendar, RolloutState, StageDecision
from shared.rollouts.rollout_acts import ActKind, act_on
from shared.rollouts.strategy import DEFAULT_GROUPS, Gate, GateCheck, GroupRule
from shared.rollouts.waits import MemberStanding, StartWait, WaitReason
from tests.support.rollout_fleets import NOW, Fleet, stage, summary

FIVE = {"a": "dev", "b": "dev", "c": "prod", "d": "prod", "e": "prod"}
DEFAULT = (stage("dev", *DEFAULT_GROUPS), stage("prod", *DEFAULT_GROUPS))
BY = StageDecision("ops@example.com", NOW + timedelta(seconds=1), "looks wrong")


def everything(fleet: Fleet) -> list[tuple[str, ...]]:
    """Run a rollout to its end, one cluster after the other; return what started together."""
    waves = []
    for _ in range(20):
        waves.append(fleet.start())
        fleet.wait()
        for name in fleet.changing():
            fleet.end(name)
    return [wave for wave in waves if wave]


def test_without_configuration_an_environment_has_a_canary_and_follows_the_one_before() -> None:
    fleet = Fleet(DEFAULT, FIVE)
    assert everything(fleet) == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert fleet.rollout.state is RolloutState.COMPLETED
    assert fleet.rollout.failures == ()


def test_every_cluster_that_waits_has_a_reason() -> None:
    fleet = Fleet(DEFAULT, FIVE)
    decision = fleet.decide()
    assert decision.start == ("a",)
    first = StartWait(WaitReason.STAGE, "dev", 0, ("a",), since=NOW)
    assert decision.waits == dict.fromkeys(("b", "c", "d", "e"), first)


def test_a_budget_that_is_spent_pauses_the_rollout_and_names_who_failed() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2", min_success="1")), stage("prod")), FIVE)
    assert fleet.start() == ("a", "b")
    fleet.end("a", Phase.FAILED)
    assert fleet.decide().block is None
    fleet.end("b", Phase.FAILED)
    decision = fleet.decide()
    assert decision.start == ()
    assert decision.block == StartWait(WaitReason.BUDGET, "dev", 0, ("a", "b"), since=NOW)
    assert set(decision.waits.values()) == {decision.block}


def test_what_changes_and_what_failed_never_exceeds_the_budget_together() -> None:
    rule = GroupRule(max_concurrency="3", failure_budget="3", min_success="1")
    fleet = Fleet((stage("dev", rule),), dict.fromkeys("abcdef", "dev"))
    assert fleet.start() == ("a", "b", "c")
    fleet.end("a", Phase.FAILED)
    fleet.end("b")
    assert fleet.start() == ("d",)


def test_a_cluster_that_waits_for_nobody_takes_room_from_the_others() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")),), dict.fromkeys("abc", "dev"))
    members = (replace(member, at_once=member.cluster == "c") for member in fleet.rollout.members)
    fleet.rollout = replace(fleet.rollout, members=tuple(members))
    assert fleet.decide().start == ("a", "c")
    until = NOW + timedelta(hours=1)
    members = (
        replace(member, suspended_until=until if member.at_once else None) for member in fleet.rollout.members
    )
    fleet.rollout = replace(fleet.rollout, members=tuple(members))
    assert fleet.decide().start == ("a", "b", "c")


def test_a_rollout_with_failures_within_the_budget_ends_with_their_number() -> None:
    rule = GroupRule(max_concurrency="2", failure_budget="2", min_success="50%")
    fleet = Fleet((stage("dev", rule),), dict.fromkeys("ab", "dev"))
    fleet.start()
    fleet.end("a", Phase.FAILED)
    fleet.end("b")
    fleet.decide()
    assert (fleet.rollout.state, fleet.rollout.failures) == (RolloutState.COMPLETED, ("a",))


def test_a_cluster_that_is_ready_at_an_earlier_generation_passes_no_stage() -> None:
    fleet = Fleet((stage("dev", GroupRule()), stage("prod", GroupRule())), FIVE)
    fleet.start()
    for name in ("a", "b"):  # a stale Ready: the phase of the generation before
        fleet.seen[name] = replace(
            fleet.seen[name],
            phase=Phase.READY,
            generation=2,
            observed_generation=1,
            times=SummaryTimes(ready_since=NOW),
        )
    assert not {"c", "d", "e"} & {*fleet.decide().start}


def test_clusters_that_start_now_are_named_where_others_wait_for_their_room() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")),), dict.fromkeys("abcd", "dev"))
    decision = fleet.decide()
    assert decision.start == ("a", "b")
    assert decision.waits == dict.fromkeys(
        "cd", StartWait(WaitReason.CONCURRENCY, "dev", 0, ("a", "b"), since=NOW)
    )
    told = describe_wait(decision.waits["c"], fleet.rollout.commit)
    assert (
        told == "waits in group 1 of stage dev, in which as many clusters change, or start now, as may: a, b"
    )


def test_a_soak_holds_the_next_group_and_says_until_when() -> None:
    soak = GroupRule(max_concurrency="2", soak=timedelta(minutes=30))
    fleet = Fleet((stage("dev", soak), stage("prod")), FIVE)
    fleet.start()
    for name in ("a", "b"):
        fleet.end(name)
    decision = fleet.decide()
    assert decision.waits["c"] == StartWait(
        WaitReason.SOAK, "dev", 0, until=NOW + timedelta(minutes=30), since=NOW
    )
    assert decision.next_at == NOW + timedelta(minutes=30)
    fleet.wait(timedelta(minutes=30))
    assert fleet.start() == ("c",)


def test_a_cluster_that_fails_in_its_soak_has_failed_the_rollout() -> None:
    soak = GroupRule(max_concurrency="2", failure_budget="1", soak=timedelta(minutes=30))
    fleet = Fleet((stage("dev", soak), stage("prod")), FIVE)
    fleet.start()
    fleet.end("a")
    fleet.end("a", Phase.FAILED)
    fleet.wait(timedelta(hours=1))
    block = fleet.decide().block
    assert block is not None
    assert (block.reason, block.clusters) == (WaitReason.BUDGET, ("a",))


def test_a_stage_waits_for_its_approval_and_the_approval_of_another_one_is_none() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")), stage("prod", approval=True)), FIVE)
    fleet.start()
    for name in ("a", "b"):
        fleet.end(name)
    assert fleet.decide().waits["c"] == StartWait(
        WaitReason.APPROVAL, "prod", missing=1, since=NOW, gate=Gate(approvers=1)
    )
    fleet.rollout = act_on(fleet.rollout, ActKind.APPROVE, replace(BY, subject="dev"))
    assert fleet.decide().start == ()
    fleet.rollout = act_on(fleet.rollout, ActKind.APPROVE, replace(BY, subject="prod"))
    assert fleet.decide().start == ("c",)


def test_a_pause_starts_nothing_until_exactly_that_pause_is_lifted_and_the_same_message_again_is_none() -> (
    None
):
    fleet = Fleet(DEFAULT, FIVE)
    fleet.rollout = act_on(fleet.rollout, ActKind.PAUSE, BY)
    assert fleet.decide().waits["a"] == StartWait(WaitReason.PAUSED, by=BY, since=BY.at)
    assert act_on(fleet.rollout, ActKind.RESUME, BY, lifts=NOW) == fleet.rollout
    fleet.rollout = act_on(fleet.rollout, ActKind.RESUME, BY, lifts=BY.at)
    assert act_on(fleet.rollout, ActKind.PAUSE, BY) == fleet.rollout
    assert fleet.decide().start == ("a",)


def test_an_aborted_rollout_starts_nothing_any_more() -> None:
    fleet = Fleet(DEFAULT, FIVE)
    fleet.start()
    fleet.rollout = act_on(fleet.rollout, ActKind.ABORT, BY)
    fleet.end("a")
    decision = fleet.decide()
    assert decision.start == ()
    assert decision.waits == dict.fromkeys(
        ("b", "c", "d", "e"), StartWait(WaitReason.ABORTED, by=BY, since=BY.at)
    )


def test_a_cluster_that_is_taken_out_frees_its_part_of_the_budget() -> None:
    fleet = Fleet((stage("dev", *DEFAULT_GROUPS),), dict.fromkeys("ab", "dev"))
    fleet.start()
    fleet.end("a", Phase.FAILED)
    assert fleet.decide().start == ()
    fleet.rollout = act_on(fleet.rollout, ActKind.SKIP, replace(BY, subject="a"))
    assert fleet.start() == ("b",)
    fleet.end("b")
    fleet.decide()
    assert fleet.rollout.state is RolloutState.COMPLETED


def test_a_cluster_that_cannot_take_part_is_set_aside_and_catches_up_when_it_returns() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")), stage("prod")), FIVE)
    away = replace(fleet.seen["b"], phase=Phase.FAILED, finding="ClusterStopped")
    back, fleet.seen["b"] = fleet.seen["b"], away
    assert fleet.start() == ("a",)
    fleet.end("a")
    assert fleet.start() == ("c",)
    assert fleet.decide().waits["b"].reason is WaitReason.ASIDE
    for name in ("c", "d", "e"):
        fleet.start()
        fleet.end(name)
    fleet.decide()
    assert fleet.rollout.state is RolloutState.ACTIVE
    fleet.seen["b"] = back
    assert fleet.start() == ("b",)


def test_a_stage_whose_clusters_are_all_set_aside_reads_no_check_and_later_ones_wait_for_them() -> None:
    checked = replace(stage("dev", GroupRule()), gate=Gate(checks=(GateCheck("end to end"),)))
    fleet = Fleet((checked, stage("prod")), FIVE, aside=("a", "b"))
    decision = fleet.decide()
    assert (decision.gated, decision.start) == ((), ())
    assert decision.waits["a"].reason is WaitReason.ASIDE
    wait = decision.waits["c"]
    assert (wait.reason, wait.stage, wait.stuck) == (WaitReason.STAGE, "dev", MemberStanding.ASIDE)
    fleet.seen["a"] = summary("a")
    decision = fleet.decide()
    assert (decision.gated, decision.waits["a"].reason) == ((0,), WaitReason.CHECK)


def test_a_cluster_that_is_being_created_takes_no_more_room_when_its_change_starts() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="1")),), dict.fromkeys("ab", "dev"))
    fleet.seen["b"] = replace(fleet.seen["b"], phase=Phase.PROVISIONING)
    assert fleet.start() == ("b",)


def test_a_rollout_without_a_final_gate_ends_after_the_last_soak_although_a_cluster_has_failed() -> None:
    rule = GroupRule(max_concurrency="2", min_success="1", soak=timedelta(minutes=30))
    fleet = Fleet((stage("dev", rule),), dict.fromkeys("ab", "dev"))
    fleet.start()
    fleet.end("a", Phase.FAILED)
    fleet.end("b")
    assert fleet.decide().next_at == NOW + timedelta(minutes=30)
    assert fleet.rollout.state is RolloutState.ACTIVE
    fleet.wait(timedelta(minutes=30))
    fleet.decide()
    assert (fleet.rollout.state, fleet.rollout.failures) == (RolloutState.COMPLETED, ("a",))


def test_a_cluster_that_still_changes_keeps_its_room_in_the_group_while_a_freeze_holds_its_next_change() -> (
    None
):
    rule = GroupRule(max_concurrency="1", min_success="0")
    fleet = Fleet((stage("dev", rule),), dict.fromkeys("ab", "dev"))
    fleet.seen["a"] = replace(fleet.seen["a"], phase=Phase.UPDATING, times=SummaryTimes())
    freeze = Freeze("holidays", NOW, NOW + timedelta(days=1), "ops", "nobody is here")
    first, second = fleet.rollout.members
    fleet.rollout = replace(
        fleet.rollout,
        calendar=RolloutCalendar(freezes=(freeze,)),
        members=(replace(first, freezes=(freeze.name,)), second),
    )
    assert fleet.start() == ()
    assert fleet.decide().waits["b"] == StartWait(WaitReason.CONCURRENCY, "dev", 0, ("a",), since=NOW)
    fleet.end("a")
    assert fleet.start() == ("b",)


def test_a_pause_while_no_cluster_waits_is_named_without_a_number() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")),), dict.fromkeys("ab", "dev"))
    fleet.start()
    fleet.rollout = act_on(fleet.rollout, ActKind.PAUSE, BY)
    text = "it waits, because ops@example.com (looks wrong) paused the rollout"
    assert describe(fleet.rollout, fleet.decide()) == f"rollout paused, 0 of 2 clusters ready; {text}"


def test_a_stage_that_a_failure_within_the_budget_keeps_from_passing_says_who_must_act() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")), stage("prod")), FIVE)
    fleet.start()
    assert remedy(fleet.decide().waits["c"]) == ""
    fleet.end("a", Phase.FAILED)
    fleet.end("b")
    wait = fleet.decide().waits["c"]
    text = describe_wait(wait, fleet.rollout.commit)
    assert text == "waits for group 1 of stage dev, in which clusters have failed: a"
    assert "`roadstead replay a`" in remedy(wait)
    assert "`roadstead rollout skip a`" in remedy(wait)


def test_a_stage_that_needs_a_suspended_cluster_names_it_and_says_what_can_be_done() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2", min_success="2")), stage("prod")), FIVE)
    fleet.start()
    fleet.end("a")
    fleet.seen["b"] = replace(fleet.seen["b"], phase=Phase.SUSPENDED)
    wait = fleet.decide().waits["c"]
    text = describe_wait(wait, fleet.rollout.commit)
    assert text == "waits for group 1 of stage dev, of which too few clusters can take part: b"
    assert "`roadstead rollout skip b`" in remedy(wait)


@pytest.mark.parametrize("ends", ["back", "skipped"])
def test_a_stage_of_which_nobody_can_take_part_shows_nothing_and_holds_the_next_one(ends: str) -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")), stage("prod")), FIVE, aside=("a", "b"))
    assert fleet.start() == ()
    wait = fleet.decide().waits["c"]
    text = describe_wait(wait, fleet.rollout.commit)
    assert text == "waits for group 1 of stage dev, of which too few clusters can take part: a, b"
    assert "`roadstead rollout skip a`" in remedy(wait)
    if ends == "back":
        fleet.seen["b"] = replace(fleet.seen["b"], phase=Phase.READY, finding="")
        assert fleet.start() == ("b",)
        assert fleet.decide().waits["c"].reason is WaitReason.STAGE
        fleet.end("b")
    else:
        fleet.rollout = act_on(fleet.rollout, ActKind.SKIP, replace(BY, subject="a"))
        assert fleet.start() == (), "one of two is left"
        fleet.rollout = act_on(fleet.rollout, ActKind.SKIP, replace(BY, subject="b"))
    assert "c" in fleet.start()


def test_a_stage_passes_without_any_cluster_where_its_rule_needs_none() -> None:
    rule = GroupRule(max_concurrency="2", min_success="0")
    fleet = Fleet((stage("dev", rule), stage("prod")), FIVE, aside=("a", "b"))
    assert "c" in fleet.start()


class Name(str):
    """A name that counts how often somebody looks one up."""

    looked_up = 0

    def __hash__(self) -> int:
        Name.looked_up += 1
        return super().__hash__()


def look_ups(size: int) -> int:
    names = [Name(f"c{number}") for number in range(size)]
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="100%")),), dict.fromkeys(names, "dev"))
    assert len(fleet.start()) == size
    Name.looked_up = 0
    fleet.decide()
    return Name.looked_up


def test_a_decision_takes_work_in_proportion_to_the_clusters_that_change() -> None:
    assert look_ups(200) < 3 * look_ups(100)


def test_a_cluster_whose_record_cannot_be_read_counts_as_one_that_changes() -> None:
    fleet = Fleet((stage("dev", GroupRule(max_concurrency="2")), stage("prod")), FIVE)
    record = UnreadableRecord("cluster", "t", "p", "a", "uid is missing")
    decision = decide(fleet.rollout, {**fleet.seen, "a": record}, NOW)
    assert decision.start == ("b",)
    assert decision.waits["c"].clusters == ("a", "b")
    ready = {
        name: replace(summary, generation=2, observed_generation=2) for name, summary in fleet.seen.items()
    }
    after = decide(fleet.rollout, {**ready, "a": record}, NOW).rollout
    assert after.state is RolloutState.ACTIVE
