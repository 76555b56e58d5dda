"""The records of clusters are saved here alone: a record and its events in one write, then its messages.

So no crash comes between a change of a record and its event, and no message is about what is not saved. A
message that is not sent is healed by whoever meets the record later: the timer of overdue continuations, the
next sweep or check.

Events stay with the record. A save that has new ones moves the earlier ones, where the job has ended or they
are many: it appends them to the table of events, and then writes the record without them. A crash in between
leaves them in both, where they count once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, TypeVar

from shared.app.outbox import send_all
from shared.cluster.failures.errors import ReconcileError, Stale, Unavailable
from shared.cluster.history import Event
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, replace
from shared.notifications.notification import Notification
from shared.ports import Ports

log = logging.getLogger(__name__)

MOST = 16
"""How many events a record has; each has 1,000 characters at most."""
PRUNE_EVERY = 50
"""After about this many numbers of a record its old events are removed: a query and some deletes."""
ATTEMPTS = 20
"""How often somebody else may write a record between a read and a write of it."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Transition:
    """What was decided of a cluster: its record, the events and notifications of that, and what is sent.

    Notifications are stored before the record, and messages that nobody sends again are sent ``first``: never
    missing, perhaps twice. What is to be sent ``then`` and cannot be is no error.
    """

    record: ClusterRecord
    events: Sequence[Event] = ()
    notifications: Sequence[Notification] = ()
    first: Sequence[Envelope] = ()
    then: Sequence[Envelope] = ()


def change(
    name: str,
    decide: Callable[[ClusterRecord | None], Transition | T],
    ports: Ports,
    *,
    known: tuple[ClusterRecord | None] | None = None,
) -> ClusterRecord | T:
    """Read a record, decide, and save; again with the record as it is then, where somebody else wrote.

    Return the record as saved, or what ``decide`` returned instead of a transition. ``known`` has the record,
    or None, if the caller has read it. A write whose answer was lost is read back. Raises Stale when others
    write all the time.
    """
    (record,), left = known or (ports.state.cluster(name),), ATTEMPTS
    while True:
        decided = decide(record)
        if not isinstance(decided, Transition):
            return decided
        after = _prepare(decided, ports)
        try:
            saved = ports.state.save(after)
        except (Stale, Unavailable) as error:
            record, left = ports.state.cluster(name), left - 1
            if record is None or record != after:
                if isinstance(error, Unavailable) or not left:
                    raise
                continue
            saved = record
        return _send_all(saved, decided.then, ports)


def save(decided: Transition, ports: Ports) -> ClusterRecord:
    """Save a record over the version that was read, with its events, and return it; raise Stale."""
    return _send_all(ports.state.save(_prepare(decided, ports)), decided.then, ports)


def remove(record: ClusterRecord, events: Iterable[Event], ports: Ports) -> None:
    """Remove a record if it is still this version, after its events and these were appended; raise Stale."""
    ports.state.append([*record.recent_events, *events])
    ports.state.delete(record)


def again(attempt: Callable[P, T]) -> Callable[P, T]:
    """Return a function that reads, decides and writes, to be called again where somebody else wrote."""

    @wraps(attempt)
    def attempts(*given: P.args, **named: P.kwargs) -> T:
        for _ in range(ATTEMPTS - 1):
            with suppress(Stale):
                return attempt(*given, **named)
        return attempt(*given, **named)

    return attempts


def _prepare(decided: Transition, ports: Ports) -> ClusterRecord:
    send_all(decided.first, ports)
    for notification in decided.notifications:
        ports.state.add_notification(notification)
    record, events = decided.record, decided.events
    kept = record.recent_events
    if kept and events and (not record.job.active or len(kept) + len(events) > MOST):
        move_events(kept, record, ports)
        kept = ()
    return replace(record, recent_events=(*kept, *events)) if events else record


def move_events(events: Sequence[Event], record: ClusterRecord, ports: Ports) -> None:
    """Append events of a record to their table; remove its oldest, if it has passed a ``PRUNE_EVERY``."""
    if events:
        ports.state.append(events)
        if max(0, events[0].sequence - 1) // PRUNE_EVERY != record.job.sequence // PRUNE_EVERY:
            ports.state.prune_events(record.name, ports.config.history.events)


def _send_all(saved: ClusterRecord, then: Sequence[Envelope], ports: Ports) -> ClusterRecord:
    for envelope in then:
        try:
            send_all([envelope], ports)
        except ReconcileError as error:
            log.warning("%s: saved, but not all was sent: %s: %s", saved.name, error.kind, error)
    return saved
