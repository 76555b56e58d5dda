"""Which entries of Azure's list count: those that were recorded, and what was seen to mislead."""

from __future__ import annotations

from decimal import Decimal

import pytest

from localcloud.prices.prices_server import Entry, recorded
from shared.prices.price_file import Kind, Unit
from shared.prices.retail import PriceNeed, filters_of, price_of, spelt
from tests.support.recorded_prices import why_none

D4S = PriceNeed("eastus", Kind.NODE, "Standard_D4s_v5")


def found(need: PriceNeed, entries: list[Entry] | None = None, currency: str = "USD") -> Decimal:
    return price_of(need, recorded() if entries is None else entries, currency).price


def entry(**changed: object) -> Entry:
    """Return the recorded entry of a node, with other values."""
    own = next(e for e in recorded() if (e["armSkuName"], e["armRegionName"]) == (D4S.name, D4S.region))
    return {**own, **changed}


@pytest.mark.parametrize(
    ("region", "kind", "name", "price"),
    [
        ("eastus", Kind.NODE, "Standard_DS2_v2", "0.146"),
        ("eastus", Kind.WINDOWS_NODE, "Standard_DS2_v2", "0.238"),
        ("australiaeast", Kind.NODE, "Standard_E2as_v4", "0.151"),
        ("australiaeast", Kind.SPOT_NODE, "Standard_E2as_v4", "0.016806"),
        ("westus2", Kind.NODE, "Standard_B2pls_v2", "0.0336"),  # not that of Cloud Services
        ("westeurope", Kind.TIER, "Standard", "0.1"),
        ("westeurope", Kind.TIER, "Premium", "0.6"),
        ("westeurope", Kind.DISK, "P15 LRS", "41.811428"),
        ("westeurope", Kind.ADDRESS, "Standard IPv4 static", "0.005"),
    ],
)
def test_recorded_entries_give_the_price_that_is_meant(
    region: str, kind: Kind, name: str, price: str
) -> None:
    assert found(PriceNeed(region, kind, name)) == Decimal(price)


def test_an_entry_of_low_priority_is_no_node_and_no_spot_node_in_any_order() -> None:
    need = PriceNeed("northeurope", Kind.NODE, "Standard_D4s_v5")

    assert found(need, recorded(), "EUR") == found(need, recorded()[::-1], "EUR") == Decimal("0.1813")
    spot = PriceNeed("northeurope", Kind.SPOT_NODE, "Standard_D4s_v5")
    assert why_none(spot, recorded(), "EUR") == "the list has none"


@pytest.mark.parametrize(
    ("region", "kind", "name"),
    [
        ("italynorth", Kind.WINDOWS_NODE, "Standard_B2s"),
        ("southindia", Kind.WINDOWS_SPOT_NODE, "Standard_D14"),
    ],
)
def test_prices_for_developers_are_none(region: str, kind: Kind, name: str) -> None:
    assert why_none(PriceNeed(region, kind, name), recorded()) == "the list has none"


@pytest.mark.lives
@pytest.mark.parametrize(
    "changed",
    [
        {"type": "Reservation"},
        {"isPrimaryMeterRegion": False},
        {"currencyCode": "EUR"},
        {"tierMinimumUnits": 100.0},
        {"effectiveEndDate": "2026-08-31T23:59:59Z"},
        {"retailPrice": 0.0},
        {"retailPrice": "NaN"},
        {"retailPrice": None},
        {"armRegionName": "eastus2"},
        {"productName": "Dsv5 Series Cloud Services"},
    ],
    ids=str,
)
def test_what_is_no_price_that_everybody_pays_does_not_count(changed: dict[str, object]) -> None:
    assert found(D4S, [entry()]) == Decimal("0.192")
    assert why_none(D4S, [entry(**changed)]) == "the list has none"
    assert found(D4S, [entry(**changed), entry()]) == Decimal("0.192")


def test_a_unit_that_is_not_understood_gives_no_price() -> None:
    assert "by 10K, which is not understood" in why_none(D4S, [entry(unitOfMeasure="10K")])


def test_two_prices_for_the_same_thing_give_none() -> None:
    several = [entry(), entry(retailPrice=0.2)]
    assert why_none(D4S, several) == "the list has several: 0.192, 0.2"


def test_the_price_has_the_name_that_the_list_has() -> None:
    need = PriceNeed("eastus", Kind.NODE, "standard_d4S_v5")
    price = price_of(need, recorded(), "USD")

    assert (price.name, price.unit) == ("Standard_D4s_v5", Unit.HOUR)
    assert [asked.partition(" and ")[2][:31] for asked in filters_of(need)] == [
        "armSkuName eq 'standard_d4S_v5'",
        "armSkuName eq 'Standard_D4s_v5'",
    ]


@pytest.mark.parametrize(
    "size",
    [
        *("Standard_D4s_v5", "Standard_DS2_v2", "Standard_B2ms", "Standard_E4-2as_v5", "Standard_M416s_8_v2"),
        *("Standard_NC24ads_A100_v4", "Standard_NC64as_T4_v3", "Standard_ND128isr_NDR_GB200_v6"),
    ],
)
def test_a_size_in_any_case_is_spelt_as_azure_does(size: str) -> None:
    assert spelt(size.lower()) == spelt(size.upper()) == spelt(size) == size


def test_a_quote_in_a_name_stays_in_its_value() -> None:
    (asked,) = filters_of(PriceNeed("eastus", Kind.DISK, "P10' or '1' eq '1"))
    assert "skuName eq 'P10'' or ''1'' eq ''1'" in asked
