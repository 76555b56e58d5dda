"""The function app in memory: who handles a message of a queue, and what its timers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.memory.crashes import Crash
from shared.app import notifier, readiness, tries
from shared.app.api.acts import issue_requests
from shared.app.check import check as checks
from shared.app.door import NotReady, enter
from shared.app.examination import examine
from shared.app.followed import plan_moved_sources
from shared.app.planner import planner
from shared.app.planner.recovery import end_recovery
from shared.app.proposals import promote, proposals
from shared.app.pull_requests import pull_requests
from shared.app.recovery import missed_work
from shared.app.sweep import sweep
from shared.app.worker import worker
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.job import JobQueue
from shared.cluster.queues.messages import (
    EXAMINATION,
    CheckMessage,
    JobMessage,
    QueueRequest,
    ReadinessMessage,
    WorkerMessage,
    message_of,
)
from shared.ports import Ports

_PROMOTES = dict.fromkeys(("promote", "promotion"), promote)
_APPS = {"jobs": "worker", "deletes": "deleter"}
_HANDLERS: Mapping[str, Any] = {
    **{"sweep": sweep, "propose": proposals, "notify": notifier, "issue": issue_requests},
    **_PROMOTES,
}
"""Whom a message of the queue ``plans`` is for, if not for the planner."""


def handle(queue: str, body: bytes, ports: Ports) -> None:
    """Hand a message to whom it is for."""
    if EXAMINATION in body:
        examine(_APPS.get(queue, "control"), ports)
    elif queue == "plans":
        request = message_of(body, QueueRequest)
        _HANDLERS.get(request.kind, planner).handle(request, ports)
    elif queue == "previews":
        request = message_of(body, QueueRequest)
        (tries if request.kind == "try" else pull_requests).handle(request, ports)
    else:
        message = message_of(body, WorkerMessage)
        if isinstance(message, CheckMessage):
            checks.handle(message, ports)
        elif isinstance(message, ReadinessMessage):
            readiness.handle(message, ports)
        elif isinstance(message, JobMessage):
            worker.handle(message, JobQueue(queue), ports)


def run_timers(ports: Ports) -> None:
    """Run the timers once, on an instance that handles anything."""
    try:
        inside = enter(ports)
    except NotReady:
        return
    timers = (
        end_recovery,
        missed_work.plan_missed_head,
        plan_moved_sources,
        missed_work.wake_notifier,
        missed_work.resend_overdue,
        missed_work.put_to_sleep,
    )
    for timer in timers:
        try:
            timer(inside)
        except (Crash, ReconcileError):
            continue  # a timer that fails runs again at its next time
