"""The list price of a cluster for whoever bounds it: quotas, and requests of people. Pure."""

from __future__ import annotations

import json
import math

from pydantic import ValidationError

from shared.language.desired import Desired
from shared.language.resolve.rules.quota_rules import PRICED_PARTS
from shared.prices.monthly import Monthly, monthly
from shared.prices.price_file import NO_FILE, PriceFileProblem, Prices, read_prices

_NOTHING = Monthly()


def prices_from(content: bytes | None) -> Prices | str:
    """Return the prices of a price file, None for no file, or why there are none."""
    if content is None:
        return NO_FILE
    try:
        return read_prices(content)
    except PriceFileProblem as problem:
        return f"not known: {problem}"


def price_of(cluster: Desired | None, prices: Prices) -> Monthly:
    """Return the list price of a cluster, that of nothing for None; raise pydantic's ValidationError."""
    return monthly(cluster.spec, prices, cluster.labels) if cluster else _NOTHING


class QuotaPrices:
    """The prices of a file, as quotas ask for them: clusters with equal parts are priced once."""

    def __init__(self, prices: Prices | str) -> None:
        self._prices = prices
        self._known = dict[str, tuple[int, str]]()

    @property
    def currency(self) -> str:
        """The currency of the prices, "" where there are none."""
        return "" if isinstance(self._prices, str) else self._prices.currency

    def at_most(self, cluster: Desired) -> tuple[int, str]:
        """Return what is known of a cluster's price of a month, rounded up, and what has no price.

        The price has each autoscaled pool at its maximum. What has no price counts nothing, and is a sentence
        with what to do about it, "" for nothing.
        """
        if isinstance(self._prices, str):
            return 0, f"the list price is {self._prices}"
        key = price_key(cluster)
        if key not in self._known:
            self._known[key] = self._priced(cluster, self._prices)
        return self._known[key]

    def _priced(self, cluster: Desired, prices: Prices) -> tuple[int, str]:
        try:
            found = price_of(cluster, prices)
        except ValidationError:
            return 0, "the accepted spec is not valid by the rules of today, and has no list price"
        remedy = "; roadstead prices update gets prices" if found.missing else ""
        return math.ceil(found.high), f"{'; '.join(found.missing[:2])}{remedy}"


def price_key(cluster: Desired) -> str:
    """Return what the list price of a cluster comes from: most clusters of a fleet have it in common."""
    spec = cluster.document()["spec"]
    labels = dict(cluster.labels) if spec.get("sleep") else {}
    return json.dumps([{part: spec.get(part) for part in PRICED_PARTS}, labels], sort_keys=True)
