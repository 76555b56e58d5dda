"""The list of one subscription's clusters, compared with the records of those that should be there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.app.access.azure_state import busy
from shared.app.access.rate_limiter import RateLimited
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.clusters import look_at_sleep
from shared.app.sweep.conclusions import Sources, conclude_from_list, conclude_still_missing
from shared.app.sweep.verdicts import (
    installation_in,
    is_awake,
    is_incomplete,
    is_suspect,
    orphans_in,
    owner_of,
    place_of,
    place_of_summary,
)
from shared.cluster.failures.errors import ReconcileError, Unreadable
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.logs import about
from shared.ports import Ports
from shared.ports.azure import GetCluster, ListClusters, every_document
from shared.ports.state import Listing, Orphan
from shared.resource_ids import ClusterId, SubscriptionId

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ListComparison:
    """The clusters at rest that a list lacks, by name, and whether it changed a record.

    ``newer`` are those whose record is about as new as the list, or newer: it decides nothing about them. On
    those that are ``busy`` an operation runs: what it changes is for a later list. Those that are ``strange``
    could not be compared, by an unforeseen error. ``news`` are those of which it changed the record.
    """

    lacking: Sequence[str]
    newer: Sequence[str]
    busy: Sequence[str]
    strange: Sequence[str]
    changed: bool
    news: Sequence[str] = ()

    @property
    def undecided(self) -> tuple[str, ...]:
        """The clusters of which the list cannot show that they are as git has them."""
        return (*self.lacking, *self.newer, *self.busy, *self.strange)


def compare(
    listed: Mapping[str, Json],
    summaries: Sequence[ClusterSummary],
    installations: Sequence[str],
    started: datetime,
    sources: Sources,
    activity: ActivityLog,
    ports: Ports,
) -> ListComparison:
    """Conclude what a whole list of a subscription shows of the clusters at rest that should be there."""
    lacking, newer, operated, strange, changed = [], [], [], list[str](), False
    news = list[str]()
    for summary in summaries:
        live, owner = (
            listed.get(place_of_summary(summary)),
            owner_of(summary, installations, ports.config),
        )
        if summary.sleeps_soundly and is_awake(live, owner, in_pools=summary.in_pools):
            look_at_sleep(summary.name, ports)
        if not summary.at_rest:
            continue
        try:
            if live is not None and busy(live["properties"]):
                operated.append(summary.name)
            suspect = is_suspect(summary, live, owner)
            asked_since = activity.asked_since(summary.place.subscription, started)
            if not suspect and not is_incomplete(summary, asked_since, started):
                continue
            if live is None and not suspect:
                changed = conclude_still_missing(summary.name, sources, activity, ports) or changed
            elif live is None:
                lacking.append(summary.name)
            else:
                concluded = conclude_from_list(summary.name, live, started, sources, activity, ports)
                if concluded is None:
                    newer.append(summary.name)
                elif concluded:
                    news.append(summary.name)
                changed = changed or bool(concluded)
        except (ReconcileError, RateLimited):
            raise
        except Exception:  # one cluster that is not understood keeps no other one from its comparison
            with about(cluster=summary.name):
                log.exception("%s cannot be compared", summary.name)
            strange.append(summary.name)
    return ListComparison(lacking, newer, operated, strange, changed, news)


def read_list(subscription: str, ports: Ports) -> Mapping[str, Json]:
    """Return the clusters of a subscription by their places; one call for each page."""
    listed = every_document(ports.azure, ListClusters(SubscriptionId(subscription)))
    return {place_of(cluster): cluster for cluster in listed}


def orphans_of(
    listed: Mapping[str, Json],
    summaries: Sequence[ClusterSummary],
    before: Listing,
    now: datetime,
    ports: Ports,
) -> tuple[Orphan, ...]:
    """Return the clusters with this fleet's tags that it does not know.

    A new one counts once its record and Azure were read after the list: it may have been created, or
    deleted, meanwhile.
    """
    known = frozenset(map(place_of_summary, summaries))
    earlier = {orphan.resource.lower(): orphan for orphan in before.orphans}
    found = []
    for name, live in orphans_in(listed, known, ports.config):
        place = place_of(live)
        if place not in earlier and not _is_unknown(name, live, ports):
            continue
        new = Orphan(str(live["id"]), name, installation_in(live), now)
        found.append(earlier.get(place, new))
        if place not in earlier:
            with about(cluster=name):
                log.warning("%s has this fleet's tags, and no record has it", live["id"])
    return tuple(found)


def _is_unknown(name: str, live: Json, ports: Ports) -> bool:
    place = place_of(live)
    try:
        record = ports.state.cluster(name)
    except Unreadable:  # it has one, and nobody knows for which place
        return False
    if record is not None and record.desired.id.resource.lower() == place:
        return False
    cluster = ClusterId.of(str(live["id"]))
    try:
        return cluster is not None and ports.azure.call(GetCluster(cluster)) is not None
    except (RateLimited, ReconcileError) as error:
        with about(cluster=name):
            log.warning("%s is left to the next sweep: %s", live["id"], error)
        return False
