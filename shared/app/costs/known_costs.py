"""What clusters are listed at, and what Azure has billed: found once a day, and sent once a week as a digest.

Azure is asked one question for each subscription. The quota of these questions, in query processing units, is
that of the whole tenant (learn.microsoft.com/azure/cost-management-billing/costs/manage-automation). So the
first refusal ends the questions of a run, and the next day tries again. List prices come from the price file
of the newest planned commit, and need Azure not at all.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice

from pydantic import ValidationError

from shared.app.costs.list_prices import prices_in
from shared.app.repository import read_files
from shared.azure.costs import OWN, Places, costs_in
from shared.cluster.failures.errors import ReconcileError, Throttled, Unauthorized
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.masking import cut
from shared.notifications.weekly_costs import CostSums, week_of, weekly
from shared.ports import Ports
from shared.ports.azure import GetCosts
from shared.ports.azure.costs import following
from shared.ports.state import ListedClusters, SubscriptionCosts, WeekOfCosts
from shared.ports.state.subscriptions import COSTS
from shared.prices.cost_groups import OWNER, KnownCost, ListedCluster, grouped, summed
from shared.prices.monthly import idle
from shared.prices.price_file import PRICE_FILE, Prices
from shared.prices.quota_prices import price_key, price_of
from shared.resource_ids import SubscriptionId

log = logging.getLogger(__name__)

DAYS = 30
"""The days that are asked for, up to yesterday: of today Azure knows little."""
AGAIN = timedelta(hours=20)
MOST_PAGES = 20
MOST_MISSING = 20
"""So many things without a price are named of a subscription."""
NOT_PERMITTED = (
    "not permitted to read costs; deploy with readCosts, or roadstead setup subscription --allow readCosts"
)


def read_costs(ports: Ports) -> None:
    """Find the list prices of all clusters, and read the costs of each subscription, once a day."""
    fleet, records, now = ports.state.fleet(), ports.state.clusters(), ports.clock()
    places = Places.of((record.desired for record in records), ports.config.app_group)
    wanted = {
        *(record.desired.id.subscription.lower() for record in records),
        *(name.lower() for name in fleet.rules.subscriptions),
    } - {""}
    ports.state.prune(COSTS, now - timedelta(days=DAYS))
    before = {costs.subscription: costs for costs in ports.state.costs()}
    new = (SubscriptionCosts(name, now - timedelta(days=DAYS)) for name in sorted(wanted - before.keys()))
    asked = [*new, *(costs for name, costs in before.items() if name in wanted)]
    due = [known for known in asked if now - known.tried >= AGAIN]
    if not due:
        return
    listed, asks = _listed(records, _prices(fleet.commit, ports), now), True
    for costs in sorted(due, key=lambda costs: costs.tried):  # so that a quota that is short starves none
        known = replace(costs, listed=listed.get(costs.subscription, listed[""]))
        after, asks = _billed(known, places, ports) if asks else (known, False)
        ports.state.save_costs(after)


def _prices(commit: str, ports: Ports) -> Prices | str:
    """Return the prices of a commit, or why there are none; two calls at the most."""
    if not commit:
        return "not known, because no commit was planned yet"
    try:
        return prices_in(commit, read_files(commit, ports), ports)
    except ReconcileError as error:
        log.warning("the files of %s could not be read for list prices: %s", commit[:8], error)
        return f"not known, because {PRICE_FILE} could not be read: {error.kind}"


def _listed(
    records: Sequence[ClusterRecord], prices: Prices | str, now: datetime
) -> Mapping[str, ListedClusters]:
    """Return the list prices of clusters by subscription, and by "" what one without clusters has."""
    if isinstance(prices, str):
        return {"": ListedClusters(now, problem=prices)}
    none = ListedClusters(now, prices.day.isoformat(), prices.currency)
    clusters = defaultdict[str, dict[str, ListedCluster]](dict)
    missing = defaultdict[str, dict[str, None]](dict)
    known = dict[str, tuple[ListedCluster, tuple[str, ...]]]()
    for record in records:
        cluster = record.desired
        if cluster.is_attached or record.deleting:
            continue
        subscription = cluster.id.subscription.lower()
        try:
            key = price_key(cluster)
            known[key] = known.get(key) or _of_cluster(cluster, prices)
        except ValidationError:
            missing[subscription][f"{cluster.name}: its accepted spec is not valid by the rules of today"] = (
                None
            )
            continue
        found, lacking = known[key]
        clusters[subscription][cluster.name] = found
        missing[subscription] |= dict.fromkeys(lacking)
    return {"": none} | {
        name: replace(none, clusters=clusters[name], missing=tuple(missing[name])[:MOST_MISSING])
        for name in {*clusters, *missing}
    }


def _of_cluster(cluster: Desired, prices: Prices) -> tuple[ListedCluster, tuple[str, ...]]:
    whole, asleep = price_of(cluster, prices), idle(cluster.spec, prices)
    low, high, idle_low, idle_high = (
        round(float(value), 2) for value in (whole.low, whole.high, asleep.low, asleep.high)
    )
    return ListedCluster(low, high, idle_low, idle_high, len(whole.missing)), whole.missing


def _billed(known: SubscriptionCosts, places: Places, ports: Ports) -> tuple[SubscriptionCosts, bool]:
    """Return with what Azure has billed, or why that was not read, and whether Azure may be asked on."""
    now = ports.clock()
    try:
        return _read(known, places, ports), True
    except Unauthorized:
        return replace(known, tried=now, problem=NOT_PERMITTED), True
    except Throttled as error:
        log.warning("costs are not read today: %s", error)
        return replace(known, tried=now, problem="Azure's quota for costs is used up today"), False
    except (ReconcileError, ValueError) as error:
        log.warning("the costs of %s cannot be read: %s", known.subscription, error)
        return replace(known, tried=now, problem=cut(f"the costs cannot be read: {error}", 200)), True


def _read(known: SubscriptionCosts, places: Places, ports: Ports) -> SubscriptionCosts:
    now = ports.clock()
    until = now.date() - timedelta(days=1)
    since = until - timedelta(days=DAYS - 1)
    first = GetCosts(SubscriptionId(known.subscription), since.isoformat(), until.isoformat())
    found, currency = costs_in(_pages(first, ports), places)
    amounts = {name: round(float(amount), 2) for name, amount in sorted(found.items())}
    return replace(
        known,
        tried=now,
        at=now,
        since=since.isoformat(),
        until=until.isoformat(),
        currency=currency,
        clusters={name: amount for name, amount in amounts.items() if not name.startswith(OWN)},
        problem="",
        own={name[len(OWN) :]: amount for name, amount in amounts.items() if name.startswith(OWN)},
    )


def _pages(first: GetCosts, ports: Ports) -> Iterator[Json]:
    # Without a token of ARM's: a refusal by this quota must not stop what else is read of the subscription.
    asked = first
    for _ in range(MOST_PAGES):
        document = ports.azure.call(asked)
        yield document
        skip = following(document)
        if not skip or skip == asked.skip:
            return
        asked = replace(asked, skip=skip)
    raise ValueError(f"there are more than {MOST_PAGES} pages")


@dataclass(frozen=True)
class FleetCosts:
    """What is known of the costs of the clusters, and from which subscription's record each figure is."""

    clusters: tuple[KnownCost, ...]
    records: tuple[SubscriptionCosts, ...]

    @cached_property
    def listed_by(self) -> Mapping[str, ListedClusters]:
        """The list prices that have a cluster, by its name."""
        return {name: listed for listed in self.listed for name in listed.clusters}

    @cached_property
    def billed_by(self) -> Mapping[str, SubscriptionCosts]:
        """The record that has what was billed for a cluster, by its name."""
        return {name: record for record in self.records for name in record.clusters}

    @property
    def billed_currency(self) -> str:
        """The currency of what was billed; "" for none, and for several."""
        currencies = {record.currency for record in self.records} - {""}
        return currencies.pop() if len(currencies) == 1 else ""

    @property
    def listed(self) -> tuple[ListedClusters, ...]:
        """The list prices of the subscriptions, as they were found last."""
        return tuple(record.listed for record in self.records if record.listed)

    @property
    def currency(self) -> str:
        """The currency of list prices; "" for none, and while subscriptions have them in several."""
        currencies = {listed.currency for listed in self.listed} - {""}
        return currencies.pop() if len(currencies) == 1 else ""


