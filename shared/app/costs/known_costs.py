"""What is known of the costs of each cluster: its list price, and what Azure has billed, as found last."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass
from shared.ports import Ports
from shared.ports.state import ListedClusters, SubscriptionCosts
from shared.prices.cost_groups import OWNER, KnownCost


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
        details.labels.get(OWNER, "") if details else "",
        tuple(system.name for system in details.systems) if details else (),
        summary.phase is Phase.SLEEPING,
        listed.clusters[name] if listed else None,
        billed.clusters[name] if billed else None,
    )
