"""Since when the items of a plan are on hold: since the first of consecutive plans that had them so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from shared.fleet.planning.plan import Item, Plan


def held_since(
    plan: Plan, earlier: Plan | None, since: Mapping[str, datetime], now: datetime
) -> Mapping[str, datetime]:
    """Return since when each cluster's item is on hold.

    ``earlier`` is the plan before, of this commit or of another one, and ``since`` what it said. An item that
    is on hold for another kind of reason than there is so since ``now``.
    """
    before = {item.cluster: item.hold.kind for item in earlier.items if item.hold} if earlier else {}
    return {
        item.cluster: min(since.get(item.cluster, now), now)
        if before.get(item.cluster) is item.hold.kind
        else now
        for item in plan.items
        if item.hold
    }


def with_since(item: Item, since: Mapping[str, datetime]) -> Item:
    """Return an item whose hold says since when it lasts; a freeze and a window say that themselves."""
    at = since.get(item.cluster)
    if item.hold is None or at is None or item.hold.is_of_time:
        return item
    return replace(item, hold=item.hold.lasting_since(at))
