"""What the digest of a week says, in each of the ways in which less is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.notifications.weekly_costs import CostSums, week_of, weekly
from shared.prices.cost_groups import KnownCost, ListedCluster, grouped, summed

AT = datetime(2026, 12, 28, 3, 30, tzinfo=UTC)
LISTED = ListedCluster(100.0, 250.0, 3.65, 23.36)


def cost(name: str, *, asleep: bool = False, listed: ListedCluster | None = LISTED) -> KnownCost:
    return KnownCost(name, "production", "shop", (), asleep, listed)


def sums(*costs: KnownCost, currency: str = "USD") -> CostSums:
    return CostSums(currency, grouped(costs, "environment"), grouped(costs, "owner"))


def told(*costs: KnownCost, before: tuple[str, CostSums] | None = None, currency: str = "USD") -> str:
    return weekly(AT, summed(costs), sums(*costs, currency=currency), before).detail


def test_a_week_begins_on_a_monday_and_belongs_to_its_own_year() -> None:
    assert week_of(AT) == "2026-W53"
    assert week_of(datetime(2027, 1, 3, 23, 59, tzinfo=UTC)) == "2026-W53"
    assert week_of(datetime(2027, 1, 4, tzinfo=UTC)) == "2027-W01"


def test_autoscaled_pools_have_their_most_in_brackets() -> None:
    assert "List price: $100 a month ($250 with autoscaled pools at their maximum)" in told(cost("one"))


def test_what_sleeps_has_its_idle_cost() -> None:
    found = told(cost("one", asleep=True), cost("two"))
    assert "Asleep: 1 cluster; idle, that is listed at $3.65 to $23.36 a month" in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The list price of 1 cluster is not known.", told(cost("one", listed=None))),
        ("No list price yet: 1 cluster", told(cost("one"), cost("two", listed=None))),
        ("in several currencies, and are not added up", told(cost("one"), currency="")),
        ("2026-W52 had another currency", told(cost("one"), before=("2026-W52", sums(currency="EUR")))),
        ("production $100 (new)", told(cost("one"), before=("2026-W52", sums()))),
    ],
)
def test_what_is_not_known_is_said(text: str, found: str) -> None:
    assert text in found


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 10_000), st.booleans())))
def test_the_groups_of_environments_add_up_to_the_fleet(drawn: list[tuple[str, float, bool]]) -> None:
    costs = [
        KnownCost(f"c{number}", name, "", (), asleep, ListedCluster(low, low, low / 2, low))
        for number, (name, low, asleep) in enumerate(drawn)
    ]
    groups, whole = grouped(costs, "environment").values(), summed(costs)
    assert sum(group.clusters for group in groups) == whole.clusters
    assert sum(group.low for group in groups) == pytest.approx(whole.low, abs=0.05)
    assert sum(group.idle_high for group in groups) == pytest.approx(whole.idle_high, abs=0.05)
