"""The recorded entries of Azure's list of retail prices, as a price file has them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from localcloud.prices.prices_server import Entry, recorded
from shared.language.model.cluster.spec import ClusterSpec
from shared.prices.price_file import Price, Prices
from shared.prices.retail import NoPrice, PriceNeed, needs_of, price_of

DAY = date(2026, 9, 23)
"""When most of them were recorded."""


def prices_of(specs: Iterable[ClusterSpec], entries: Iterable[Entry] | None = None) -> Prices:
    """Return what ``roadstead prices update`` writes for these clusters."""
    known = list(recorded() if entries is None else entries)
    found = list[Price]()
    for need in needs_of(specs):
        try:
            found.append(price_of(need, known, "USD"))
        except NoPrice:
            continue
    return Prices(DAY, "USD", "https://prices.azure.com/api/retail/prices", tuple(found))


def why_none(need: PriceNeed, entries: Iterable[Entry], currency: str = "USD") -> str:
    """Return why entries have no price for a need."""
    try:
        price_of(need, entries, currency)
    except NoPrice as reason:
        return str(reason)
    raise AssertionError(f"there is a price for {need}")
