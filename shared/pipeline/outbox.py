"""The outbox: the one place that writes to a queue.

The planner and the worker save a record first and then send its continuation. A worker that reads a record
ahead of its message sends the record's continuation again. Duplicate detection compares message ids, so
messages with the same id count as one.

A record's job decides its queue: another app, with an identity of its own, receives the deletes, and small
changes wait behind no large one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.fleet.desired import digest_of
from shared.jobs.failures.errors import ReconcileError
from shared.jobs.health import needs_check, next_check
from shared.jobs.job import JobQueue
from shared.jobs.messages import (
    CLOCKS_DIFFER,
    CheckMessage,
    JobMessage,
    PlanRequest,
    SweepPart,
    continuation_id,
    job_message,
)
from shared.jobs.record import ClusterRecord
from shared.ports import FleetRecord, Message, Ports, Queue

log = logging.getLogger(__name__)

MAX_SKEW = timedelta(minutes=10)
"""A message of a clock that differs by more is left to the timer."""
PREVIEWS = ("pull", "outdated")
"""The requests that have a queue of their own, with a session for each pull request: they delay no push."""
PREVIEW_SECONDS = 10
"""Events of a pull request within this many seconds are one message, and so are reviews."""
CHECKED_TOGETHER = 20
"""How many clusters one message of a check names."""
CHECK_SESSIONS = 8
"""In how many sessions the messages of a check are, so how many clusters are checked at a time."""
REPORT_SECONDS = 5
"""Requests for a report within this many seconds are one message."""
NOTIFY_SECONDS = 15
"""Requests for notifications within this many seconds are one message."""


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


def send_overdue(record: ClusterRecord, times: int, ports: Ports) -> None:
    """Send a copy because the record is overdue for the ``times``-th time; each copy gets through once."""
    _send_job(record, f"overdue{times}", record.job.due(ports.clock()), ports)


def postpone_message(message: JobMessage, queue: JobQueue, seconds: float, ports: Ports) -> None:
    """Schedule a copy of a message whose record cannot be read now, on the queue from which it came."""
    at = ports.clock() + timedelta(seconds=seconds)
    moment = f"{message.cluster}:{message.uid}:{message.generation}:{message.sequence}"
    copy = f"{moment}@away{int(at.timestamp())}"
    body = message.model_copy(update={"at": at}).model_dump_json()
    _port(queue, ports).send(Message(message.cluster, copy, body, at))


def request_plan(request: PlanRequest, *, message_id: str, ports: Ports, after: float = 0) -> None:
    """Queue a request for the fleet's one planner, or one for a pull request, ``after`` seconds from now."""
    _send_plan(request, message_id, _later(after, ports), ports)


def request_plan_again(request: PlanRequest, *, after: float, ports: Ports) -> None:
    """Queue a request again that the planner could not finish, ``after`` seconds from now."""
    subject = (
        f"pull:{request.pull}:{request.head[:12]}" if request.kind == "pull" else request.commit or "head"
    )
    message_id = f"again:{subject}:{request.attempt}:{ports.unique()}"
    request_plan(request, message_id=message_id, ports=ports, after=after)


def request_handover(fleet: FleetRecord, ports: Ports) -> None:
    """Request that the planner continues a hand-over; requests that wait in its session come before.

    The plan of the commit that was planned last is the only one that needs ``again``: without it, the request
    has no effect once a newer push has been planned.
    """
    again = fleet.planning == fleet.commit
    request = PlanRequest(again=again, reason="handover", read_from=ports.clock())
    request_plan(request, message_id=f"handover:{fleet.planning[:12]}:{fleet.etag}", ports=ports)


def request_outdated_marks(commit: str, ports: Ports) -> None:
    """Ask that the plans of pull requests are marked as out of date. An error must not prevent a plan."""
    request = PlanRequest(kind="outdated", commit=commit, reason="the base moved")
    try:
        request_plan(request, message_id=f"outdated:{commit}", ports=ports)
    except ReconcileError as error:
        log.warning("pull requests are not marked as out of date: %s: %s", error.kind, error)


