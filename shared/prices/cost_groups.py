"""What is known of the costs of clusters: each by itself, and added up in groups. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from shared.frozen import dataclass

NO_GROUP = "(none)"
"""The group of clusters that have no value."""
OWNER = "owner"
"""The label that says whose a cluster is."""


@dataclass(frozen=True)
class ListedCluster:
    """The list price of a cluster for a month, at the least and at the most, and what is left of it asleep.

    ``unpriced`` counts what has no price in the file, and so is not in it.
    """

    low: float
    high: float
    idle_low: float
    idle_high: float
    unpriced: int = 0


@dataclass(frozen=True)
class KnownCost:
    """A cluster and what is known of its cost: ``listed`` and ``billed`` are None where that is not known."""

    name: str
    environment: str
    owner: str
    systems: tuple[str, ...] = ()
    asleep: bool = False
    listed: ListedCluster | None = None
    billed: float | None = None


@dataclass(frozen=True)
class CostGroup:
    """Clusters together: how many, of how many the list price and what was billed are known, and the sums.

    ``asleep`` of them sleep, which leaves ``idle_low`` to ``idle_high`` of a month's list price. ``unpriced``
    have something without a price.
    """

    clusters: int
    listed: int
    low: float
    high: float
    asleep: int
    idle_low: float
    idle_high: float
    unpriced: int
    billed_clusters: int
    billed: float


Keys = Callable[[KnownCost], Iterable[str]]
BY: Mapping[str, Keys] = {
    "environment": lambda cost: (cost.environment or NO_GROUP,),
    "owner": lambda cost: (cost.owner or NO_GROUP,),
    "system": lambda cost: cost.systems or (NO_GROUP,),
}
"""How costs are grouped. A cluster counts as a whole for each of its systems: they share its nodes."""


def grouped(costs: Iterable[KnownCost], by: str) -> Mapping[str, CostGroup]:
    """Return the groups of clusters by their names, the dearest first."""
    members = defaultdict[str, list[KnownCost]](list)
    for cost in costs:
        for name in BY[by](cost):
            members[name].append(cost)
    found = {name: summed(some) for name, some in members.items()}
    return dict(sorted(found.items(), key=lambda group: (-group[1].low, group[0])))


def summed(costs: Sequence[KnownCost]) -> CostGroup:
    """Return clusters together."""
    listed = [cost.listed for cost in costs if cost.listed]
    asleep = [cost.listed for cost in costs if cost.listed and cost.asleep]
    billed = [cost.billed for cost in costs if cost.billed is not None]
    return CostGroup(
        clusters=len(costs),
        listed=len(listed),
        low=_sum(found.low for found in listed),
        high=_sum(found.high for found in listed),
        asleep=sum(cost.asleep for cost in costs),
        idle_low=_sum(found.idle_low for found in asleep),
        idle_high=_sum(found.idle_high for found in asleep),
        unpriced=sum(found.unpriced > 0 for found in listed),
        billed_clusters=len(billed),
        billed=_sum(billed),
    )


def _sum(amounts: Iterable[float]) -> float:
    return round(sum(amounts), 2)
