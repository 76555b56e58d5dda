"""Reads the price file of a commit, and compares the list price of what its plan changes.

A price file that is missing, wrong or cannot be read stops no plan: the plan says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from shared.app.repository import read_blobs
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.record import ClusterRecord
from shared.language.desired import Desired
from shared.language.resolve.repository_layout import Files
from shared.plan.list_price import ListPrice, changes_price, list_price
from shared.plan.plan import Item
from shared.ports import Ports
from shared.prices.price_file import PRICE_FILE, Prices
from shared.prices.quota_prices import prices_from

log = logging.getLogger(__name__)


def list_price_of(
    commit: str,
    files: Files,
    items: Sequence[Item],
    wanted: Mapping[str, Desired],
    records: Mapping[str, ClusterRecord],
    ports: Ports,
) -> ListPrice | None:
    """Return by how much a plan changes the list price, None where it does not; at most one read."""
    recorded = {item.cluster: records[item.cluster].desired for item in items if item.cluster in records}
    if not changes_price(items, wanted, recorded):
        return None
    return list_price(items, wanted, recorded, prices_in(commit, files, ports))


def prices_in(commit: str, files: Files, ports: Ports) -> Prices | str:
    """Return the prices that a commit has, or why there are none; one read."""
    blob = files.blobs.get(PRICE_FILE)
    try:
        return prices_from(read_blobs(commit, {PRICE_FILE: blob}, ports)[blob] if blob else None)
    except ReconcileError as error:
        log.warning("%s could not be read: %s: %s", PRICE_FILE, error.kind, error)
        return f"not known, because {PRICE_FILE} could not be read: {error.kind}"
