"""What is stored of each subscription: when its clusters were listed, what a list showed, and their costs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.azure.drift.activity import Activity
from shared.cluster.forms import RecordList
from shared.frozen import dataclass, field, replace
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind
from shared.ports.tables import Entity
from shared.prices.cost_groups import CostGroup, ListedCluster

NAMED = 3
"""How many clusters a problem names."""


@dataclass(frozen=True)
class Orphan:
    """A cluster with this fleet's tags that the fleet does not know, since when a sweep sees it.

    ``resource`` is its id in Azure, ``cluster`` the name and ``installation`` the id and branch of the app
    that its tags have, "" for none.
    """

    resource: str
    cluster: str
    installation: str
    since: datetime


@dataclass(frozen=True)
class Listing:
    """The last list of a subscription's clusters that was complete; ``at`` is None for none.

    ``problem`` is why the newest one concludes nothing, or less than it should, "" for nothing. ``activity``
    is why the activity log could not be read when a sweep asked for it last, "" where it could.
    ``undecided`` are the clusters of which that list could not show a difference: an operation ran on them,
    it lacked them, or their record was about as new. ``before`` is when the list before it was asked for.
    """

    subscription: str
    at: datetime | None = None
    problem: str = ""
    orphans: tuple[Orphan, ...] = ()
    activity: str = ""
    undecided: tuple[str, ...] = ()
    before: datetime | None = None


@dataclass(frozen=True)
class SweepRecord:
    """When the last sweep started, when one reached every subscription, and the list of each subscription.

    ``proposals`` is why pull requests about drift are not opened that should be, "" for nothing. ``etag`` is
    the version that was read, "" for a record not saved yet.
    """

    started: datetime | None = None
    finished: datetime | None = None
    listings: tuple[Listing, ...] = ()
    proposals: str = ""
    etag: str = field(default="", compare=False)

    def listed_at(self, subscription: str, cluster: str = "") -> datetime | None:
        """Return when the clusters of a subscription were listed last, None for never."""
        listing = next((own for own in self.listings if own.subscription == subscription.lower()), None)
        if listing is None:
            return None
        return listing.before if cluster in listing.undecided else listing.at


@dataclass(frozen=True)
class ClusterChanges:
    """What Azure's events said of a cluster: who wrote what lately, the last one last.

    ``asked`` is the time of the comparison that was asked for last. ``etag`` is the version that was read, ""
    for one not saved yet.
    """

    cluster: str
    changes: tuple[Activity, ...] = ()
    asked: datetime | None = None
    etag: str = field(default="", compare=False)


class Sweeps(TableRepository):
    """The sweeps of the fleet, and what Azure's events said between them."""

    def sweep(self) -> SweepRecord:
        """Return the record of the sweeps; a new one when none was saved, or it cannot be read."""
        return self._sweep_in(self._entity(SWEEP, sweep_key(self._fleet)))

    def _sweep_in(self, entity: Entity | None) -> SweepRecord:
        if entity is None:
            return SweepRecord()
        return self._reader.or_else(SweepRecord(etag=entity.etag), SWEEP, entity)

    def save_sweep(self, record: SweepRecord) -> None:
        """Write the record over the version that was read; raise Stale."""
        self._write(SWEEP, sweep_key(self._fleet), record)

    def changes(self) -> RecordList[ClusterChanges]:
        """Return what events said of all clusters."""
        return self._listed(CHANGES)

    def changes_of(self, cluster: str) -> ClusterChanges:
        """Return what events said of a cluster; nothing when nothing was saved, or it cannot be read."""
        entity = self._entity(CHANGES, cluster)
        if entity is None:
            return ClusterChanges(cluster)
        return self._reader.or_else(ClusterChanges(cluster, etag=entity.etag), CHANGES, entity)

    def save_changes(self, changes: ClusterChanges) -> None:
        """Write what events said of a cluster over the version that was read; raise Stale."""
        self._write(CHANGES, changes.cluster, changes, at=changes.asked)


SWEEP = TextKind[SweepRecord]("sweep", FLEETS, SweepRecord, "fleet")


def sweep_key(fleet: str) -> str:
    """Return the key of the sweeps' record: no other sorts between it and that of the fleet's own record."""
    return f"{fleet} sweep"


CHANGES = TextKind[ClusterChanges]("changes", FLEETS, ClusterChanges, "changes|{}")


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
