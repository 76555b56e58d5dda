"""When a route gets what is due to it, and what a delivery, or the failure of its channel, changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.cluster.failures.retry import RetryPolicy
from shared.notifications.notification import Notification
from shared.notifications.record import (
    COLLECT,
    LONGEST,
    PASSING,
    NotifierRecord,
    Outage,
    RouteState,
    without_unused,
)

OVER = timedelta(minutes=10)
"""How long the end of a problem waits for the others of its group to end."""
RETRIES = RetryPolicy(30, 1800, None)
"""When a channel that failed is tried again."""


def due(known: NotifierRecord, route: str, now: datetime) -> Sequence[Notification]:
    """Return what a route gets now, oldest first; nothing before its time."""
    state = known.routes[route]
    if _waits(state, now):
        return ()
    if state.sending:
        return [known.facts[identifier] for identifier in state.sending]
    groups = {known.facts[identifier].group for identifier in known.open.values()}
    facts = [known.facts[identifier] for identifier in state.pending]
    return [fact for fact in facts if not fact.over or fact.group not in groups or now - fact.at >= OVER]


def _waits(state: RouteState, now: datetime) -> bool:
    """Return whether a route's time has not come."""
    return state.next_at is not None and now < state.next_at


def next_moment(known: NotifierRecord, now: datetime) -> datetime | None:
    """Return when a route is to get something next, None when nothing waits."""
    moments = [at + min(PASSING.values()) for at in known.since.values()]
    moments = [max(now + COLLECT, at) for at in moments]
    for name, state in known.routes.items():
        at = state.next_at if state.next_at and _waits(state, now) else now
        if due(known, name, at):
            moments.append(at)
        elif state.pending:
            held = min(known.facts[identifier].at for identifier in state.pending) + OVER
            moments.append(max(at, held))
    return min(moments, default=None)


def begin(known: NotifierRecord, route: str, facts: Sequence[str]) -> NotifierRecord:
    """Return before some notifications are delivered to a route; to be saved before they are sent."""
    state = known.routes[route]
    if state.sending == tuple(facts):
        return known
    left = tuple(identifier for identifier in state.missing if identifier not in facts)
    return replace(known, routes={**known.routes, route: replace(state, sending=tuple(facts), pending=left)})


def delivered(
    known: NotifierRecord, route: str, facts: Iterable[str], now: datetime, *, first: bool = True
) -> NotifierRecord:
    """Return after a message with some notifications was delivered to a route."""
    state, sent = known.routes[route], set(facts)
    after = replace(
        state,
        sending=(),
        pending=tuple(identifier for identifier in state.missing if identifier not in sent),
        dropped=0,
        sent=state.sent + 1,
        outage=None,
    )
    if first:
        pause = min(LONGEST, COLLECT * 2**state.burst)
        after = replace(after, next_at=now + pause, burst=min(state.burst + 1, 10))
    return without_unused(replace(known, routes={**known.routes, route: after}))


def failed(
    known: NotifierRecord,
    route: str,
    error: tuple[str, str],
    now: datetime,
    *,
    wait: float | None,
    jitter: float,
) -> NotifierRecord:
    """Return after a route's channel has failed, with the class and the message of the error."""
    state = known.routes[route]
    before = state.outage
    attempts = before.attempts + 1 if before else 1
    pause = RETRIES.wait(attempts, jitter) if wait is None else min(RETRIES.longest, max(wait, 1.0))
    outage = Outage(*error, since=before.since if before else now, attempts=attempts)
    after = replace(state, outage=outage, next_at=now + timedelta(seconds=pause))
    return replace(known, routes={**known.routes, route: after})
