"""Reads once a day what Azure has billed for the clusters, by one question for each subscription.

The quota of these questions, in query processing units, is that of the whole tenant
(learn.microsoft.com/azure/cost-management-billing/costs/manage-automation). So the first refusal ends the
run, and the next day tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

from shared.azure.costs import Places, costs_in
from shared.cluster.failures.errors import ReconcileError, Throttled, Unauthorized
from shared.frozen import replace
from shared.json_tree import Json
from shared.masking import cut
from shared.ports import Ports
from shared.ports.azure import GetCosts
from shared.ports.azure.costs import following
from shared.ports.state import SubscriptionCosts
from shared.resource_ids import SubscriptionId

log = logging.getLogger(__name__)

DAYS = 30
"""The days that are asked for, up to yesterday: of today Azure knows little."""
AGAIN = timedelta(hours=20)
MOST_PAGES = 20
NOT_PERMITTED = (
    "not permitted to read costs; deploy with readCosts, or roadstead setup subscription --allow readCosts"
)


def read_costs(ports: Ports) -> None:
    """Read the costs of each subscription whose last attempt is a day ago."""
    records, now = ports.state.clusters(), ports.clock()
    places = Places.of(record.desired for record in records)
    own = {record.desired.azure_names.subscription_id.lower() for record in records}
    wanted = {*own, *(name.lower() for name in ports.state.fleet().rules.subscriptions)} - {""}
    ports.state.prune_costs(now - timedelta(days=DAYS))
    before = {costs.subscription: costs for costs in ports.state.costs()}
    new = (SubscriptionCosts(name, now - timedelta(days=DAYS)) for name in sorted(wanted - before.keys()))
    asked = [*new, *(costs for name, costs in before.items() if name in wanted)]
    for known in sorted(asked, key=lambda costs: costs.tried):  # so that a quota that is short starves none
        subscription = known.subscription
        if now - known.tried < AGAIN:
            continue
        try:
            ports.state.save_costs(_read(known, places, ports))
        except Unauthorized:
            ports.state.save_costs(replace(known, tried=now, problem=NOT_PERMITTED))
        except Throttled as error:
            log.warning("costs are not read today: %s", error)
            ports.state.save_costs(
                replace(known, tried=now, problem="Azure's quota for costs is used up today")
            )
            return
        except (ReconcileError, ValueError) as error:
            log.warning("the costs of %s cannot be read: %s", subscription, error)
            problem = cut(f"the costs cannot be read: {error}", 200)
            ports.state.save_costs(replace(known, tried=now, problem=problem))


def _read(known: SubscriptionCosts, places: Places, ports: Ports) -> SubscriptionCosts:
    now = ports.clock()
    until = now.date() - timedelta(days=1)
    since = until - timedelta(days=DAYS - 1)
    first = GetCosts(SubscriptionId(known.subscription), since.isoformat(), until.isoformat())
    clusters, currency = costs_in(_pages(first, ports), places)
    amounts = {name: round(float(amount), 2) for name, amount in sorted(clusters.items())}
    return SubscriptionCosts(
        known.subscription, now, now, since.isoformat(), until.isoformat(), currency, amounts
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
