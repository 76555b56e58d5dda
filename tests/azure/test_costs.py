"""What was billed for resources, as the costs of clusters."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from shared.azure.costs import Places, costs_in, node_group
from shared.ports.azure.costs import following
from tests.support.desired_clusters import desired, with_field

ONE, TWO = desired("one"), with_field(desired("two"), "nodeResourceGroup", "nodes-of-two")
SUBSCRIPTION = ONE.id.subscription
PLACES = Places.of([ONE, TWO])


def answer(*lines: Any, columns: tuple[str, ...] = ("Cost", "ResourceId", "Currency")) -> dict[str, Any]:
    return {"properties": {"columns": [{"name": name} for name in columns], "rows": list(lines)}}


def resource(group: str, kind: str = "microsoft.compute/disks/a", subscription: str = SUBSCRIPTION) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}"


def test_nodes_are_those_of_the_node_group_and_the_fee_is_on_the_cluster() -> None:
    found, currency = costs_in(
        [
            answer(
                [70.08, resource("MC_rg-one_one_eastus"), "USD"],
                [1.5, resource("mc_RG-ONE_one_eastus", "microsoft.network/publicipaddresses/b"), "USD"],
                [73, ONE.id.resource.upper().replace("/SUBSCRIPTIONS", "/subscriptions"), "USD"],
                [5, resource("rg-one", "microsoft.keyvault/vaults/own"), "USD"],
            ),
            answer([2.25, resource("nodes-of-two"), "USD"]),
        ],
        PLACES,
    )
    assert found == {"one": Decimal("144.58"), "two": Decimal("2.25")}
    assert currency == "USD"


def test_the_same_group_in_another_subscription_is_another_one() -> None:
    other = resource("MC_rg-one_one_eastus", subscription="99999999-1111-1111-1111-111111111111")
    assert costs_in([answer([1, other, "USD"])], PLACES) == ({}, "")


def test_what_is_no_clusters_may_have_another_currency() -> None:
    found = costs_in([answer([9, "x", "USD"], [1, resource("nodes-of-two"), "EUR"])], PLACES)
    assert found == ({"two": Decimal(1)}, "EUR")


def test_the_columns_may_stand_in_any_order() -> None:
    columns = ("Currency", "ResourceId", "Cost", "More")
    line = ["EUR", resource("nodes-of-two"), 1, None]
    assert costs_in([answer(line, columns=columns)], PLACES) == ({"two": Decimal(1)}, "EUR")


def test_nothing_billed_is_no_cost() -> None:
    assert costs_in([answer()], PLACES) == ({}, "")


@pytest.mark.parametrize(
    "odd",
    [
        answer(columns=("PreTaxCost", "ResourceId", "Currency")),
        answer([1, resource("nodes-of-two")]),
        answer(["much", resource("nodes-of-two"), "USD"]),
        answer(["NaN", resource("nodes-of-two"), "USD"]),
        answer(["1E400", resource("nodes-of-two"), "USD"]),
        answer([1, resource("nodes-of-two"), "USD"], [1, resource("nodes-of-two"), "EUR"]),
        {"properties": {"columns": [{"name": n} for n in ("Cost", "ResourceId", "Currency")], "rows": None}},
    ],
)
def test_what_is_not_understood_is_an_error(odd: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"columns|line|number|currencies"):
        costs_in([odd], PLACES)


def test_the_node_group_is_that_of_the_manifest_or_of_aks() -> None:
    assert (node_group(ONE), node_group(TWO)) == ("MC_rg-one_one_eastus", "nodes-of-two")


@pytest.mark.parametrize(
    ("link", "skip"),
    [
        ("https://management.azure.com/x?api-version=2025-03-01&$skiptoken=AQAAAA%3D%3D", "AQAAAA=="),
        ("https://management.azure.com/x?%24skiptoken=b", "b"),
        (None, ""),
        ("", ""),
        (7, ""),
    ],
)
def test_the_next_page_is_what_the_link_says(link: object, skip: str) -> None:
    assert following({"properties": {"nextLink": link}}) == skip
