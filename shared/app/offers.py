"""What Azure has for the clusters that a commit changes: read by lists, for a plan that waits for none.

A list is read once for its subscription or region, and the process stores it for a while: regions, sizes and
versions for hours, what of a limit is used for minutes. What is slow, refused or rate limited is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.azure.changes.upgrades import offered_versions
from shared.azure.offers import Offer, Request, quotas_of, shortages, sizes_of, subnets_of
from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.plan.plan import Item
from shared.ports import Ports
from shared.ports.azure import (
    AzureCall,
    ListComputeUsages,
    ListLocations,
    ListNetworks,
    ListNetworkUsages,
    ListSizes,
    ListVersions,
)
from shared.resource_ids import RegionId, SubscriptionId
from shared.sentences import many

log = logging.getLogger(__name__)

SECONDS = 5.0
"""After so many seconds no further list is read."""
SILENT = 3.0
"""Nor is one after another that had no answer for so many seconds: Azure is down, or far away."""
REGIONS = 20
"""So many regions of subscriptions are looked at; each takes four lists, and a subscription two."""
_LONG, _SHORT = timedelta(hours=6), timedelta(minutes=5)


@dataclass(frozen=True)
class _List:
    """A list: its subject, how it is read, how long that is fresh, and whether it is of a region."""

    call: type[AzureCall[Any]]
    name: str
    said: Callable[[Any], Any]
    fresh: timedelta
    regional: bool = True

    def of(self, place: RegionId) -> AzureCall[Any]:
        """Return the call for a region, or for its subscription."""
        return self.call(place if self.regional else SubscriptionId(place.subscription))


def _names(documents: Iterable[Json]) -> frozenset[str]:
    return frozenset(str(document["name"]) for document in documents)


_LOCATIONS = _List(ListLocations, "which regions there are", _names, _LONG, regional=False)
_VERSIONS = _List(ListVersions, "which versions of Kubernetes are offered", offered_versions, _LONG)
_SIZES = _List(ListSizes, "which sizes there are", sizes_of, _LONG)
_CORES = _List(ListComputeUsages, "how many cores are left", quotas_of, _SHORT)
_ADDRESSES = _List(ListNetworkUsages, "how many public addresses are left", quotas_of, _SHORT)
_NETWORKS = _List(ListNetworks, "how many addresses subnets have left", subnets_of, _SHORT, regional=False)
_LISTS = (_LOCATIONS, _VERSIONS, _SIZES, _CORES, _ADDRESSES)


def asked_of_azure(items: Iterable[Item], clusters: Mapping[str, Desired]) -> list[Desired]:
    """Return the clusters in Azure of which a plan asks something new."""
    asked = (clusters[item.cluster] for item in items if item.asks_azure and item.cluster in clusters)
    return [wanted for wanted in asked if not wanted.is_attached]


def what_is_short(
    asked: Iterable[Desired], records: Mapping[str, ClusterRecord], ports: Ports
) -> tuple[str, ...]:
    """Return a sentence for each thing that these clusters need and Azure does not have, or not enough of.

    It is there after the time of one slow list at most, whatever Azure does.
    """
    requests = [
        Request.of(wanted, records[wanted.name].desired.spec if wanted.name in records else None)
        for wanted in asked
    ]
    places = sorted({request.place for request in requests})
    with_subnets = {request.place for request in requests if request.names_subnets}
    found = shortages(requests, _offers(places[:REGIONS], with_subnets, ports))
    more = len(places) - REGIONS
    return (*found, *([f"Azure was not asked about {many(more, 'more region')}"] if more > 0 else ()))


def _offers(
    places: Sequence[RegionId], with_subnets: Collection[RegionId], ports: Ports
) -> Mapping[RegionId, Offer]:
    """Return what Azure has in each place, from lists that are read together."""
    wanted = {place: (*_LISTS, _NETWORKS) if place in with_subnets else _LISTS for place in places}
    calls = dict.fromkeys((one.of(place), one) for place, lists in wanted.items() for one in lists)
    end, azure = ports.elapsed() + SECONDS, RateLimiter(None, ports).over(ports).azure
    silent = list[AzureCall[Any]]()

    def read(asked: tuple[AzureCall[Any], _List]) -> Any:
        call, of = asked
        known, begun = ports.answers.get(call, ports.clock()), ports.elapsed()
        if known is not None or silent or begun > end:
            return known
        try:
            said = of.said(azure.call(call))
        except Unavailable:
            if ports.elapsed() - begun >= SILENT:
                silent.append(call)
            log.info("%s could not be read: nobody answers", call)
            return None
        except (ReconcileError, RateLimited, LookupError, TypeError, ValueError) as error:
            log.info("%s could not be read: %s", call, type(error).__name__)
            return None
        now = ports.clock()
        ports.answers.put(call, said, now, now + of.fresh)
        return said

    answers = dict(zip(calls, ports.together(read, [*calls]), strict=True))
    return {
        place: _offer({one: answers[one.of(place), one] for one in lists}) for place, lists in wanted.items()
    }


def _offer(said: Mapping[_List, Any]) -> Offer:
    return Offer(
        said[_LOCATIONS],
        said[_VERSIONS],
        said[_SIZES],
        {**(said[_CORES] or {}), **(said[_ADDRESSES] or {})},
        said.get(_NETWORKS),
        tuple(of.name for of, answer in said.items() if answer is None),
    )
