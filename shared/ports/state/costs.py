"""What the clusters of a subscription are listed at, and what Azure has billed: a record for each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.cluster.forms import RecordList
from shared.frozen import dataclass, field, replace
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind
from shared.prices.cost_groups import CostGroup, ListedCluster


@dataclass(frozen=True)
class ListedClusters:
    """The list prices of clusters by their names, computed ``at`` a time from the prices of a ``day``.

    ``missing`` names some of what has no price. With a ``problem`` there are none.
    """

    at: datetime
    day: str = ""
    currency: str = ""
    clusters: Mapping[str, ListedCluster] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class SubscriptionCosts:
    """What the clusters of a subscription have cost from ``since`` to ``until``, days as ISO 8601.

    ``clusters`` has the amounts by their names, and ``own`` those of the app's own resource group by the type
    of resource; ``at`` is when they were read, None for never. ``problem`` is why the last attempt, which was
    at ``tried``, read nothing, "" where it did. ``listed`` is None until it was computed once.
    """

    subscription: str
    tried: datetime
    at: datetime | None = None
    since: str = ""
    until: str = ""
    currency: str = ""
    clusters: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""
    own: Mapping[str, float] = field(default_factory=dict)
    listed: ListedClusters | None = None


@dataclass(frozen=True)
class WeekOfCosts:
    """What the digest of a week, such as "2026-W49", said: sums of list prices in a currency, by groups."""

    week: str
    currency: str
    environments: Mapping[str, CostGroup] = field(default_factory=dict)
    owners: Mapping[str, CostGroup] = field(default_factory=dict)


@dataclass(frozen=True)
class UsedOperations:
    """How often the apps did each operation on a day, as ISO 8601, by the names of ``shared.ports.tally``."""

    day: str
    counts: Mapping[str, float] = field(default_factory=dict)
    etag: str = ""


class Costs(TableRepository):
    """The costs that were read last, and what the apps use themselves."""

    def costs(self) -> RecordList[SubscriptionCosts]:
        """Return the costs of each subscription that was ever asked."""
        return self._listed(COSTS)

    def save_costs(self, costs: SubscriptionCosts) -> None:
        """Write the costs of a subscription over those before."""
        self._put(COSTS, costs.subscription, costs, at=costs.tried)

    def week_of_costs(self) -> WeekOfCosts | None:
        """Return the week of the last digest of costs, None for none yet."""
        return self._value(WEEK, WEEK.name)

    def save_week_of_costs(self, week: WeekOfCosts) -> None:
        """Write the week of the last digest over the one before."""
        self._put(WEEK, WEEK.name, week)

    def used(self) -> RecordList[UsedOperations]:
        """Return what the apps have used, a record for each day, by day."""
        return self._listed(USED)

    def add_used(self, counts: Mapping[str, float], at: datetime) -> None:
        """Add to what was used on the day of a time; raise Stale where another process does so."""
        day = at.date().isoformat()
        entity = self._entity(USED, day)
        new = UsedOperations(day, etag=entity.etag if entity else "")
        before = self._reader.or_else(new, USED, entity) if entity else new
        names = {*before.counts, *counts}
        sums = {name: round(before.counts.get(name, 0) + counts.get(name, 0), 1) for name in sorted(names)}
        self._write(USED, day, replace(before, counts=sums), at=at)


COSTS = TextKind[SubscriptionCosts]("costs", FLEETS, SubscriptionCosts, "costs|{}")
WEEK = TextKind[WeekOfCosts]("week of costs", FLEETS, WeekOfCosts, "week-of-costs|{}")
USED = TextKind[UsedOperations]("used operations", FLEETS, UsedOperations, "used|{}")
