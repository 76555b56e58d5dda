"""The local list of retail prices. The README has its rules and their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService

PATH = "/api/retail/prices"
RECORDED = Path(__file__).parent / "recorded.yaml"
PAGE = 100
_CLAUSE = re.compile(r"\s*(\w+) eq '((?:[^']|'')*)'\s*")
_FIELDS = frozenset(
    {"armRegionName", "armSkuName", "meterName", "priceType", "productName", "serviceName", "skuName"}
)
"""The documented fields of a filter whose values are recorded."""

Entry = Mapping[str, Any]


def recorded() -> list[Entry]:
    """Return the recorded entries as the list shows them."""
    return [shown(entry) for entry in yaml.safe_load(RECORDED.read_text())["entries"]]


def shown(entry: Entry) -> Entry:
    """Return one entry with the fields of the list."""
    price = float(entry["price"])
    return {
        "currencyCode": entry.get("currency", "USD"),
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": entry["region"],
        "meterName": entry["meter"],
        "productName": entry["product"],
        "skuName": entry["sku"],
        "serviceName": entry["service"],
        "unitOfMeasure": entry["unit"],
        "type": entry.get("type", "Consumption"),
        "isPrimaryMeterRegion": entry.get("primary", True),
        "armSkuName": entry["arm"],
    }


class PricesServer(LocalService):
    """Serves the list; a context manager. ``entries`` are the recorded ones, unless a test gives its own."""

    def __init__(self, entries: list[Entry] | None = None, *, page: int = PAGE, port: int = 0) -> None:
        self._entries, self._page = recorded() if entries is None else entries, page
        super().__init__(self._answer, "prices", port=port)
        self.address = f"{self.url}{PATH}"

    def _answer(self, request: Request) -> Response:
        if request.path != PATH or request.method != "GET":
            return json_response(404, {"Error": "Not Found"})
        try:
            asked = dict(_clauses(request.args.get("$filter", "")))
        except ValueError as error:
            return json_response(400, {"Error": f"Invalid OData parameters supplied: {error}"})
        currency = request.args.get("currencyCode", "'USD'").strip("'")
        primary = request.args.get("meterRegion", "").strip("'") == "primary"
        found = [
            entry
            for entry in self._entries
            if entry["currencyCode"] == currency
            and (entry["isPrimaryMeterRegion"] or not primary)
            and all(entry[field] == value for field, value in asked.items())
        ]
        skipped = request.args.get("$skip", 0, type=int)
        items, following = found[skipped : skipped + self._page], None
        if skipped + self._page < len(found):
            query = {**request.args.to_dict(), "$skip": skipped + self._page}
            following = f"{self.url}{PATH}?{urlencode(query)}"
        answer = {
            "BillingCurrency": currency,
            "CustomerEntityId": "Default",
            "CustomerEntityType": "Retail",
            "Items": items,
            "NextPageLink": following,
            "Count": len(items),
        }
        return json_response(200, answer)


def _clauses(text: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a filter with their values; raise ValueError for one that is refused."""
    for clause in text.split(" and ") if text else ():
        found = _CLAUSE.fullmatch(clause)
        if found is None or found[1] not in _FIELDS:
            raise ValueError(clause)
        field = "type" if found[1] == "priceType" else found[1]
        yield field, found[2].replace("''", "'")


if __name__ == "__main__":
    with PricesServer() as server:
        print(f"export ROADSTEAD_PRICES_URL={server.address}", flush=True)
        input()
