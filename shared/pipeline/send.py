"""Sending continuations: the second half of "save, then send"."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from shared.jobs.messages import JobMessage, continuation_id, job_message
from shared.jobs.row import ClusterRow
from shared.ports import Message, Ports

MOST_SKEW = timedelta(minutes=10)
"""Clocks that differ by more leave the work to the timer."""


def send_continuation(row: ClusterRow, ports: Ports) -> None:
    """Send the message that the row waits for, for its time; duplicate detection drops an extra one."""
    _send(row, "", _due(row), ports)


def send_later(row: ClusterRow, early: JobMessage, ports: Ports) -> None:
    """Send a message that came too early to have an effect once more, for the row's time.

    One that comes before the time that it was sent for tells how far our clock is behind that of Service
    Bus, so the copy is for that much later. All that come early before one time become one message: the id
    is that time. A copy that is early again is for another one, so it gets through.
    """
    now, at = ports.clock(), _due(row)
    if early.at is not None and early.at > now:
        at += min(early.at - now, MOST_SKEW)
    _send(row, f"{math.ceil(at.timestamp())}-{row.job.lost}", at, ports)


def send_copy(row: ClusterRow, ports: Ports) -> None:
    """Send a second copy, because the first ended without an effect; one a second gets through."""
    _send(row, str(math.ceil(ports.clock().timestamp())), _due(row), ports)


def send_overdue(row: ClusterRow, times: int, ports: Ports) -> None:
    """Send a copy for the ``times``-th time that the row was found overdue; each gets through once."""
    _send(row, f"overdue{times}", _due(row), ports)


def put_off(message: JobMessage, seconds: float, ports: Ports) -> None:
    """Send a copy of a message for later, when its row cannot be asked."""
    at = ports.clock() + timedelta(seconds=seconds)
    moment = f"{message.cluster}:{message.uid}:{message.generation}:{message.sequence}"
    copy = f"{moment}@away{int(at.timestamp())}"
    body = message.model_copy(update={"at": at}).model_dump_json()
    ports.jobs.send(Message(message.cluster, copy, body, at))


def _due(row: ClusterRow) -> datetime:
    """Return the time from which a message of the row has an effect."""
    claim = row.job.claim
    return max(row.job.next_at, claim.until) if claim is not None else row.job.next_at


def _send(row: ClusterRow, copy: str, due: datetime, ports: Ports) -> None:
    if not row.job.active:
        return
    at = due if due > ports.clock() else None
    body = job_message(row, at).model_dump_json()
    ports.jobs.send(Message(row.name, continuation_id(row, copy), body, at))
