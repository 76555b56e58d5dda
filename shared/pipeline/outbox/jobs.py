"""The messages of jobs. A record's job decides its queue: another app, with an identity of its own, receives
the deletes, and small changes wait behind no large one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.jobs.job import JobQueue
from shared.jobs.messages import JobMessage, continuation_id, job_message
from shared.jobs.record import ClusterRecord
from shared.ports import Message, Ports, Queue

MAX_SKEW = timedelta(minutes=10)
"""A message of a clock that differs by more is left to the timer."""


def send_continuation(record: ClusterRecord, ports: Ports) -> None:
    """Send the message that the record waits for, at its time; duplicate detection drops an extra one."""
    send_continuations([record], ports)


def send_continuations(records: Sequence[ClusterRecord], ports: Ports) -> None:
    """Send the messages that some records wait for, those of a queue together."""
    now = ports.clock()
    for queue in JobQueue:
        waiting = (r for r in records if r.job.active and r.job.queue is queue)
        messages = [_job_message(record, "", record.job.due(now), now) for record in waiting]
        if messages:
            _port(queue, ports).send(*messages)


def send_later(record: ClusterRecord, early: JobMessage, ports: Ports) -> None:
    """Send a message again that came before its record was due, for the time at which the record is due.

    A message that arrives before the time it was scheduled for shows how far this clock is behind
    Service Bus, so the copy is scheduled that much later. All early messages for one time become one message:
    its id is that time. A copy that is early again is scheduled for another time, so it gets through.
    """
    now = ports.clock()
    at = record.job.due(now)
    if early.at is not None and early.at > now:
        at += min(early.at - now, MAX_SKEW)
    _send_job(record, f"{math.ceil(at.timestamp())}-{record.job.step.abandoned_leases}", at, ports)


def send_copy(record: ClusterRecord, ports: Ports) -> None:
    """Send a second copy, because the first had no effect; at most one copy per second gets through."""
    now = ports.clock()
    _send_job(record, str(math.ceil(now.timestamp())), record.job.due(now), ports)


def send_overdue(records: Sequence[tuple[ClusterRecord, int]], ports: Ports) -> None:
    """Send a copy of each record with how often it was overdue; those of a queue go together.

    Each copy gets through once.
    """
    now = ports.clock()
    for queue in JobQueue:
        own = [(record, times) for record, times in records if record.job.queue is queue]
        messages = [
            _job_message(record, f"overdue{times}", record.job.due(now), now) for record, times in own
        ]
        if messages:
            _port(queue, ports).send(*messages)


def postpone_message(message: JobMessage, queue: JobQueue, seconds: float, ports: Ports) -> None:
    """Schedule a copy of a message whose record cannot be read now, on the queue from which it came."""
    at = ports.clock() + timedelta(seconds=seconds)
    moment = f"{message.cluster}:{message.uid}:{message.generation}:{message.sequence}"
    copy = f"{moment}@away{int(at.timestamp())}"
    body = message.model_copy(update={"at": at}).model_dump_json()
    _port(queue, ports).send(Message(message.cluster, copy, body, at))


def _send_job(record: ClusterRecord, copy: str, due: datetime, ports: Ports) -> None:
    if record.job.active:
        _port(record.job.queue, ports).send(_job_message(record, copy, due, ports.clock()))


def _job_message(record: ClusterRecord, copy: str, due: datetime, now: datetime) -> Message:
    at = due if due > now else None
    body = job_message(record, at).model_dump_json()
    return Message(record.name, continuation_id(record, copy), body, at)


def _port(queue: JobQueue, ports: Ports) -> Queue:
    match queue:
        case JobQueue.JOBS:
            return ports.jobs
        case JobQueue.CHANGES:
            return ports.changes
        case JobQueue.DELETES:
            return ports.deletes
