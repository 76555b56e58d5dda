"""The record decides what a message may do. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.jobs.job import FARTHEST, Lease
from shared.jobs.messages import JobMessage
from shared.jobs.record import ClusterRecord

MAX_ABANDONED_LEASES = 8
"""Leases of one step that may run out without an outcome: after that, the step itself kills its worker."""
EARLY = timedelta(seconds=1)
"""How much before its time a message may run; clocks differ a little."""


@dataclass(frozen=True)
class Run:
    """Run the step; ``record`` holds the lease and has to be saved first."""

    record: ClusterRecord


@dataclass(frozen=True)
class Resend:
    """The record is ahead of the message: send the record's own continuation and stop."""

    record: ClusterRecord


@dataclass(frozen=True)
class Superseded:
    """The message has nothing left to do."""

    reason: str


@dataclass(frozen=True)
class NotYet:
    """Too early: another worker runs the step, or the step is not due. Send a copy for that time."""

    record: ClusterRecord


Decision = Run | Resend | Superseded | NotYet


def acquire_lease(
    record: ClusterRecord | None, message: JobMessage, *, now: datetime, owner: str, seconds: float
) -> Decision:
    """Decide what a message may do; ``seconds`` is how long a lease lasts."""
    if record is None:
        return Superseded("the cluster is no longer recorded")
    if record.uid != message.uid:
        return Superseded("the message is of an earlier cluster of the same name")
    if not record.job.active:
        return Superseded("the job has ended")
    if (message.generation, message.sequence) != (record.generation, record.job.sequence):
        return Resend(record)
    if record.job.due(now) > now + EARLY:
        return NotYet(record)
    job = replace(record.job, lease=Lease(owner, now + timedelta(seconds=seconds)))
    if record.job.lease is not None:
        abandoned = job.step.abandoned_leases + 1
        job = replace(job, step=replace(job.step, abandoned_leases=abandoned, rechecking=False))
    return Run(replace(record, job=job))


def keep_lease(
    before: ClusterRecord, after: ClusterRecord, *, now: datetime, seconds: float
) -> ClusterRecord | None:
    """Return ``after``, whose step is done, with a lease of ``before`` on the next step.

    None when that step is not due at once, or when ``seconds``, how long a lease lasts, are 0.
    """
    advanced = after.job.active and after.job.step.name is not before.job.step.name
    if before.job.lease is None or not advanced or after.job.next_run.at > now or not seconds:
        return None
    lease = Lease(before.job.lease.owner, now + timedelta(seconds=seconds))
    return replace(after, job=replace(after.job, lease=lease))


def overdue(record: ClusterRecord, *, now: datetime, grace: float) -> int:
    """Return how often the record's continuation should have been sent again by now; 0: it is not overdue.

    1 after ``grace`` seconds, and one more each time the lateness doubles, so that a backlog is not
    answered with ever more messages.
    """
    if not record.job.active:
        return 0
    if record.job.next_run.at > now + FARTHEST:  # a wrong clock: its message may come in years
        return 1 + int(now.timestamp() // grace)
    late = (now - record.job.due(now)).total_seconds()
    if late < grace:
        return 0
    return 1 + int(math.log2(late / grace))