def request_preview(request: PlanRequest, ports: Ports) -> None:
    """Queue a request for a pull request for a few seconds from now.

    All requests of one pull request within the same few seconds are one message, so that a flood of pushes to
    it costs a bounded number of plans and of calls to GitHub.
    """
    slot, at = _slot(PREVIEW_SECONDS, 0, ports)
    after_all = at + CLOCKS_DIFFER
    _send_plan(request, f"pull:{request.pull}:{slot}", after_all, ports)


def request_review(commit: str, ports: Ports) -> None:
    """Ask the planner to read the reviews of a commit's pull request a few seconds from now.

    All requests within the same few seconds are one message, so that a flood of reviews costs a bounded
    number of calls to GitHub.
    """
    slot, at = _slot(PREVIEW_SECONDS, 0, ports)
    request = PlanRequest(kind="review", commit=commit, reason="review")
    _send_plan(request, f"review:{commit}:{slot}", at + CLOCKS_DIFFER, ports)


def request_awaited_plan(ports: Ports, deleted: str = "") -> None:
    """Request a plan when the deletion of a cluster has finished that git has again.

    ``deleted`` is the cluster whose record has just been removed; without it, the record of each is read.
    """
    fleet = ports.state.fleet()
    if deleted in fleet.awaiting_deletion or (
        not deleted and any(ports.state.cluster(name) is None for name in fleet.awaiting_deletion)
    ):
        message_id = f"deleted:{fleet.commit}:{int(ports.clock().timestamp() // 10)}"
        request_plan(PlanRequest(again=True, reason="deleted"), message_id=message_id, ports=ports)


def request_unfinished_plan(commit: str, ports: Ports) -> None:
    """Request a plan again over which a superseded planner wrote one of its own, which it did not carry out.

    One request a minute gets through.
    """
    message_id = f"unfinished:{commit}:{int(ports.clock().timestamp() // 60)}"
    request_plan(PlanRequest(again=True, reason="unfinished"), message_id=message_id, ports=ports)


def request_report(ports: Ports, *, after: float = 0) -> None:
    """Ask for a report of progress a few seconds from now, ``after`` seconds at the earliest."""
    slot, at = _slot(REPORT_SECONDS, after, ports)
    after_all = at + CLOCKS_DIFFER
    _send_plan(PlanRequest(kind="report", reason="progress"), f"report:{slot}", after_all, ports)


def request_notifications(ports: Ports, *, after: float = 0, attempt: int = 0) -> None:
    """Ask the notifier to look some seconds from now, ``after`` seconds at the earliest."""
    slot, at = _slot(NOTIFY_SECONDS, after, ports)
    request = PlanRequest(kind="notify", reason="notifications", attempt=attempt)
    _send_plan(request, f"notify:{slot}:{attempt}", at + CLOCKS_DIFFER, ports)


def request_status_again(commit: str, ports: Ports) -> None:
    """Ask that the status of a commit is written again a few seconds from now."""
    message_id = f"report:{commit}:{ports.unique()}"
    request = PlanRequest(kind="report", commit=commit, reason="overwritten")
    request_plan(request, message_id=message_id, ports=ports, after=REPORT_SECONDS)


def request_report_now(ports: Ports) -> None:
    """Ask for a report at once, because of a new plan; one request a second gets through."""
    second = int(ports.clock().timestamp())
    _send_plan(PlanRequest(kind="report", reason="planned"), f"report:now:{second}", None, ports)


def request_sweep(part: SweepPart, ports: Ports, *, after: float = 0, attempt: int = 0) -> None:
    """Ask for a part of a sweep, ``after`` seconds from now; the same part twice is one message."""
    request = PlanRequest(kind="sweep", reason="sweep", sweep=part, attempt=attempt)
    digest = digest_of([part.model_dump(mode="json"), attempt])
    _send_plan(request, f"sweep:{part.sweep}:{digest}", _later(after, ports), ports)


