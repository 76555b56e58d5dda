"""The local list of retail prices keeps to what is documented of Azure's."""

from __future__ import annotations

import httpx
import pytest

from localcloud.prices.prices_server import RECORDED, PricesServer, recorded

SIZE = "serviceName eq 'Virtual Machines' and armRegionName eq 'eastus' and armSkuName eq '{}'"


def asked(service: PricesServer, text: str, **more: str) -> httpx.Response:
    return httpx.get(service.address, params={"$filter": text, **more})


def test_values_of_a_filter_are_case_sensitive() -> None:
    with PricesServer() as service:
        assert len(asked(service, SIZE.format("Standard_D4s_v5")).json()["Items"]) == 1
        assert asked(service, SIZE.format("standard_d4s_v5")).json()["Items"] == []


@pytest.mark.parametrize("text", ["armSkuName eq 'a' or armSkuName eq 'b'", "price lt 3", "nope eq 'a'"])
def test_what_a_filter_cannot_say_is_refused(text: str) -> None:
    with PricesServer() as service:
        assert asked(service, text).status_code == 400


@pytest.mark.lives
def test_all_pages_have_all_entries_once() -> None:
    with PricesServer(page=7) as service:
        found, address = [], service.address
        while address:
            page = httpx.get(address).json()
            found += page["Items"]
            address = page["NextPageLink"]

    assert found == [entry for entry in recorded() if entry["currencyCode"] == "USD"]


def test_each_recorded_entry_has_a_source() -> None:
    import yaml

    document = yaml.safe_load(RECORDED.read_text())
    assert {entry["source"] for entry in document["entries"]} == document["sources"].keys()
