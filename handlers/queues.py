"""The Service Bus triggers. A session is a fleet, or its reports or the like, a pull request or a cluster.

A message that cannot be parsed raises. The host abandons it, and in the end Service Bus dead-letters it. One
that this app cannot handle yet is sent again, as it is. The triggers ask for bytes: in a string, the
host would replace what is not UTF-8, and might make it readable.

Azure gives each function instances of its own. So what a function calls is imported by its first message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC

import azure.functions as func

from handlers.executions import counted
from shared.app.door import enter, receive
from shared.cluster.job import JobQueue
from shared.cluster.queues.messages import (
    EXAMINATION,
    CheckMessage,
    IssueRequest,
    JobMessage,
    NotifyRequest,
    PromoteRequest,
    PromotionRequest,
    ProposeRequest,
    QueueRequest,
    ReadinessMessage,
    SweepRequest,
    TryRequest,
    WorkerMessage,
    commit_of,
    message_of,
)
from shared.cluster.reporting.measurements import QUEUE_DELAY, Measurement
from shared.logs import about
from shared.ports import Ports
from shared.ports.tally import RECEIVED

_EXAMINED = {"plans": "control", "jobs": "worker", "deletes": "deleter"}
"""The app that an examination on a queue is of."""


def _plan(body: bytes, ports: Ports) -> None:
    request = message_of(body, QueueRequest)
    if isinstance(request, SweepRequest):
        from shared.app.sweep import sweep

        sweep.handle(request, ports)
    elif isinstance(request, ProposeRequest):
        from shared.app.proposals import proposals

        proposals.handle(request, ports)
    elif isinstance(request, PromoteRequest | PromotionRequest):
        from shared.app.proposals import promote

        promote.handle(request, ports)
    elif isinstance(request, IssueRequest):
        from shared.app.api.acts import issue_requests

        issue_requests.handle(request, ports)
    elif isinstance(request, NotifyRequest):
        from shared.app import notifier

        notifier.handle(request, ports)
    else:
        from shared.app.planner import planner

        planner.handle(request, ports)


def handle(queue: str, body: bytes, ports: Ports) -> None:
    """Hand a message of a queue with sessions to whom it is for.

    An examination needs nothing of its message: so an app answers one of any version.
    """
    if _is_examination(queue, body):
        from shared.app import examination

        examination.examine(_EXAMINED[queue], ports)
    else:
        _FUNCTIONS[queue][1](body, ports)


def _is_examination(queue: str, body: bytes) -> bool:
    return queue in _EXAMINED and EXAMINATION in body


def _receive(message: func.ServiceBusMessage, queue: str, ports: Ports) -> None:
    """Handle the body of a message behind the door, or let the message wait; measure how long it did."""

    def inside(body: bytes, ports: Ports) -> None:
        sent = message.enqueued_time_utc  # the time for which it was scheduled, where it was
        if sent is not None and not _is_examination(queue, body):
            waited = (ports.clock() - (sent if sent.tzinfo else sent.replace(tzinfo=UTC))).total_seconds()
            ports.services.telemetry.record([Measurement(QUEUE_DELAY, max(0.0, waited), {"queue": queue})])
        handle(queue, body, ports)

    ports.process.tally.add(f"{RECEIVED} {queue}")
    receive(queue, message.session_id or "", message.get_body(), inside, ports)


def _preview(body: bytes, ports: Ports) -> None:
    request = message_of(body, QueueRequest)
    with about(commit=commit_of(request)):
        if isinstance(request, TryRequest):
            from shared.app import tries

            tries.handle(request, ports)
        else:
            from shared.app.pull_requests import pull_requests

            pull_requests.handle(request, ports)


def _work(body: bytes, ports: Ports) -> None:
    read = message_of(body, WorkerMessage)
    if isinstance(read, CheckMessage):
        from shared.app.check import check

        check.handle(read, ports)
    elif isinstance(read, ReadinessMessage):
        from shared.app import readiness

        readiness.handle(read, ports)
    elif isinstance(read, JobMessage):
        _handle_job(read, JobQueue.JOBS, ports)


def _handle_job(message: JobMessage, queue: JobQueue, ports: Ports) -> None:
    from shared.app.worker import worker

    worker.handle(message, queue, ports)


def _job_of(queue: JobQueue) -> Callable[[bytes, Ports], None]:
    return lambda body, ports: _handle_job(message_of(body, JobMessage), queue, ports)


_FUNCTIONS: Mapping[str, tuple[str, Callable[[bytes, Ports], None]]] = {
    "plans": ("planner", _plan),
    "previews": ("previewer", _preview),
    "jobs": ("worker", _work),
    "changes": ("changer", _job_of(JobQueue.CHANGES)),
    "deletes": ("deleter", _job_of(JobQueue.DELETES)),
}
"""The function of each queue with sessions.

The planner sweeps, proposes and notifies too; the previewer plans pull requests. The worker creates and
changes clusters, and reads them from inside; small changes have one of their own, and wait behind no large
one.
"""


def blueprint(ports: Ports, queue: str) -> func.Blueprint:
    """Return the function of a queue with sessions."""
    bp = func.Blueprint()
    name, _ = _FUNCTIONS[queue]

    @bp.function_name(name)
    @bp.service_bus_queue_trigger(
        "message", "ServiceBus", queue, data_type=func.DataType.BINARY, is_sessions_enabled=True
    )
    @counted(name, ports)
    def function(message: func.ServiceBusMessage) -> None:
        _receive(message, queue, ports)

    return bp


def azure_events(ports: Ports, name: str, queue: str) -> func.Blueprint:
    """Return a function for Azure's events, or for the dead letters of their queue, which have no session.

    One that failed ten times, as while the tables do not answer, comes again from the dead letters until it
    is handled: that queue gives up no message.
    """
    bp = func.Blueprint()

    @bp.function_name(name)
    @bp.service_bus_queue_trigger("message", "ServiceBus", queue, data_type=func.DataType.BINARY)
    @counted(name, ports)
    def function(message: func.ServiceBusMessage) -> None:
        from shared.app.sweep import events

        ports.process.tally.add(f"{RECEIVED} events")
        events.handle(message.get_body(), enter(ports))

    return bp