def known_costs(ports: Ports) -> FleetCosts:
    """Return what is known of the costs of the fleet's clusters; two reads."""
    records = tuple(sorted(ports.state.costs(), key=lambda costs: costs.subscription))
    found = FleetCosts((), records)
    summaries = ports.state.summaries(details=True)
    return FleetCosts(tuple(_known(summary, found) for summary in summaries), records)


def _known(summary: ClusterSummary, found: FleetCosts) -> KnownCost:
    details, name = summary.details, summary.name
    listed, billed = found.listed_by.get(name), found.billed_by.get(name)
    return KnownCost(
        summary.name,
        summary.place.environment,
        details.labels.get(OWNER, ""),
        tuple(system.name for system in details.systems),
        summary.phase is Phase.SLEEPING,
        listed.clusters[name] if listed else None,
        billed.clusters[name] if billed else None,
    )


MOST_OWNERS = 500
"""So many owners are compared with the week before, the dearest: one record has room for them."""


def digest_costs(ports: Ports) -> None:
    """Store the digest of this week, unless it is stored; a week that was missed has none.

    The notification is stored before the week, so that a crash between them stores the same one again.
    """
    now, before = ports.clock(), ports.state.week_of_costs()
    if before is not None and before.week >= week_of(now):
        return
    found = known_costs(ports)
    if not found.clusters or not found.listed:
        return
    sums = CostSums(found.currency, grouped(found.clusters, "environment"), grouped(found.clusters, "owner"))
    digest = weekly(
        now,
        summed(found.clusters),
        sums,
        (before.week, CostSums(before.currency, before.environments, before.owners)) if before else None,
        price_days=sorted({listed.day for listed in found.listed} - {""}),
        missing=list(dict.fromkeys(text for listed in found.listed for text in listed.missing)),
        problems=sorted({listed.problem for listed in found.listed} - {""}),
        billed_currency=found.billed_currency,
    )
    ports.state.add_notification(digest)
    owners = dict(islice(sums.owners.items(), MOST_OWNERS))
    ports.state.save_week_of_costs(WeekOfCosts(week_of(now), sums.currency, sums.environments, owners))
