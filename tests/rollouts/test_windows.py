"""Rollouts of clusters with change windows and freezes: what waits, until when, and what goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rollouts.calendar import SPREAD, Freeze, Window
from shared.rollouts.report import describe_wait, remedy, state_of
from shared.rollouts.rollout import RolloutCalendar, RolloutState, StageDecision
from shared.rollouts.rollout_acts import ActKind, act_on
from shared.rollouts.strategy import DEFAULT_GROUPS, GroupRule
from shared.rollouts.waits import WaitReason
from tests.support.rollout_fleets import NOW, Fleet, stage

HOUR = timedelta(hours=1)
OPENS = NOW.replace(hour=22, minute=0, second=0)  # NOW is 03:04:05
NIGHTS = Window("nights", "UTC", "FREQ=DAILY", "22:00", 4 * HOUR)
FROZEN = Freeze("holidays", NOW - HOUR, NOW + 24 * HOUR, "platform", "nobody is here")
ALL_AT_ONCE = stage("dev", GroupRule(max_concurrency="100%"))
FOUR = dict.fromkeys("abcd", "dev")


def limited(fleet: Fleet, *names: str, windows: tuple[Window, ...] = (), frozen: bool = False) -> Fleet:
    """Return the fleet with windows, or a freeze, for some of its clusters."""
    own, stops = tuple(window.name for window in windows), (FROZEN.name,) if frozen else ()
    members = (
        replace(member, windows=own, freezes=stops) if member.cluster in names else member
        for member in fleet.rollout.members
    )
    freezes = (FROZEN,) if frozen else ()
    fleet.rollout = replace(fleet.rollout, members=tuple(members), calendar=RolloutCalendar(windows, freezes))
    return fleet


def run(fleet: Fleet) -> set[str]:
    """Start what may start, and end it; return all of it."""
    started = set[str]()
    while names := fleet.start():
        started |= {*names}
        for name in names:
            fleet.end(name)
    return started


def test_a_first_cluster_outside_its_window_is_waited_for_and_not_left_out() -> None:
    fleet = limited(Fleet((stage("dev", *DEFAULT_GROUPS),), FOUR), *"abcd", windows=(NIGHTS,))
    decision = fleet.decide()
    assert decision.start == ()
    assert {wait.reason for wait in decision.waits.values()} == {WaitReason.WINDOW}
    at = decision.next_at
    assert at is not None
    assert OPENS <= at <= OPENS + SPREAD
    assert state_of(fleet.rollout, decision) == "Waiting for a change window"
    fleet.now = OPENS + SPREAD
    assert fleet.start() == ("a",)
    assert fleet.decide().waits["b"].reason is WaitReason.STAGE


def test_a_group_passes_without_a_cluster_outside_its_window_which_catches_up_by_itself() -> None:
    strategy = (stage("dev", GroupRule(max_concurrency="100%")), stage("prod"))
    fleet = limited(Fleet(strategy, FOUR | {"e": "prod"}), "d", windows=(NIGHTS,))
    assert run(fleet) == {*"abce"}
    decision = fleet.decide()
    assert decision.rollout.state is RolloutState.ACTIVE
    assert decision.next_at == decision.waits["d"].until
    fleet.now = OPENS + SPREAD
    assert fleet.start() == ("d",)
    fleet.end("d")
    fleet.decide()
    assert fleet.rollout.state is RolloutState.COMPLETED


def test_a_freeze_holds_every_start_and_says_who_answers_for_it() -> None:
    fleet = limited(Fleet((ALL_AT_ONCE,), FOUR), *"abcd", windows=(NIGHTS,), frozen=True)
    fleet.now = OPENS + SPREAD
    decision = fleet.decide()
    assert decision.start == ()
    wait = decision.waits["a"]
    assert "because of the freeze holidays of platform (nobody is here)" in describe_wait(wait, "c")
    assert "roadstead rollout override" in remedy(wait)
    assert state_of(fleet.rollout, decision) == "Waiting for a freeze to end"


def test_an_override_starts_what_waits_for_windows_and_freezes_in_its_order() -> None:
    fleet = limited(Fleet((stage("dev", *DEFAULT_GROUPS),), FOUR), *"abcd", windows=(NIGHTS,), frozen=True)
    assert fleet.start() == ()
    by = StageDecision("ops@example.com", NOW, "the certificate ends today")
    fleet.rollout = act_on(fleet.rollout, ActKind.OVERRIDE, by)
    assert act_on(fleet.rollout, ActKind.OVERRIDE, replace(by, by="another one")) == fleet.rollout
    assert fleet.start() == ("a",)


def test_a_cluster_that_changes_when_its_window_closes_is_finished_and_no_other_one_starts() -> None:
    fleet = limited(Fleet((stage("dev", GroupRule(max_concurrency="1")),), FOUR), *"abcd", windows=(NIGHTS,))
    fleet.now = OPENS + 4 * HOUR - timedelta(seconds=1)
    assert fleet.start() == ("a",)
    fleet.now += timedelta(seconds=1)
    fleet.end("a")
    decision = fleet.decide()
    assert decision.start == ()
    assert decision.waits["b"].reason is WaitReason.WINDOW


def test_what_azure_does_not_see_waits_for_no_window_and_no_freeze() -> None:
    fleet = limited(Fleet((ALL_AT_ONCE,), FOUR), *"abcd", windows=(NIGHTS,), frozen=True)
    members = (replace(member, at_once=member.cluster == "c") for member in fleet.rollout.members)
    fleet.rollout = replace(fleet.rollout, members=tuple(members))
    assert fleet.start() == ("c",)


def test_an_opening_wakes_nobody_while_a_person_has_paused_the_rollout_or_an_earlier_stage_runs() -> None:
    fleet = limited(Fleet((ALL_AT_ONCE,), FOUR), *"abcd", windows=(NIGHTS,))
    fleet.rollout = act_on(fleet.rollout, ActKind.PAUSE, StageDecision("ops", NOW))
    assert fleet.decide().next_at is None
    strategy = (ALL_AT_ONCE, stage("prod"))
    waiting = limited(Fleet(strategy, FOUR | {"e": "prod"}), "e", windows=(NIGHTS,))
    waiting.start()
    assert waiting.decide().next_at is None


@pytest.mark.lives
@given(
    st.lists(st.sampled_from(["1", "2", "50%", "100%"]), min_size=1, max_size=3),
    st.sets(st.sampled_from("abcdefgh")),
    st.sets(st.sampled_from("abcdefgh")),
)
def test_nothing_starts_outside_a_window_or_in_a_freeze_and_all_of_it_ends(
    bounds: list[str], windowed: set[str], frozen: set[str]
) -> None:
    strategy = tuple(
        stage(name, GroupRule(max_concurrency=bound)) for name, bound in zip("xyz", bounds, strict=False)
    )
    names = {name: "xyz"[number % len(bounds)] for number, name in enumerate("abcdefgh")}
    fleet = limited(Fleet(strategy, names), *windowed, windows=(NIGHTS,))
    members = (
        replace(member, freezes=(FROZEN.name,) if member.cluster in frozen else ())
        for member in fleet.rollout.members
    )
    calendar = replace(fleet.rollout.calendar, freezes=(FROZEN,))
    fleet.rollout = replace(fleet.rollout, members=tuple(members), calendar=calendar)
    for _ in range(400):
        for name in fleet.start():
            assert name not in windowed or fleet.now.hour in (22, 23, 0, 1)
            assert name not in frozen or not FROZEN.starts <= fleet.now < FROZEN.ends
            fleet.end(name)
        fleet.wait(HOUR / 2)
        if fleet.rollout.state is not RolloutState.ACTIVE:
            break
    assert fleet.rollout.state is RolloutState.COMPLETED
