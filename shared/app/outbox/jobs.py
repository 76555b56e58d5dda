"""The messages of jobs and of checks, each to the queue of the app that handles it.
the deletes, and small changes wait behind no large one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.app.outbox.times import later, whole
from shared.cluster.health import needs_check, next_check
from shared.cluster.job import JobQueue
from shared.cluster.messages import CheckMessage, JobMessage, continuation_id, job_message
from shared.cluster.record import ClusterRecord
from shared.language.desired import digest_of
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


# The requests for checks of clusters.

CHECKED_TOGETHER = 20
"""How many clusters one message of a check names."""
CHECK_SESSIONS = 8
"""In how many sessions the messages of a check are, so how many clusters are checked at a time.

A check of the whole fleet has sessions of its own: whoever asks for some clusters does not wait for its end.
"""


def request_whole_check(ports: Ports, *, within: float = 0) -> None:
    """Ask that all clusters are checked, see ``whole``."""
    number, at = whole(within, ports)
    _send_checks([CheckMessage(check=str(number))], at, ports)


def request_checks(names: Sequence[str], check: str, ports: Ports, *, after: float = 0) -> None:
    """Ask that these clusters are checked, so many seconds from now; ``check`` is the id of what asks."""
    parts = [names[first : first + CHECKED_TOGETHER] for first in range(0, len(names), CHECKED_TOGETHER)]
    messages = [CheckMessage(check=check, clusters=tuple(part)) for part in parts]
    _send_checks(messages, later(after, ports), ports)


def request_next_check(record: ClusterRecord, ports: Ports, scheduled: datetime | None = None) -> None:
    """Ask for the next check of a cluster that is not known to be healthy.

    All who ask for one moment ask for one message, which comes when no clock is before that moment any more.
    ``scheduled`` is the moment of the check that asks.
    """
    if not needs_check(record):
        return
    now, patience = ports.clock(), timedelta(seconds=ports.config.unhealthy_seconds)
    at = next_check(record, max(now, scheduled or now), patience + ports.config.clocks_differ)
    message = CheckMessage(check=record.uid, clusters=(record.name,), at=at)
    _send_checks([message], at + ports.config.clocks_differ, ports)


def request_rest(rest: CheckMessage, ports: Ports, after: float = 0) -> None:
    """Ask that another message continues a check, so many seconds from now."""
    _send_checks([rest], later(after, ports), ports)


def _send_checks(checks: Sequence[CheckMessage], at: datetime | None, ports: Ports) -> None:
    """Send checks to the queue of the worker, which alone may enter clusters, in sessions of their own."""
    messages = []
    for check in checks:
        digest = digest_of(check.model_dump(mode="json"))
        kind = "checks" if check.of_fleet else "some-checks"
        session = f"{ports.config.fleet}:{kind}:{int(digest[:8], 16) % CHECK_SESSIONS}"
        messages.append(Message(session, f"check:{check.check}:{digest}", check.model_dump_json(), at))
    if messages:
        ports.jobs.send(*messages)
