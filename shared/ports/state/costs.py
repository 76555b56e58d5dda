"""What Azure has billed for clusters, a record for each subscription."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.cluster.forms import RecordList
from shared.frozen import dataclass, field
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import TableRepository, TextKind


@dataclass(frozen=True)
class SubscriptionCosts:
    """What the clusters of a subscription have cost from ``since`` to ``until``, days as ISO 8601.

    ``clusters`` has the amounts by their names; ``at`` is when they were read, None for never. ``problem`` is
    why the last attempt, at ``tried``, read nothing, "" where it did.
    """

    subscription: str
    tried: datetime
    at: datetime | None = None
    since: str = ""
    until: str = ""
    currency: str = ""
    clusters: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""


class Costs(TableRepository):
    """The costs that were read last."""

    def costs(self) -> RecordList[SubscriptionCosts]:
        """Return the costs of each subscription that was ever asked."""
        return self._listed(COSTS)

    def save_costs(self, costs: SubscriptionCosts) -> None:
        """Write the costs of a subscription over those before."""
        self._put(COSTS, costs.subscription, costs, at=costs.tried)

    def prune_costs(self, before: datetime) -> int:
        """Remove the costs of subscriptions that nobody has asked for since a time; return how many."""
        return self._remove(COSTS, ("at", "lt", before))


COSTS = TextKind[SubscriptionCosts]("costs", FLEETS, SubscriptionCosts, "costs|{}")
