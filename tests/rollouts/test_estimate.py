"""How long a rollout takes, by what such changes took, or by what is assumed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.rollouts.estimate import (
    ASSUMED,
    KEPT,
    Estimate,
    GroupWork,
    describe_estimate,
    estimate,
    span,
    with_completed,
)
from shared.rollouts.rollout import Rollout, RolloutState
from shared.rollouts.strategy import GroupRule, StrategyChoice
from tests.support.rollout_fleets import Fleet, stage

KNOWN = {"versions": tuple(range(60, 660, 60))}


def completed(kind: str = "versions") -> tuple[Fleet, Rollout]:
    fleet = Fleet((stage("test", GroupRule()),), {"a": "test", "b": "test"})
    fleet.rollout = replace(fleet.rollout, choice=StrategyChoice(kind=kind))
    while names := fleet.start():
        fleet.wait(timedelta(minutes=10))
        for name in names:
            fleet.end(name)
            known = fleet.seen[name]
            times = replace(known.times, took=300 if name == "a" else 420)
            fleet.seen[name] = replace(known, times=times)
    fleet.decide()
    assert fleet.rollout.state is RolloutState.COMPLETED
    return fleet, fleet.rollout


def test_the_groups_follow_each_other_and_a_group_takes_as_many_rounds_as_it_needs() -> None:
    found = estimate("versions", [GroupWork(1, 1, timedelta(minutes=30)), GroupWork(10, 4)], KNOWN)
    assert found == Estimate("versions", 4 * 120 + 1800, 4 * 300 + 1800, 4 * 540 + 1800, 10)


def test_with_few_durations_of_the_kind_what_is_assumed_counts() -> None:
    low, likely, high = ASSUMED["versions"]
    few = {"versions": (1, 2, 3, 4), "any": (1,) * 50}
    assert estimate("versions", [GroupWork(1, 1)], few) == Estimate("versions", low, likely, high)


def test_a_range_of_equal_ends_is_one_duration() -> None:
    text = describe_estimate(Estimate("any", 13, 13, 13, 6))
    assert text.startswith("about 13s (by the last 6 other changes in this fleet)")
    assert describe_estimate(Estimate("any", 95, 100, 110, 6)).startswith("about 2m (")
    assert describe_estimate(Estimate("any", 60, 120, 180, 6)).startswith("about 2m, 1m to 3m (")


def test_nothing_that_is_left_takes_no_time() -> None:
    assert estimate("any", [], {}) == Estimate("any", 0, 0, 0)
    assert estimate("", [GroupWork(0, 1)], {}).high == 0


def test_a_completed_rollout_adds_what_its_clusters_took() -> None:
    fleet, rollout = completed()
    assert with_completed({"any": (1,)}, rollout, fleet.seen) == {"any": (1,), "versions": (300, 420)}


def test_only_the_newest_durations_of_a_kind_are_kept() -> None:
    fleet, rollout = completed()
    before = {"versions": tuple(range(KEPT))}
    after = with_completed(before, rollout, fleet.seen)["versions"]
    assert after == (*range(2, KEPT), 300, 420)


@pytest.mark.parametrize(
    "changes", [{"state": RolloutState.ABORTED}, {"state": RolloutState.ACTIVE}, {"choice": StrategyChoice()}]
)
def test_a_rollout_that_has_not_completed_adds_nothing(changes: dict[str, object]) -> None:
    fleet, rollout = completed()
    assert with_completed({}, replace(rollout, **changes), fleet.seen) == {}  # type: ignore[arg-type]


def test_a_cluster_that_has_another_generation_since_adds_nothing() -> None:
    fleet, rollout = completed()
    fleet.seen["a"] = replace(fleet.seen["a"], generation=3, observed_generation=3)
    assert with_completed({}, rollout, fleet.seen) == {"versions": (420,)}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (90 * 60, "1h 30m"), (7200, "2h"), (26 * 3600, "1d 2h")],
)
def test_a_duration_is_shown_in_its_units(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_an_estimate_says_what_it_is_made_of() -> None:
    assert describe_estimate(Estimate("versions", 60, 120, 7200, 23)) == (
        "about 2m, 1m to 2h (by the last 23 changes of versions in this fleet); "
        "approvals, gates, windows and freezes come on top"
    )
    assert "(assumed, because fewer than 5 other changes have ended in this fleet)" in describe_estimate(
        Estimate("any", 1, 2, 3)
    )
