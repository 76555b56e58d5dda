"""The sweep: one message after the other, each as many subscriptions as there is time for.

A message reads the summaries of all clusters once, lists the clusters of each subscription page by page, and
reads the records of those alone that differ. What a list lacks is read by itself, twice. A list that
fails concludes nothing, and the record of the sweeps says so. Every part only states what is so now:
to repeat it, or two sweeps at once, changes nothing more.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from shared.app.access.azure_state import busy
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.outbox import seconds_until_again, send
from shared.app.planner.reporter import reopen
from shared.app.records import again
from shared.app.runs import record_end
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.clusters import check, count_missed, look_at_sleep, postpone, request_checks, retry
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
from shared.cluster.failures.errors import ReconcileError, Retryable, Unreadable
from shared.cluster.queues.messages import (
    EVENT,
    NotifyRequest,
    PromoteRequest,
    ProposeRequest,
    ReportRequest,
    SweepRequest,
)
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.logs import about
from shared.ports import FleetRecord, Ports
from shared.ports.azure import GetCluster, ListClusters, every_document
from shared.ports.state import Listing, Orphan, SweepRecord
from shared.ports.state.subscriptions import NAMED
from shared.resource_ids import ClusterId, SubscriptionId
from shared.sentences import some_of

log = logging.getLogger(__name__)

SWEEP_SECONDS = 120.0
"""After so many seconds another message continues: less than half of ``functionTimeout``."""
MOST_LACKING = 200
"""How many clusters that a list lacks are read by themselves; later sweeps read others.
A list that lacks more may be of a subscription in which the app has lost its role: Azure then answers with an
empty list."""


def handle(request: SweepRequest, ports: Ports) -> None:
    """Carry out a sweep, or a part of one; postpone it while the state or a queue does not answer.

    Raise Retryable when it cannot be postponed, or was too often: the timer begins another sweep.
    """
    try:
        _handle(request, ports)
    except Retryable as error:
        seconds = seconds_until_again(error, request, ports)
        if seconds is None:
            raise
        log.warning("a sweep is postponed by %d s: %s: %s", seconds, error.kind, error)
        send(request.next_attempt(), ports, after=seconds)


def _handle(part: SweepRequest, ports: Ports) -> None:
    end, fleet = ports.elapsed() + SWEEP_SECONDS, ports.state.fleet()
    sources = Sources(fleet.commit, ports)
    if part.clusters:
        changed, lost = check(part, end, sources, ports), False
    else:
        changed, lost = _sweep(part, end, fleet, sources, ports)
    newest = ports.state.plan(fleet.commit) if lost and not changed else None
    if changed or (newest and not newest.open):
        reopen(fleet.commit, ports)
    if changed and part.sweep.startswith(EVENT) and fleet.rules.routes:
        send(NotifyRequest(), ports, message_id=f"notify:{part.sweep}:{part.clusters[0]}")


def _sweep(
    part: SweepRequest, end: float, fleet: FleetRecord, sources: Sources, ports: Ports
) -> tuple[bool, bool]:
    """List the subscriptions of a part: those of the clusters, and those that shared files name.

    Of the latter, one without clusters that cannot be listed is no problem: nothing of the fleet lives there.
    Return whether the status of the newest commit may change, and whether a cluster is lost or differs.
    """
    started, changed = ports.clock(), False
    summaries = ports.state.summaries()
    of_fleet = _by_subscription(summaries)
    before = {listing.subscription: listing for listing in ports.state.sweep().listings}
    known = sorted({*of_fleet, *before, *fleet.rules.subscriptions})
    todo = [part.subscription] if part.subscription else known
    todo = [subscription for subscription in todo if subscription > part.after]
    after: dict[str, Listing] = {}
    installations = (ports.config.installation, fleet.app.installation, *fleet.app.former)
    ids = tuple(dict.fromkeys(filter(None, installations)))
    for subscription in todo:
        if after and ports.elapsed() > end:
            send(SweepRequest(sweep=part.sweep, after=max(after)), ports)
            break
        share = part.model_copy(update={"after": "", "subscription": subscription})
        last, own = before.get(subscription, Listing(subscription)), of_fleet.get(subscription, [])
        after[subscription], concluded = _list(share, last, own, ids, sources, ports)
        changed = changed or concluded
    begins = not part.subscription and not part.after
    ends = not part.subscription and len(after) == len(todo)

    def listed(record: SweepRecord) -> SweepRecord:
        known = {listing.subscription: listing for listing in record.listings}
        listings = known | after
        named = {key for key in fleet.rules.subscriptions if key in listings and not listings[key].problem}
        kept = [item for key, item in sorted(listings.items()) if key in {*of_fleet, *named} or item.orphans]
        return replace(
            record,
            started=started if begins else record.started,
            finished=ports.clock() if ends else record.finished,
            listings=tuple(kept),
        )

    _save(listed, ports)
    if ends:
        record_end("sweep", ports)
        send(ReportRequest(), ports)
        if any(summary.divergence.proposed for summary in summaries) or ports.state.proposals():
            send(ProposeRequest(), ports)
        if fleet.rules.proposes:
            send(PromoteRequest(), ports)
    return changed, any(summary.lost or summary.divergence.differs_since for summary in summaries)


def _list(
    part: SweepRequest,
    before: Listing,
    summaries: Sequence[ClusterSummary],
    installations: Sequence[str],
    sources: Sources,
    ports: Ports,
) -> tuple[Listing, bool]:
    """Compare a subscription with the records; return its list, and whether a record changed.

    Without a newer list it is the one before, with the reason.
    """
    limiter, started = RateLimiter(None, ports, part.reservations), ports.clock()
    try:
        listed = read_list(before.subscription, limiter.over(ports))
    except RateLimited as limited:
        postpone(part, limited, limiter, ports)
        return replace(before, problem=str(limited)), False
    except ReconcileError as error:
        log.warning("the clusters of %s cannot be listed: %s: %s", before.subscription, error.kind, error)
        retry(part, error, ports)
        problem = f"its clusters cannot be listed: {error.kind}: {error}"
        return replace(before, problem=problem), False
    activity = ActivityLog(ports, {before.subscription: before})
    compared = compare(listed, summaries, installations, started, sources, activity, ports)
    request_checks(compared.lacking[:MOST_LACKING], part, ports)
    request_checks(compared.newer, part.model_copy(update={"subscription": ""}), ports)
    orphans = orphans_of(listed, summaries, before, started, limiter.over(ports))
    unread = activity.problems.get(before.subscription, before.activity)
    problem, number = "", len(compared.lacking)
    if number > MOST_LACKING:
        only = f"{MOST_LACKING} are read by themselves, and the others by later sweeps"
        problem = f"its list lacks {number} clusters: only {only}"
        log.warning("the clusters of %s: %s", before.subscription, problem)
    if compared.strange:
        strange = f"{some_of(compared.strange, NAMED)} cannot be compared: the log has the details"
        problem = "; ".join(filter(None, (problem, strange)))
    after = Listing(before.subscription, started, problem, orphans, unread, compared.undecided, before.at)
    count_missed(compared.news, before.subscription, ports)
    return after, compared.changed


def _by_subscription(summaries: Sequence[ClusterSummary]) -> Mapping[str, Sequence[ClusterSummary]]:
    """Return the clusters of each subscription; those whose records no longer exist are in none."""
    found: defaultdict[str, list[ClusterSummary]] = defaultdict(list)
    for summary in summaries:
        if summary.place.subscription:
            found[summary.place.subscription.lower()].append(summary)
    return found


@again
def _save(change_of: Callable[[SweepRecord], SweepRecord], ports: Ports) -> None:
    """Write a change of the record of the sweeps; another sweep may write it at the same time."""
    ports.state.save_sweep(change_of(ports.state.sweep()))


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
        if summary.sleeps_soundly and is_awake(live, owner, in_pools=summary.schedule.in_pools):
            look_at_sleep(summary.name, ports)
        if not summary.sweep.at_rest:
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
