"""Which clusters of a plan are a small change: few at a time, whatever is pushed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.continuations import Continuation, continuations_of
from shared.cluster.pace import small_change
from shared.cluster.record import Phase
from shared.plan.plan import Action, Item
from tests.support.cluster_records import record


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
