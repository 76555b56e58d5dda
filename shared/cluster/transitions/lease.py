"""The record decides what a message may do. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.cluster.job import Lease
from shared.cluster.queues.messages import JobMessage
from shared.cluster.recipes import Recipe, Step
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, replace

MAX_ABANDONED_LEASES = 8
"""Leases of one step that may run out without an outcome: after that, the step itself kills its worker."""
EARLY = timedelta(seconds=1)
"""How much before its time a message may run; clocks differ a little."""


@dataclass(frozen=True)
class Run:
    """Run the step; ``record`` holds the lease and has to be saved before the first write."""

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
    if not names_moment(message, record):
        return Resend(record)
    if record.job.due(now) > now + EARLY:
        return NotYet(record)
    lease = Lease(owner, now + timedelta(seconds=seconds), record.job.due(now))
    job = replace(record.job, lease=lease)
    if record.job.lease is not None:
        abandoned = job.step.abandoned_leases + 1
        job = replace(job, step=replace(job.step, abandoned_leases=abandoned, rechecking=False))
    return Run(replace(record, job=job))


def names_moment(message: JobMessage, record: ClusterRecord) -> bool:
    """Return whether a message is the one that the record waits for."""
    named = (message.uid, message.generation, message.sequence)
    return named == (record.uid, record.generation, record.job.sequence)


def request_write(record: ClusterRecord) -> ClusterRecord:
    """Return the record as it has to be saved before its step writes to Azure; the same one if it is so."""
    if record.job.step.name is Step.SLEEP:
        return record.fallen_asleep(record.job.step.since)
    first = record.job.recipe is Recipe.PROVISION and record.job.step.name is Step.RESOURCE_GROUP
    return (
        replace(record, azure=replace(record.azure, group_requested=True))
        if first and not record.azure.group_requested
        else record
    )


def is_late(leased: ClusterRecord, *, now: datetime, seconds: float) -> bool:
    """Return whether the message for a lease comes more than ``seconds`` after it was due."""
    lease = leased.job.lease
    return lease is not None and lease.due is not None and now - lease.due > timedelta(seconds=seconds)


def keep_lease(
    before: ClusterRecord, after: ClusterRecord, *, now: datetime, seconds: float
) -> ClusterRecord | None:
    """Return ``after``, whose step is done, with a lease of ``before`` on the next step.

    None when that step is not due at once, or when ``seconds``, how long a lease lasts, are 0.
    """
    advanced = after.job.active and after.job.step.name is not before.job.step.name
    if before.job.lease is None or not advanced or after.job.next_run.at > now or not seconds:
        return None
    lease = replace(before.job.lease, until=now + timedelta(seconds=seconds))
    return replace(after, job=replace(after.job, lease=lease))
