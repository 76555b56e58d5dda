"""What the clusters are listed at and what Azure has billed, as it was found last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta

from shared.app.api import schema
from shared.app.api.projection import projected
from shared.app.costs.known_costs import DAYS, FleetCosts, known_costs
from shared.frozen import replace
from shared.ports import Ports
from shared.ports.state import SubscriptionCosts
from shared.prices.cost_groups import KnownCost, grouped
from shared.prices.own_use import MONTH_HOURS, REGION, listed_use

ONE_DAY = 24


def costs_view(ports: Ports) -> schema.CostsView:
    """Return the costs of the clusters that the fleet has, in groups too, and what is not known."""
    found = known_costs(ports)
    clusters = [_cluster(cost, found) for cost in found.clusters]
    return {
        "clusters": clusters,
        "environments": [*_groups(found, "environment")],
        "owners": [*_groups(found, "owner")],
        "systems": [*_groups(found, "system")],
        "currency": found.currency,
        "billedCurrency": found.billed_currency,
        "missing": list(dict.fromkeys(text for listed in found.listed for text in listed.missing)),
        "own": [
            {"type": kind, "billed": _billed(amount, record)}
            for record in found.records
            for kind, amount in sorted(record.own.items(), key=lambda entry: -entry[1])
        ],
        "ownUse": own_use_view(ports),
        "listProblem": next((listed.problem for listed in found.listed if listed.problem), ""),
        "problems": [
            projected(schema.CostProblem, record, at=record.tried)
            for record in found.records
            if record.problem
        ],
    }


def costs_by_name(
    names: Iterable[str], ports: Ports
) -> Mapping[str, tuple[schema.ListedCost | None, schema.BilledCost | None]]:
    """Return the list price of some clusters and what was billed, each None for not known; one read."""
    found = FleetCosts((), tuple(ports.state.costs()))
    return {name: (_listed(name, found), _billed_of(name, found)) for name in names}


def own_use_view(ports: Ports) -> schema.OwnUse | None:
    """Return what the apps have counted in 30 days at list prices, None while there is nothing; one read."""
    now = ports.clock()
    first = (now - timedelta(days=DAYS - 1)).date().isoformat()
    days = [used for used in ports.state.used() if used.day >= first]
    if not days:
        return None
    counts = Counter[str]()
    for used in days:
        counts.update(used.counts)
    since = datetime.combine(date.fromisoformat(days[0].day), time(), UTC)
    hours = (now - since) / timedelta(hours=1)
    lines = listed_use(counts, hours, ports.config.warm_instances)
    listed = sum(line.listed for line in lines)
    return {
        "since": days[0].day,
        "hours": round(hours, 1),
        "listed": round(listed, 2),
        "month": round(listed / hours * MONTH_HOURS, 2) if hours >= ONE_DAY else None,
        "currency": "USD",
        "region": REGION,
        "operations": [
            projected(schema.UsedOperation, line, count=round(line.count, 1), listed=round(line.listed, 4))
            for line in lines
        ],
    }


def _cluster(cost: KnownCost, found: FleetCosts) -> schema.ClusterCost:
    listed, billed = _listed(cost.name, found), _billed_of(cost.name, found)
    return projected(schema.ClusterCost, cost, listed=listed, billed=billed)


def _listed(name: str, found: FleetCosts) -> schema.ListedCost | None:
    listed = found.listed_by.get(name)
    if listed is None:
        return None
    return projected(schema.ListedCost, listed.clusters[name], listed, pricesOf=listed.day, foundAt=listed.at)


def _billed_of(name: str, found: FleetCosts) -> schema.BilledCost | None:
    record = found.billed_by.get(name)
    return _billed(record.clusters[name], record) if record else None


def _billed(amount: float, record: SubscriptionCosts) -> schema.BilledCost:
    return projected(schema.BilledCost, record, cost=amount, readAt=record.at)


def _groups(found: FleetCosts, by: str) -> Iterator[schema.CostGroupView]:
    """Yield the groups; clusters that are listed in several currencies have no sums."""
    for name, group in grouped(found.clusters, by).items():
        without = replace(group, listed=0, low=0, high=0, idle_low=0, idle_high=0)
        sums = group if found.currency else without
        billed = group.billed if group.billed_clusters and found.billed_currency else None
        yield projected(schema.CostGroupView, sums, name=name, listedClusters=sums.listed, billed=billed)
