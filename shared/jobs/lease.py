"""A row decides about a message without touching the world."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.jobs.messages import JobMessage
from shared.jobs.record import ClusterRecord, Lease

MAX_ABANDONED_LEASES = 8
"""Claims of one step that may run out without an outcome: then it is the step that ends its worker."""
EARLY = timedelta(seconds=1)
"""How much before its time a message may run; clocks differ a little."""


@dataclass(frozen=True)
class Run:
    """Run the step; ``row`` carries the claim and has to be saved first."""

    record: ClusterRecord


@dataclass(frozen=True)
class Resend:
    """The row is ahead of the message: send the row's own continuation and stop."""

    record: ClusterRecord


@dataclass(frozen=True)
class Superseded:
    """The message has nothing left to do."""

    why: str


@dataclass(frozen=True)
class NotYet:
    """Too early: somebody runs the step, or its time has not come. Send a copy for that time."""

    record: ClusterRecord


Decision = Run | Resend | Superseded | NotYet


def acquire_lease(
    record: ClusterRecord | None, message: JobMessage, *, now: datetime, owner: str, seconds: float
) -> Decision:
    """Decide what a message may do; ``seconds`` is how long a claim lasts."""
    if record is None:
        return Superseded("the cluster is not recorded any more")
    if record.uid != message.uid:
        return Superseded("the message is of an earlier cluster of the same name")
    if not record.job.active:
        return Superseded("the job has ended")
    if (message.generation, message.sequence) != (record.generation, record.job.sequence):
        return Resend(record)
    held = record.job.lease
    if held is not None and held.until > now + EARLY:
        return NotYet(record)
    if record.job.next_at > now + EARLY:
        return NotYet(record)
    job = replace(record.job, lease=Lease(owner, now + timedelta(seconds=seconds)))
    if held is not None:
        job = replace(job, lost=job.lost + 1, looked=False)
    return Run(replace(record, job=job))


def overdue(record: ClusterRecord, *, now: datetime, grace: float) -> int:
    """Return how often the row's continuation should have been sent again by now; 0: it is not overdue.

    1 after ``grace`` seconds, and one more each time the lateness doubles, so that a backlog is not
    answered with ever more messages.
    """
    due = max(record.job.next_at, record.job.lease.until) if record.job.lease else record.job.next_at
    late = (now - due).total_seconds()
    if not record.job.active or late < grace:
        return 0
    return 1 + int(math.log2(late / grace))
