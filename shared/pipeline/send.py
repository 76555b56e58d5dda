"""Sending continuations: the second half of "save, then send"."""

from __future__ import annotations

import math
from datetime import timedelta

from shared.jobs.messages import JobMessage, continuation_id, job_message
from shared.jobs.row import ClusterRow
from shared.ports import Message, Ports

MOST_SKEW = timedelta(seconds=30)


def send_continuation(row: ClusterRow, ports: Ports) -> None:
    """Send the message that the row waits for, for its time; duplicate detection drops an extra one."""
    _send(row, "", ports)


def send_copy(row: ClusterRow, ports: Ports) -> None:
    """Send a second copy, because the first came too early to have an effect; one a second gets through.

    A message that comes before its time tells that our clock is behind that of Service Bus by about as
    much, so the copy is for that much later. Its id holds the time of sending: were it the time it is
    for, a copy that is early again could not be sent again.
    """
    _send(row, str(math.ceil(ports.clock().timestamp())), ports)


def send_overdue(row: ClusterRow, times: int, ports: Ports) -> None:
    """Send a copy for the ``times``-th time that the row was found overdue; each gets through once."""
    _send(row, f"overdue{times}", ports)


def put_off(message: JobMessage, seconds: float, ports: Ports) -> None:
    """Send a copy of a message for later, when its row cannot be asked."""
    at = ports.clock() + timedelta(seconds=seconds)
    moment = f"{message.cluster}:{message.uid}:{message.generation}:{message.sequence}"
    copy = f"{moment}@away{int(at.timestamp())}"
    ports.jobs.send(Message(message.cluster, copy, message.model_dump_json(), at))


def _send(row: ClusterRow, copy: str, ports: Ports) -> None:
    if not row.job.active:
        return
    now, due = ports.clock(), row.job.next_at
    if row.job.claim is not None and row.job.claim.until > due:
        due = row.job.claim.until
    at = due
    if copy and due > now:
        at = due + min(due - now, MOST_SKEW)
    body = job_message(row).model_dump_json()
    ports.jobs.send(Message(row.name, continuation_id(row, copy), body, at if at > now else None))
