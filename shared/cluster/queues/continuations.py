"""What is read of all active jobs at once: above all, when the next message of each is due. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from shared.cluster.job import Delay, JobQueue, due
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.frozen import dataclass

LONGEST_BACKLOG = 3600.0
"""Seconds after which a message counts as lost, whatever is served."""
_RESTING = (Phase.STALLED, Phase.SUSPENDED, Phase.SLEEPING)


@dataclass(frozen=True)
class Continuation:
    """The message that an active job waits for: its time, and the lease of the worker that runs a step now.

    Stored next to the record, of which it repeats a few fields. ``handled`` is when the message was due that
    the worker handles, None where no one knows. ``small_change``: the job is one of a small change, and takes
    a session; one that only waits for a person takes none.
    """

    name: str
    queue: JobQueue
    at: datetime
    delay: Delay
    leased_until: datetime | None = None
    handled: datetime | None = None
    small_change: bool = False

    def due(self, now: datetime) -> datetime:
        """Return the time from which the message has an effect."""
        return due(self.at, self.delay, self.leased_until, now)


def continuation_of(record: ClusterRecord) -> Continuation:
    """Return what the record of an active job says about the message that it waits for."""
    job, lease = record.job, record.job.lease
    until, handled = (lease.until, lease.due) if lease else (None, None)
    small = job.small_change and not record.needs_action and record.phase not in _RESTING
    return Continuation(record.name, job.queue, job.next_run.at, job.next_run.delay, until, handled, small)


def continuations_of(records: Iterable[ClusterRecord]) -> list[Continuation]:
    """Return the continuations of those records whose job is active."""
    return [continuation_of(record) for record in records if record.job.active]


def served_until(continuations: Iterable[Continuation], queue: JobQueue, now: datetime) -> datetime | None:
    """Return the newest time for which a message of a queue is being handled, None when none is."""
    mine = (continuation for continuation in continuations if continuation.queue is queue)
    leased = (
        continuation
        for continuation in mine
        if continuation.leased_until is not None and continuation.leased_until > now
    )
    return max((continuation.handled for continuation in leased if continuation.handled), default=None)


def overdue(
    continuation: Continuation, *, now: datetime, grace: float, served: datetime | None = None
) -> int:
    """Return how often a continuation should have been sent again by now; 0: it is not overdue.

    1 after ``grace`` seconds, and one more each time the lateness doubles. A message that was due later than
    those that are ``served`` now waits in a backlog: it is not lost, and a copy would only make others wait.
    """
    at = continuation.due(now)
    if at > now:
        return 0
    late = (now - at).total_seconds()
    waits = served is not None and at > served - timedelta(seconds=grace)
    if late < grace or (waits and late < LONGEST_BACKLOG):
        return 0
    return 1 + int(math.log2(late / grace))
