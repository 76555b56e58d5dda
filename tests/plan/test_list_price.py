"""By how much a plan changes the list price, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.desired import Desired
from shared.plan.list_price import (
    ListPrice,
    PriceChange,
    amount,
    changes_of,
    details_of,
    headline,
    list_price,
)
from shared.plan.plan import Action, Item
from shared.prices.price_file import NO_FILE, Prices
from tests.support.desired_clusters import desired, with_field
from tests.support.recorded_prices import DAY, prices_of

Clusters = Mapping[str, Desired]


def prices(*clusters: Desired) -> Prices:
    return prices_of(cluster.spec for cluster in clusters)


def planned(old: Clusters, new: Clusters, **actions: Action) -> list[Item]:
    """Return the items of a plan from clusters to clusters."""
    items = []
    for name in sorted({*old, *new}):
        usual = (
            Action.UPDATE if name in old and name in new else Action.CREATE if name in new else Action.DELETE
        )
        items.append(Item(name, actions.get(name, usual)))
    return items


def compared(old: Clusters, new: Clusters, known: Prices | str = "", **actions: Action) -> ListPrice | None:
    file = known or prices(*old.values(), *new.values())
    return list_price(planned(old, new, **actions), new, old, file)


def named(*clusters: Desired) -> Clusters:
    return {cluster.name: cluster for cluster in clusters}


def found(*given: Any, **more: Any) -> ListPrice:
    price = compared(*given, **more)
    assert price is not None
    return price


def autoscaled(name: str, least: int, most: int) -> Desired:
    pool = {
        "name": "system",
        "mode": "System",
        "vmSize": "Standard_D4s_v5",
        "minCount": least,
        "maxCount": most,
    }
    return with_field(desired(name), "nodePools", [pool])


# A node of the tests' clusters is a Standard_D4s_v5 in eastus with a P10: 140.16 + 19.71 a month.
# The tier is 73.00 and the address 3.65.


def test_a_new_cluster_adds_its_list_price() -> None:
    price = found({}, named(desired("one", count=2)))

    assert (price.low, price.high) == (396.39, 396.39)
    assert headline(price, DAY) == "list price: +$396 a month, prices of 2026-09-23"
    assert [*changes_of(price)] == []


def test_a_changed_cluster_adds_the_difference_alone() -> None:
    price = found(named(desired("one", count=1)), named(autoscaled("one", 2, 5)))

    assert (price.low, price.high) == (159.87, 639.48)
    assert headline(price, DAY) == (
        "list price: +$160 (+$639 with autoscaled pools at their maximum) a month, prices of 2026-09-23"
    )


def test_a_higher_minimum_alone_changes_nothing_at_the_maximum() -> None:
    price = found(named(autoscaled("one", 2, 5)), named(autoscaled("one", 4, 5)))
    assert headline(price, DAY).startswith(
        "list price: +$320 ($0.00 with autoscaled pools at their maximum) a month"
    )


def test_a_deleted_cluster_takes_its_list_price_away() -> None:
    price = found(named(desired("one", count=1)), {})
    assert headline(price, DAY).startswith("list price: -$237 a month")


def test_clusters_that_change_alike_are_one_line() -> None:
    price = found(
        named(desired("one"), desired("two"), desired("three", count=3)),
        named(desired("one", count=2), desired("two", count=2)),
    )

    assert price.changes == (
        PriceChange(("three",), -556.26, -556.26),
        PriceChange(("one", "two"), 159.87, 159.87),
    )
    assert [*changes_of(price)] == [("three", "-$556"), ("one, two", "+$160")]
    assert price.low == -236.52


def test_what_has_no_list_price_changes_nothing() -> None:
    tagged = with_field(desired("one"), "tags", {"team": "shop"})
    assert compared(named(desired("one")), named(tagged)) is None
    assert compared(named(desired("one")), named(tagged), NO_FILE) is None


def test_without_a_file_one_line_says_how_to_get_it() -> None:
    price = found({}, named(desired("one")), NO_FILE)

    assert headline(price, DAY) == (
        "list price: not known, because the repository has no prices.yaml; roadstead prices update writes it"
    )
    assert [*details_of(price)] == []


def test_a_size_without_a_price_is_named_and_not_counted() -> None:
    new = named(desired("one", count=2))
    file = prices(*new.values())
    less = Prices(file.day, file.currency, file.source, tuple(e for e in file.entries if e.kind != "node"))
    price = found({}, new, less)

    assert price.low == 116.07
    assert "no price for Standard_D4s_v5 in eastus: not counted" in details_of(price)


def test_what_waits_is_counted_and_said() -> None:
    price = found(named(desired("one"), desired("two")), {}, one=Action.ON_HOLD)
    assert price.low == -473.04
    assert "of it 1 cluster on hold" in details_of(price)


@pytest.mark.parametrize("action", [Action.INVALID, Action.REFUSED, Action.UNCHANGED, Action.ADOPT])
def test_what_is_not_done_or_exists_already_is_not_counted(action: Action) -> None:
    assert compared({}, named(desired("one")), one=action) is None


def test_a_cluster_that_is_adopted_is_named_where_others_change() -> None:
    price = found({}, named(desired("one"), desired("two")), one=Action.ADOPT)
    assert price.low == 236.52
    assert "clusters that are adopted, which exist already" in price.left_out


def test_a_recorded_spec_that_is_no_longer_valid_is_named() -> None:
    document = desired("one").document()
    old = Desired({**document, "spec": {**document["spec"], "nodePools": "many"}})
    new = named(desired("one", count=2), desired("two"))
    price = found({"one": old}, new, prices(*new.values()))

    assert (price.low, price.left_out) == (
        236.52,
        ("one, whose recorded spec is not valid by the rules of today",),
    )


def test_spot_nodes_are_said_apart() -> None:
    spot = {"name": "spot", "vmSize": "Standard_E2as_v4", "scaleSetPriority": "Spot", "minCount": 0}
    disk = {"maxCount": 10, "osDiskType": "Ephemeral"}
    base = desired("one", location="australiaeast")
    pools = [*base.document()["spec"]["nodePools"], {**spot, **disk}]
    price = found(named(base), named(with_field(base, "nodePools", pools)))

    assert (price.low, price.high) == (0, 122.68)
    assert (
        "of it spot nodes $0.00 (+$123 with autoscaled pools at their maximum); their price changes"
        in details_of(price)
    )


def test_old_prices_say_so() -> None:
    price = found({}, named(desired("one")))
    assert headline(price, DAY + timedelta(89)).endswith("prices of 2026-09-23")
    assert headline(price, DAY + timedelta(90)).endswith("2026-09-23, 90 days old: roadstead prices update")


@pytest.mark.parametrize(
    ("value", "currency", "text"),
    [
        *((0, "USD", "$0.00"), (3.65, "USD", "+$3.65"), (-3.65, "EUR", "-€3.65")),
        *((1234.5, "USD", "+$1,234"), (-1234567.0, "NOK", "-1,234,567 NOK")),
    ],
)
def test_amounts_are_short(value: float, currency: str, text: str) -> None:
    assert amount(value, currency) == text


CLUSTER = st.builds(autoscaled, st.sampled_from("abcd"), st.integers(1, 5), st.integers(5, 9))
FLEETS = st.lists(CLUSTER, max_size=4).map(lambda clusters: named(*clusters))


@pytest.mark.lives
@given(FLEETS, FLEETS)
def test_the_way_back_has_the_opposite_difference(old: Clusters, new: Clusters) -> None:
    there, back = compared(old, new), compared(new, old)

    assert (there is None) == (back is None)
    if there is not None and back is not None:
        assert (there.low, there.high) == (-back.low, -back.high)
        each = sum(round(change.low * 100) * len(change.clusters) for change in there.changes)
        assert each == round(there.low * 100)


def test_today_is_never_before_the_prices_as_an_age() -> None:
    assert "old" not in headline(found({}, named(desired("one"))), date.min)