def request_whole_sweep(ports: Ports, *, within: float = 0) -> None:
    """Ask for a sweep at a random moment within so many seconds; one request a minute gets through."""
    minute, seconds = int(ports.clock().timestamp() // 60), within * ports.random() if within else 0
    request_sweep(SweepPart(sweep=str(minute)), ports, after=seconds)


def request_whole_check(ports: Ports, *, within: float = 0) -> None:
    """Ask that all clusters are checked at a random moment within so many seconds; once a minute at most."""
    minute, seconds = int(ports.clock().timestamp() // 60), within * ports.random() if within else 0
    _send_checks([CheckMessage(check=str(minute))], _later(seconds, ports), ports)


def request_checks(names: Sequence[str], check: str, ports: Ports, *, after: float = 0) -> None:
    """Ask that these clusters are checked, so many seconds from now; ``check`` is the id of what asks."""
    parts = [names[first : first + CHECKED_TOGETHER] for first in range(0, len(names), CHECKED_TOGETHER)]
    messages = [CheckMessage(check=check, clusters=tuple(part)) for part in parts]
    _send_checks(messages, _later(after, ports), ports)


def request_next_check(record: ClusterRecord, ports: Ports, scheduled: datetime | None = None) -> None:
    """Ask for the next check of a cluster that is not known to be healthy.

    All who ask for one moment ask for one message, which comes when no clock is before that moment any more.
    ``scheduled`` is the moment of the check that asks.
    """
    if not needs_check(record):
        return
    now, patience = ports.clock(), timedelta(seconds=ports.config.unhealthy_seconds)
    at = next_check(record, max(now, scheduled or now), patience)
    message = CheckMessage(check=record.uid, clusters=(record.name,), at=at)
    _send_checks([message], at + CLOCKS_DIFFER, ports)


def request_rest(rest: CheckMessage, ports: Ports, after: float = 0) -> None:
    """Ask that another message continues a check, so many seconds from now."""
    _send_checks([rest], _later(after, ports), ports)


def _send_checks(checks: Sequence[CheckMessage], at: datetime | None, ports: Ports) -> None:
    """Send checks to the queue of the worker, which alone may enter clusters, in sessions of their own."""
    messages = []
    for check in checks:
        digest = digest_of(check.model_dump(mode="json"))
        session = f"{ports.config.fleet}:checks:{int(digest[:8], 16) % CHECK_SESSIONS}"
        messages.append(Message(session, f"check:{check.check}:{digest}", check.model_dump_json(), at))
    if messages:
        ports.jobs.send(*messages)


def _later(seconds: float, ports: Ports) -> datetime | None:
    """Return the time so many seconds from now, None for at once."""
    return ports.clock() + timedelta(seconds=seconds) if seconds else None


def _slot(seconds: int, after: float, ports: Ports) -> tuple[int, datetime]:
    """Return the number and the end of the slot of so many seconds that lies ``after`` seconds from now."""
    now = ports.clock()
    slot = math.floor((now.timestamp() + after) / seconds) + 1
    return slot, now.fromtimestamp(slot * seconds, tz=now.tzinfo)


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


def _send_plan(request: PlanRequest, message_id: str, at: datetime | None, ports: Ports) -> None:
    queue, session = ports.plans, ports.config.fleet
    if request.kind in PREVIEWS:
        queue, session = ports.previews, f"pull-{request.pull}" if request.pull else request.kind
    elif request.kind == "report":
        session = f"{ports.config.fleet}:reports"
    elif request.kind == "notify":
        session = f"{ports.config.fleet}:notifications"
    elif request.kind == "sweep":
        session = f"{ports.config.fleet}:sweeps"
    queue.send(Message(session, message_id, request.model_dump_json(), at))
