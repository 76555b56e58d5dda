"""What the notifier remembers: the problems that are open, and what each route has not received yet. Pure.

A notification is taken once, however often it is read, and stays until every route that takes it has received
it. So nothing is lost while a route does not answer, and what a crash repeats is at most the last message
of a route.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from shared.cluster.failures.retry import RetryPolicy
from shared.frozen import dataclass, field, replace
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification, end_of
from shared.notifications.routes import Route

COLLECT = timedelta(seconds=10)
"""How long the first notification waits for others that belong to the same message."""
LONGEST = timedelta(minutes=5)
"""The longest time between two digests of a route while notifications keep coming."""
CONFIRM = timedelta(minutes=2)
"""How long after a problem its cluster's record is read: by then its writer has saved it, or has died."""
CONFIRM_AGAIN = timedelta(hours=1)
"""How often it is read again: the notification that ended the problem may be lost with a table."""
PASSING: Mapping[NotificationKind, timedelta] = {
    NotificationKind.PLAN: timedelta(minutes=2),
    NotificationKind.SWEEP: timedelta(minutes=15),
}
"""How long a problem lasts before it is taken, of a kind that Roadstead tries again by itself."""
MESSAGES = 20
"""So many messages of a route are remembered."""
MOST_PENDING = 2000
"""So many notifications wait for a route at most; of older ones the next message has the number."""


@dataclass(frozen=True)
class Outage:
    """Why a route does not deliver: the class of the last error, since when, and how many attempts."""

    kind: str
    message: str
    since: datetime
    attempts: int

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class SentMessage:
    """A message of a route, when it was sent last, and why it has not arrived, "" if the route took it."""

    id: str
    title: str
    at: datetime
    problem: str = ""


