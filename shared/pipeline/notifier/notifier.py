"""The notifier takes the facts that are stored and sends each route those that are due.

What it has taken, and what each route has not received, is one record, written over the version that was
read. So a fact is taken once. The record names the facts of a message before it is delivered, and drops
them afterwards: after a crash in between, or without an answer, the same message, with the same id, is
delivered again. A channel that fails is tried again at growing intervals, and gets what it missed as a
digest. No job waits for any of this.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from shared.jobs.failures.errors import ReconcileError, Retryable
from shared.jobs.failures.retry import wait_before_retry
from shared.jobs.findings.at_rest import is_exempt
from shared.jobs.listed import UnreadableRecord
from shared.jobs.messages import PlanRequest
from shared.jobs.record import ClusterRecord, Phase
from shared.logs import about
from shared.masking import cut
from shared.notices import announced as remembered
from shared.notices import deliveries
from shared.notices.announced import Announced
from shared.notices.digest import Links, Outgoing, messages
from shared.notices.kinds import Kind
from shared.notices.notice import DETAIL_LIMIT, Notice, ending_of
from shared.notices.routes import LIMITS, Route, RouteType
from shared.pipeline.notifier.fleet_facts import OF_PLANS, OTHERS, of_plan, present
from shared.pipeline.notifier.issues import tell_issues
from shared.pipeline.outbox import request_notifications
from shared.pipeline.repository.branch_source import require_name
from shared.ports import FleetRecord, Ports

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""So many stored facts are taken with one message."""
SECONDS = 120.0
"""After so long another message continues: less than half of ``functionTimeout``."""
ATTEMPTS = 5
"""How often a message is postponed at most while the state does not answer; then the timer sends another."""
LETTERS = 100


def handle(request: PlanRequest, ports: Ports) -> None:
    """Send the routes what is due; postpone it while the state or a queue does not answer.

    Raise Retryable when it cannot be postponed, or was too often.
    """
    try:
        _handle(ports)
    except Retryable as error:
        seconds = wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.retries)
        if seconds is None or request.attempt >= ATTEMPTS:
            raise
        log.warning("notifications are postponed by %d s: %s: %s", seconds, error.kind, error)
        request_notifications(ports, after=seconds, attempt=request.attempt + 1)


def _handle(ports: Ports) -> None:
    end = ports.elapsed() + SECONDS
    before = (
        ports.state.announced()
    )  # first: its version is checked, so that no older plan is compared with it
    fleet = ports.state.fleet()
    if not fleet.routes:
        return
    known, more = _take(before, fleet, ports)
    for route in fleet.routes:
        if ports.elapsed() > end:
            break
        known = _tell(route, known, end, fleet, ports)
    now = ports.clock()
    moment = now if more else deliveries.next_moment(known, now)
    if moment is not None:
        request_notifications(ports, after=max(0.0, (moment - now).total_seconds()))


def _take(before: Announced, fleet: FleetRecord, ports: Ports) -> tuple[Announced, bool]:
    """Take what happened and what is wrong now; return it as saved, and whether more is stored."""
    now = ports.clock()
    stored = ports.state.notices(AT_ONCE)
    known = remembered.take(before, stored, fleet.routes, now)
    if fleet.at is not None and fleet.at != before.plan_at:
        newest = ports.state.plan(fleet.commit)
        facts = list(of_plan(newest)) if newest else []
        known = replace(remembered.compare(known, facts, OF_PLANS, fleet.routes, now), plan_at=fleet.at)
    letters = ports.state.dead_letters(LETTERS)
    others = list(present(fleet, ports.state.sweep(), letters, known, now))
    ending = OTHERS if len(letters) < LETTERS else OTHERS - {Kind.DEAD_LETTER}  # older ones were not read
    known = remembered.compare(known, others, ending, fleet.routes, now)
    unsure = remembered.unconfirmed(known, now)
    if unsure:
        known = remembered.confirm(known, _still_so(unsure, ports), fleet.routes, now)
    if known != replace(before, accepted=known.accepted):  # facts that nobody wants are only removed
        known = ports.state.save_announced(known)
    if stored:
        ports.state.remove_notices(stored)
    return known, len(stored) >= AT_ONCE


def _still_so(facts: Sequence[Notice], ports: Ports) -> Mapping[str, bool]:
    """Return, by the id of a problem, whether its cluster's record has it."""
    named = sorted({fact.subject for fact in facts})
    records = ports.state.clusters_named(named).keyed(attrgetter("name"))
    return {fact.id: _shows(records.get(fact.subject), fact) for fact in facts}


def _shows(record: ClusterRecord | UnreadableRecord | None, fact: Notice) -> bool:
    """Return whether the record of a cluster has a problem; one that cannot be read ends none."""
    if record is None or isinstance(record, UnreadableRecord):
        return record is not None
    if fact.kind is Kind.EXPIRING:
        return bool(ending_of(record))
    if fact.kind is Kind.DRIFT:
        return record.drift is not None
    return record.phase is not Phase.READY and not is_exempt(record)


def _tell(route: Route, known: Announced, end: float, fleet: FleetRecord, ports: Ports) -> Announced:
    """Deliver what is due to a route; the record is saved before and after each message."""
    facts = deliveries.due(known, route.name, ports.clock())
    config = ports.config
    links = Links(f"https://{config.git_host}/{config.repository}", config.public_url)
    dropped = known.routes[route.name].dropped
    some = messages(
        facts,
        fleet=config.fleet,
        limit=LIMITS[route.type],
        links=links,
        dropped=dropped,
        together=route.type is not RouteType.GITHUB,
    )
    for n, message in enumerate(some):
        if ports.elapsed() > end:
            break
        started = deliveries.begin(known, route.name, message.facts)
        known = ports.state.save_announced(started) if started is not known else known
        try:
            known = _deliver(route, message, known, fleet, ports)
        except ReconcileError as error:
            with about(**_subject(message)):
                log.warning("the channel %s does not deliver: %s: %s", route.name, error.kind, error)
            return ports.state.save_announced(_failed(route, error, known, ports))
        known = deliveries.delivered(known, route.name, message.facts, ports.clock(), first=n == 0)
        known = ports.state.save_announced(known)
    return known


def _deliver(
    route: Route, message: Outgoing, known: Announced, fleet: FleetRecord, ports: Ports
) -> Announced:
    if route.type is RouteType.GITHUB:
        require_name(fleet, ports)
        return tell_issues(route, message, known, ports)
    ports.channels.send(route, message)
    return known


def _subject(message: Outgoing) -> Mapping[str, str]:
    """Return the one cluster, and the one commit, that a message is about, as far as there is only one."""
    facts = [fact for group in message.groups for fact in group.facts]
    clusters = {fact.subject if fact.of_cluster else "" for fact in facts}
    found = {"cluster": clusters, "commit": {fact.commit for fact in facts}}
    return {name: each for name, some in found.items() if len(some) == 1 for each in some}


def _failed(route: Route, error: ReconcileError, known: Announced, ports: Ports) -> Announced:
    wait = error.retry_after if isinstance(error, Retryable) else None
    described = (error.kind, cut(str(error), DETAIL_LIMIT))
    return deliveries.failed(known, route.name, described, ports.clock(), wait=wait, jitter=ports.random())
