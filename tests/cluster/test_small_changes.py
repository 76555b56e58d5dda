"""The pace of a plan: which clusters are a small change, and when the jobs of new ones start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.pace import PACE, small_change, starts
from shared.cluster.queues.continuations import Continuation, continuations_of
from shared.cluster.record_parts import Phase
from shared.language.desired import Desired
from shared.plan.plan import Action, Item
from tests.support.cluster_records import record
from tests.support.desired_clusters import desired, with_field


def items(*names: str, action: Action = Action.UPDATE) -> list[Item]:
    return [Item(name, action, 2, "0badcafe") for name in names]


def running(*names: str) -> list[Continuation]:
    """Return the continuations of clusters that are in a small change."""
    return continuations_of(replace(record(small_change=True), name=name) for name in names)


def test_a_plan_of_few_clusters_is_a_small_change_and_one_of_more_is_not() -> None:
    unchanged = items("x", "y", "z", action=Action.UNCHANGED)
    assert small_change([*items("a", "b"), *unchanged], (), (), most=2) == {"a", "b"}
    assert small_change(items("a", "b", "c"), (), (), most=2) == frozenset()


@pytest.mark.parametrize("action", [Action.CREATE, Action.ADOPT, Action.DELETE, Action.RETRY])
def test_the_number_of_clusters_decides_and_not_what_happens_to_them(action: Action) -> None:
    assert small_change(items("a", action=action), (), (), most=1) == {"a"}


def test_clusters_in_earlier_small_changes_count_each_once() -> None:
    assert small_change(items("a"), (), running("b"), most=1) == frozenset()
    assert small_change(items("a"), (), running("a", "b"), most=2) == {"a"}


def test_a_job_that_has_ended_or_waits_for_a_person_does_not_count() -> None:
    for resting in (
        record(small_change=True, active=False),
        record(small_change=False),
        replace(record(small_change=True), phase=Phase.STALLED),
        replace(record(small_change=True), phase=Phase.SUSPENDED),
        record(small_change=True, action_required="grant the role"),
    ):
        others = continuations_of([replace(resting, name="b")])
        assert small_change(items("a"), (), others, most=1) == {"a"}


def test_what_an_unfinished_plan_left_does_not_make_the_next_commit_a_large_change() -> None:
    left = [f"c{number}" for number in range(9)]
    assert small_change(items("a", *left), left, (), most=2) == {"a"}
    assert small_change(items("a", *left[:1]), left, (), most=2) == {"a", "c0"}  # all of them are few


def test_retries_after_an_outage_do_not_make_a_commit_a_large_change() -> None:
    retries = items("x", "y", "z", action=Action.RETRY)
    assert small_change([*items("a"), *retries], (), (), most=2) == {"a"}


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(acting=NAMES, retried=NAMES, left=NAMES, before=NAMES, most=st.integers(0, 5))
def test_no_more_clusters_than_that_are_in_small_changes(
    acting: list[str], retried: list[str], left: list[str], before: list[str], most: int
) -> None:
    plan = items(*acting) + items(*(set(retried) - {*acting}), action=Action.RETRY)
    found = small_change(plan, left, running(*before), most=most)
    assert found <= {item.cluster for item in plan}
    assert not found or len(found | {*before}) <= most


NOW = datetime(2026, 5, 4, tzinfo=UTC)


@cache
def in_subscription(name: str, number: int) -> Desired:
    return with_field(desired(name), "subscriptionId", f"00000000-0000-0000-0000-{number + 1:012}")


def started(subscriptions: Sequence[int], action: Action = Action.CREATE) -> list[float]:
    """Return after how many seconds each cluster starts, by the subscriptions that they are in."""
    names = [f"c{number:04}" for number in range(len(subscriptions))]
    clusters = {name: in_subscription(name, where) for name, where in zip(names, subscriptions, strict=True)}
    found = starts([Item(name, action) for name in names], clusters, (), NOW)
    return [(found.get(name, NOW) - NOW).total_seconds() for name in names]


@given(st.integers(1, 400))
def test_as_many_start_at_once_as_the_limit_allows_and_the_others_one_after_the_other(count: int) -> None:
    seconds = started([1] * count)
    pace = 1 / PACE.per_second
    assert seconds[: PACE.usable] == [0.0] * min(count, PACE.usable)
    assert seconds[PACE.usable :] == pytest.approx(
        [(number + 1) * pace for number in range(count - PACE.usable)], abs=0.001
    )


@given(st.lists(st.integers(1, 3), max_size=200))
def test_the_clusters_of_a_subscription_start_as_if_there_were_no_other_one(subscriptions: list[int]) -> None:
    seconds = started(subscriptions)
    for number in set(subscriptions):
        own = [at for at, where in zip(seconds, subscriptions, strict=True) if where == number]
        assert own == started([number] * len(own))


@pytest.mark.parametrize("action", [Action.UPDATE, Action.ADOPT, Action.RETRY, Action.DELETE])
def test_what_creates_no_cluster_starts_at_once(action: Action) -> None:
    assert set(started([1] * 100, action)) == {0.0}


def test_a_small_change_waits_for_nobody() -> None:
    names = [f"c{number:04}" for number in range(100)]
    clusters = {name: in_subscription(name, 1) for name in names}
    items = [Item(name, Action.CREATE) for name in names]
    found = starts(items, clusters, names[60:], NOW)
    assert set(found) == set(names[PACE.usable : 60])
