"""Single clusters of a sweep, each read by itself; those outside Azure are not compared."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from shared.app.access.azure_state import busy
from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.notifications import notifications_of
from shared.app.outbox import is_at_time, send, send_all, send_unlike
from shared.app.records import Transition, change
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.conclusions import Sources, compared_again, conclude
from shared.app.sweep.corrections import Sighting, SweepComparison, correct, sweep_of_held
from shared.cluster.failures.errors import ClusterMissing, ReconcileError, Retryable
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.findings.conditions import is_at_rest
from shared.cluster.queues.envelopes import Envelope, continuation
from shared.cluster.queues.messages import EVENT, SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.measurements import AZURE_EVENTS, Measurement, of_read, of_reservation
from shared.cluster.transitions.acceptance import look_again
from shared.frozen import replace
from shared.json_tree import Json
from shared.logs import about_record
from shared.ports import Ports
from shared.ports.azure import GetCluster
from shared.ports.state.clusters import readable
from shared.ports.state.subscriptions import NAMED
from shared.rollouts.calendar import Start
from shared.rollouts.shut import held_start
from shared.sentences import some_of

# What a sweep does for a cluster that is not in Azure: it lists and compares nothing of it there.
#
# Checks read it from inside. Where the policy has what Roadstead applied of Flux applied again, a check
# asks for a sweep of the cluster, which starts that job as for any other cluster.


def apply_again(record: ClusterRecord, ports: Ports) -> bool:
    """Start the job that applies again what Roadstead applied of Flux; return whether there is one."""
    with about_record(record):
        saved = change(record.name, partial(_again, ports=ports), ports, known=(record,))
        if isinstance(saved, ClusterRecord):
            return saved.job.active
        send_all(saved, ports)
    return False


def _again(record: ClusterRecord | None, *, ports: Ports) -> Transition | tuple[Envelope, ...]:
    """Return the record with that job, or what is sent for one that stays as it is."""
    if record is None or record.job.active:
        return ()
    shown = Sighting(
        None,
        None,
        StepContext.of(record, ports).owner,
        lambda: ports.state.fleet().rules.calendar,
        ports.clock(),
    )
    decided = correct(record, SweepComparison(record, record, of_values=True, decided=()), shown)
    if decided.record == record:
        return tuple(decided.first)
    return replace(decided, notifications=notifications_of(record, decided.record, ports))


def _is_held_on(record: ClusterRecord, ports: Ports) -> bool:
    """Return whether nothing has changed about what holds a job; a sweep is asked for again then.

    A message for the end of a freeze comes sooner, every hour: thousands of clusters are not read in Azure
    for that. What somebody puts back there, the next list shows.
    """
    held, calendar, now = record.divergence.held, ports.state.fleet().rules.calendar, ports.clock()
    if held is None or held.until is None:
        return False
    if held not in (held_start(record, start, calendar, now) for start in (Start.CORRECTION, Start.CREATION)):
        return False
    send_all(sweep_of_held(record, now), ports)
    return True


# A cluster that sleeps is not compared. Where it seems to run, its job looks, and stops it again.


def look_at_sleep(name: str, ports: Ports) -> None:
    """Have the job of a cluster that sleeps look at Azure now."""

    def decide(record: ClusterRecord | None) -> Transition | None:
        now = ports.clock()
        after = look_again(record, now) if record is not None else None
        return Transition(after, then=continuation(after, now)) if after is not None else None

    change(name, decide, ports)


log = logging.getLogger(__name__)

ATTEMPTS = 4
"""How often a list or a cluster is read when that fails; then the next sweep reads it."""
BUSY_SECONDS = 15.0
"""After so long, and then twice as long, a cluster is read again that Azure was changing when asked about."""
TOGETHER = 200
"""How many clusters one message names."""
ANNOUNCED = timedelta(hours=6)
"""So long before a sweep, which comes every four hours, an event may have announced what it finds."""


def request_checks(names: Sequence[str], part: SweepRequest, ports: Ports) -> None:
    """Ask that clusters are read one by one about which a list decides nothing."""
    for first in range(0, len(names), TOGETHER):
        some = tuple(names[first : first + TOGETHER])
        send(SweepRequest(sweep=part.sweep, clusters=some, subscription=part.subscription), ports)


def check(part: SweepRequest, end: float, sources: Sources, ports: Ports) -> bool:
    """Read clusters one by one, conclude what is so of each; return whether a record changed.

    A cluster that does not exist is read a second time, some seconds later, and so is one that Azure is
    changing, where an operator asks. The rest continues in another message from ``end`` on, by the clock that
    measures ages, or when a token of the rate limits is missing.
    """
    limiter = RateLimiter(None, ports, part.reservations)
    comparison = _Comparison(part, sources, ports)
    for position, name in enumerate(part.clusters):
        rest = part.model_copy(update={"clusters": part.clusters[position:], "reservations": {}})
        if position and ports.elapsed() > end:
            send(rest.model_copy(update={"attempt": 0}), ports)
            break
        record = comparison.record_to_read(name)
        if record is None:
            continue
        read_at = ports.clock()
        try:
            live = limiter.over(ports).azure.call(GetCluster(record.desired.id))
        except RateLimited as limited:
            postpone(rest, limited, limiter, ports)
            break
        except ReconcileError as error:
            if retry(rest, error, ports):
                break
            with about_record(record):
                log.warning("%s cannot be read: %s: %s", name, error.kind, error)
            continue
        comparison.conclude(record, live, read_at)
    comparison.read_again()
    count_missed(comparison.news, part.subscription, ports)
    return comparison.changed


class _Comparison:
    """What is concluded of the clusters of one message, and which of them are read again."""

    def __init__(self, part: SweepRequest, sources: Sources, ports: Ports) -> None:
        self.changed = False
        self.news: list[str] = []
        self._part, self._sources, self._ports = part, sources, ports
        listings = {listing.subscription: listing for listing in ports.state.sweep().listings}
        self._activity = ActivityLog(ports, listings)
        self._absent: list[str] = []
        self._changing: list[str] = []

    def record_to_read(self, name: str) -> ClusterRecord | None:
        """Return the record of a cluster that Azure is asked about now, None for another one.

        One that sleeps is looked at, and one that is attached applied again, without Azure.
        """
        record = readable(name, self._ports.state)
        if record is not None and record.sleep_job_runs:
            look_at_sleep(name, self._ports)
        if record is None or not is_at_rest(record):
            return None
        if record.desired.is_attached:
            self.changed = apply_again(record, self._ports) or self.changed
            return None
        if is_at_time(self._part.sweep) and _is_held_on(record, self._ports):
            return None
        return record

    def conclude(self, record: ClusterRecord, live: Json | None, read_at: datetime) -> None:
        """Save what follows from what Azure shows of a cluster, None for nothing, which is read twice."""
        if live is None and not self._part.absent and record.finding != ClusterMissing.__name__:
            self._absent.append(record.name)
            return
        try:
            settled = live is None or not busy(live["properties"])
            at = read_at if settled else None
            is_news = conclude(record, live, self._sources, self._activity, self._ports, at)
            self.changed = is_news or self.changed
            if is_news and self._part.subscription:
                self.news.append(record.name)
            if live is not None and _is_read_again(record, live, self._part, self._ports):
                self._changing.append(record.name)
        except (ReconcileError, RateLimited):
            raise
        except Exception:  # the next list names it
            with about_record(record):
                log.exception("%s cannot be compared", record.name)

    def read_again(self) -> None:
        """Ask for one more read of what does not exist, and of what Azure is changing."""
        part, ports = self._part, self._ports
        if self._absent:
            again = {"clusters": tuple(self._absent), "absent": True, "reservations": {}, "attempt": 0}
            send(part.model_copy(update=again), ports, after=ports.config.timing.lag_seconds)
        if self._changing and part.attempt + 1 < ATTEMPTS:
            again = {"clusters": tuple(self._changing), "reservations": {}}
            busy_again = part.next_attempt().model_copy(update=again)
            send(busy_again, ports, after=BUSY_SECONDS * 2**part.attempt)


def _is_read_again(record: ClusterRecord, live: Json, part: SweepRequest, ports: Ports) -> bool:
    """Return whether a cluster changes later than somebody asked: an operation runs, or Azure shows it late.

    ``record`` is the one before the comparison. Where an event of Azure asked, and the comparison saved
    nothing new, one more read shows whether Azure is behind its event.
    """
    if part.subscription or busy(live["properties"]):
        return not part.subscription
    if part.attempt or not part.sweep.startswith(EVENT):
        return False
    after = readable(record.name, ports.state)
    return after is not None and after == compared_again(record, after.observation.compared)


def postpone(part: SweepRequest, limited: RateLimited, limiter: RateLimiter, ports: Ports) -> None:
    """Ask for a part again, by another message, when its tokens are there by any clock."""
    ports.services.telemetry.record(of_reservation("sweep"))
    reserved = part.model_copy(update={"reservations": dict(limiter.reserved)})
    seconds = max(0.0, (limited.at - ports.clock()).total_seconds())
    send_unlike(reserved, ports, after=seconds + ports.config.clocks_differ.total_seconds())


def count_missed(news: Sequence[str], subscription: str, ports: Ports) -> None:
    """Count the clusters of which a sweep found something new, and no event had announced anything.

    Only where some events of the subscription arrive.
    """
    changes = {known.cluster: known for known in ports.state.changes() if known.changes} if news else {}
    place, since = f"/subscriptions/{subscription}/", ports.clock() - ANNOUNCED
    if not any(known.changes[-1].resource.startswith(place) for known in changes.values()):
        return
    missed = [name for name in news if name not in changes or changes[name].changes[-1].at < since]
    if missed:
        log.warning("no event of Azure announced what was found of %s", some_of(missed, NAMED))
        ports.services.telemetry.record([Measurement(AZURE_EVENTS, len(missed), {"result": "missed"})])


def retry(part: SweepRequest, error: ReconcileError, ports: Ports) -> bool:
    """Ask for a part again that failed, a few times; return whether it is tried again."""
    ports.services.telemetry.record(of_read("sweep", error.kind))
    if not isinstance(error, Retryable) or part.attempt + 1 >= ATTEMPTS:
        return False
    seconds = wait_before_retry(error, part.attempt + 1, ports.random(), ports.config.timing.retries)
    if seconds is None:
        return False
    send(part.next_attempt(), ports, after=seconds)
    return True
