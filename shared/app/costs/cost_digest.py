"""Once a week the routes of notifications get a digest of the costs, in the first run of a week (UTC)."""

from __future__ import annotations

from itertools import islice

from shared.app.costs.known_costs import known_costs
from shared.notifications.weekly_costs import CostSums, week_of, weekly
from shared.ports import Ports
from shared.ports.state import WeekOfCosts
from shared.prices.cost_groups import grouped, summed

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
    ports.state.add_notice(digest)
    owners = dict(islice(sums.owners.items(), MOST_OWNERS))
    ports.state.save_week_of_costs(WeekOfCosts(week_of(now), sums.currency, sums.environments, owners))