@dataclass(frozen=True)
class RouteState:
    """What a route has not received, by ids of notifications, oldest first.

    ``sending`` are the notifications of the message that is being delivered: it is sent again as it is until
    the route takes it, so that its id stays the same. ``pending`` are all others. ``next_at`` is when it
    gets a message at the earliest, None for at once. ``burst`` counts successive digests, ``dropped`` the
    notifications of which it gets the number alone, ``sent`` every message. ``issues`` are the open issues
    by group. ``messages`` are the newest ones, the last one last.
    """

    pending: tuple[str, ...] = ()
    next_at: datetime | None = None
    burst: int = 0
    dropped: int = 0
    sent: int = 0
    outage: Outage | None = None
    issues: Mapping[str, int] = field(default_factory=dict)
    sending: tuple[str, ...] = ()
    messages: tuple[SentMessage, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Every notification that the route has not received."""
        return (*self.sending, *self.pending)


@dataclass(frozen=True)
class NotifierRecord:
    """The notifications that are needed, by id; the open problem of each key; the routes by name.

    ``accepted`` are the ids of the stored notifications that were taken last and may still be stored,
    ``confirmed`` has those of open problems, with when a read of the record showed each last. ``since`` has
    when a problem was seen first that may pass by itself, by its key. ``plan_at`` is the time of the plan
    whose notifications were taken last. ``etag`` is the version that was read, "" for one not saved yet.
    """

    notifications: Mapping[str, Notification] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    routes: Mapping[str, RouteState] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    confirmed: Mapping[str, datetime] = field(default_factory=dict)
    since: Mapping[str, datetime] = field(default_factory=dict)
    plan_at: datetime | None = None
    etag: str = field(default="", compare=False)

    def with_route(self, name: str, state: RouteState) -> NotifierRecord:
        """Return it with another state of a route."""
        return replace(self, routes={**self.routes, name: state})


def take(
    known: NotifierRecord, stored: Sequence[Notification], routes: Sequence[Route], now: datetime
) -> NotifierRecord:
    """Take the stored notifications that are new, oldest first; drop routes that no longer exist."""
    after = replace(
        known, routes={route.name: known.routes.get(route.name, RouteState()) for route in routes}
    )
    for notification in sorted(
        stored, key=lambda notification: (notification.at, notification.sequence, notification.id)
    ):
        if notification.id not in known.accepted:
            after = _taken(after, notification, routes, now)
    return without_unused(replace(after, accepted=tuple(notification.id for notification in stored)))


def compare(
    known: NotifierRecord,
    present: Sequence[Notification],
    kinds: Collection[NotificationKind],
    routes: Sequence[Route],
    now: datetime,
) -> NotifierRecord:
    """Take the problems of the fleet that are ``present`` now, and end those of ``kinds`` that are not.

    A problem of a kind that often passes by itself is taken when it has lasted. That of a cluster is left to
    its record.
    """
    after = known
    by_key = {notification.key: notification for notification in present}
    for key, identifier in known.open.items():
        notification = known.notifications[identifier]
        if key not in by_key and notification.kind in kinds and not notification.of_cluster:
            after = _ended(after, key, now, "", routes)
    since = {key: at for key, at in known.since.items() if key in by_key}
    for key, notification in by_key.items():
        since.setdefault(key, now)
        lasted = now - since[key] >= PASSING.get(notification.kind, timedelta(0))
        if known.open.get(key) != notification.id and lasted:
            after = _taken(after, notification, routes, now)
    passing = (key for key, notification in by_key.items() if notification.kind in PASSING)
    waiting = {key: since[key] for key in passing if after.open.get(key) != by_key[key].id}
    return without_unused(replace(after, since=waiting))


def _taken(
    known: NotifierRecord, notification: Notification, routes: Sequence[Route], now: datetime
) -> NotifierRecord:
    if known.open.get(notification.key) == notification.id:
        return known
    if notification.lasting:
        known = _replaced(known, notification, routes, now)
        known = replace(
            known,
            notifications={**known.notifications, notification.id: notification},
            open={**known.open, notification.key: notification.id},
        )
        return _queued(known, notification, routes, now)
    problem = known.notifications[known.open[notification.key]] if notification.key in known.open else None
    known = _ended(
        known,
        notification.key,
        notification.at,
        notification.detail,
        routes,
        now=now,
        became=notification.became,
    )
    if notification.over:
        return known
    told = {route.name for route in routes if problem and route.takes(problem)}
    others = [
        route for route in routes if route.name not in told or notification.kind is not NotificationKind.READY
    ]
    return _queued(known, notification, others, now)


def _replaced(
    known: NotifierRecord, notification: Notification, routes: Sequence[Route], now: datetime
) -> NotifierRecord:
    """End the open problem that a notification replaces, for whoever does not get that as its next part.

    A problem of the same group goes on; one of another group is another problem.
    """
    before = known.notifications.get(known.open.get(notification.key, ""))
    if before is None:
        return known
    same = before.group == notification.group
    left = [route for route in routes if not (same and route.takes(notification))]
    end = replace(end_of(before, notification.at), became=notification.kind.value)
    return _queued(known, end, left, now)


def _ended(
    known: NotifierRecord,
    key: str,
    at: datetime,
    detail: str,
    routes: Sequence[Route],
    *,
    now: datetime | None = None,
    became: str = "",
) -> NotifierRecord:
    """End the open problem of a key, if there is one; ``became`` is what took its place, "" for nothing."""
    if key not in known.open:
        return known
    problem = known.notifications[known.open[key]]
    left = {other: identifier for other, identifier in known.open.items() if other != key}
    end = replace(end_of(problem, at, detail), became=became)
    return _queued(replace(known, open=left), end, routes, now or at)


def _queued(
    known: NotifierRecord, notification: Notification, routes: Iterable[Route], now: datetime
) -> NotifierRecord:
    """Return with a notification that each route which takes it has not received."""
    takers = {route.name for route in routes if route.takes(notification)}
    states = dict(known.routes)
    for name in takers & states.keys():
        state = states[name]
        if notification.id in state.missing:
            continue
        pending = (*state.pending, notification.id)
        excess = max(0, len(pending) - MOST_PENDING)
        after = replace(state, pending=pending[excess:], dropped=state.dropped + excess)
        states[name] = after if state.missing else _first_of_a_digest(after, now)
    return replace(known, notifications={**known.notifications, notification.id: notification}, routes=states)


def _first_of_a_digest(state: RouteState, now: datetime) -> RouteState:
    """Return a route with its first notification after the last digest: others may follow within seconds."""
    quiet = state.next_at is None or now - state.next_at > LONGEST
    collected = now + COLLECT
    next_at = collected if state.next_at is None else max(collected, state.next_at)
    return replace(state, next_at=next_at, burst=0 if quiet else state.burst)


def without_unused(known: NotifierRecord) -> NotifierRecord:
    """Return without the notifications that are neither open nor due to a route."""
    used = set(known.open.values()).union(*(state.missing for state in known.routes.values()))
    return replace(
        known,
        notifications={key: notification for key, notification in known.notifications.items() if key in used},
    )


def unconfirmed(known: NotifierRecord, now: datetime) -> Sequence[Notification]:
    """Return the open problems of clusters that no read of the record has shown, or none for an hour."""
    notifications = (known.notifications[identifier] for identifier in known.open.values())
    again = {identifier for identifier, at in known.confirmed.items() if now - at < CONFIRM_AGAIN}
    some = (
        notification
        for notification in notifications
        if notification.of_cluster and notification.id not in again
    )
    return [notification for notification in some if now - notification.at >= CONFIRM]


def confirm(
    known: NotifierRecord, checked: Mapping[str, bool], routes: Sequence[Route], now: datetime
) -> NotifierRecord:
    """End the problems, by id, that the records do not show.

    A notification is stored before the record, so that it is never missing. The record may have been written
    by somebody else then, and the problem has not come to be.
    """
    after = known
    for identifier, holds in checked.items():
        if not holds:
            after = _ended(after, known.notifications[identifier].key, now, "", routes)
    left = {**known.confirmed, **dict.fromkeys(checked, now)}
    confirmed = {identifier: left[identifier] for identifier in after.open.values() if identifier in left}
    return without_unused(replace(after, confirmed=confirmed))


# When a route gets what is due to it, and what a delivery, or its failure, changes. Pure.

OVER = timedelta(minutes=10)
"""How long the end of a problem waits for the others of its group to end."""
RETRIES = RetryPolicy(30, 1800, None)
"""When a route that failed is tried again."""


def due(known: NotifierRecord, route: str, now: datetime) -> Sequence[Notification]:
    """Return what a route gets now, oldest first; nothing before its time."""
    state = known.routes[route]
    if _waits(state, now):
        return ()
    if state.sending:
        return [known.notifications[identifier] for identifier in state.sending]
    groups = {known.notifications[identifier].group for identifier in known.open.values()}
    notifications = [known.notifications[identifier] for identifier in state.pending]
    return [
        notification
        for notification in notifications
        if not notification.over or notification.group not in groups or now - notification.at >= OVER
    ]


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
            held = min(known.notifications[identifier].at for identifier in state.pending) + OVER
            moments.append(max(at, held))
    return min(moments, default=None)


def begin(known: NotifierRecord, route: str, notifications: Sequence[str]) -> NotifierRecord:
    """Return before some notifications are delivered to a route; to be saved before they are sent."""
    state = known.routes[route]
    if state.sending == tuple(notifications):
        return known
    left = tuple(identifier for identifier in state.missing if identifier not in notifications)
    return known.with_route(route, replace(state, sending=tuple(notifications), pending=left))


def with_message(known: NotifierRecord, route: str, message: SentMessage) -> NotifierRecord:
    """Return with a message that was sent to a route; one that is sent again takes its own place."""
    state = known.routes[route]
    others = tuple(sent for sent in state.messages if sent.id != message.id)
    return known.with_route(route, replace(state, messages=(*others, message)[-MESSAGES:]))


def delivered(
    known: NotifierRecord, route: str, notifications: Iterable[str], now: datetime, *, first: bool = True
) -> NotifierRecord:
    """Return after a message with some notifications was delivered to a route."""
    state, sent = known.routes[route], set(notifications)
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
    return without_unused(known.with_route(route, after))


def failed(
    known: NotifierRecord,
    route: str,
    error: tuple[str, str],
    now: datetime,
    *,
    wait: float | None,
    jitter: float,
) -> NotifierRecord:
    """Return after a route has failed, with the class and the message of the error."""
    state = known.routes[route]
    before = state.outage
    attempts = before.attempts + 1 if before else 1
    pause = RETRIES.wait(attempts, jitter) if wait is None else min(RETRIES.longest, max(wait, 1.0))
    outage = Outage(*error, since=before.since if before else now, attempts=attempts)
    next_at = now + timedelta(seconds=pause)
    return known.with_route(route, replace(state, outage=outage, next_at=next_at))
