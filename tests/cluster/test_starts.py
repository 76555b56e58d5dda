"""The jobs of new clusters start at the pace at which Azure lets them end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.pace import PACE, starts
from shared.language.desired import Desired
from shared.plan.plan import Action, Item
from tests.support.desired_clusters import desired, with_field

NOW = datetime(2026, 5, 4, tzinfo=UTC)


@cache
def in_subscription(name: str, number: int) -> Desired:
    return with_field(desired(name), "subscriptionId", f"00000000-0000-0000-0000-{number:012}")


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
