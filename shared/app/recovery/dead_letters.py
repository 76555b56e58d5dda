"""Dead letters: messages that the queues gave up are reported to operators, and none is lost.

A job's message fails its job, if it names the present moment of the record. A plan request becomes the
fleet's problem, and the timer plans again. A message that cannot be read, or that nothing sends again by
itself, is saved as a dead letter. A dead-letter queue delivers indefinitely, so ``handle_dead_letter`` raises
only when the state does not answer: then the message stays in its queue. The message of a job whose record
cannot be read is dropped: once it can, it is overdue, and the timer sends another one.
"""

from __future__ import annotations

import logging
from datetime import datetime

from shared.app.notifications import notifications_of, store_dead_letter
from shared.app.outbox import next_check_of, send_all
from shared.app.records import Transition, again, change
from shared.cluster.failures.errors import DeadLettered, Retryable, Unreadable
from shared.cluster.failures.fleet_problem import FailedPart, FleetProblem
from shared.cluster.forms import NewerForm
from shared.cluster.job import JobQueue
from shared.cluster.outcomes import Fail
from shared.cluster.queues.envelopes import Envelope, copy_of
from shared.cluster.queues.messages import (
    CheckMessage,
    ExamineRequest,
    JobMessage,
    PlanRequest,
    QueueMessage,
    QueueRequest,
    ReadinessMessage,
    ReportRequest,
    ToPlan,
    WorkerMessage,
    commit_of,
    message_of,
)
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import events_between
from shared.cluster.reporting.measurements import DEAD_LETTERS, Measurement, Span, of_outcome
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.cluster.transitions.lease import names_moment
from shared.frozen import dataclass, replace
from shared.logs import about, about_record
from shared.masking import cut, without_secrets
from shared.ports import DeadLetter, Ports
from shared.ports.state.clusters import readable

log = logging.getLogger(__name__)

MAX_BYTES = 32 * 1024
MAX_CHARACTERS = 500


@dataclass(frozen=True)
class ReceivedDeadLetter:
    """A message from a dead-letter queue; ``shown`` is its body as text."""

    queue: str
    id: str
    at: datetime
    body: bytes
    shown: str
    reason: str = ""
    description: str = ""

    @property
    def cause(self) -> str:
        """The queue's reason and description on one line."""
        cause = ": ".join(filter(None, (self.reason, self.description)))
        return cut(" ".join(without_secrets(cause).split()), MAX_CHARACTERS) or "no reason was given"


def handle_dead_letter(received: ReceivedDeadLetter, ports: Ports) -> None:
    """Handle a dead letter; raise Retryable when the state or a queue does not answer."""
    message = _parsed(received.queue, received.body)
    record = readable(message.cluster, ports.state) if isinstance(message, JobMessage) else None
    with about_record(record) if record else about(commit=commit_of(message)):
        log.error("the queue %s gave up the message %s: %s", received.queue, received.id, received.cause)
        _report(message, record, received, ports)


def _report(
    message: QueueMessage | None, record: ClusterRecord | None, received: ReceivedDeadLetter, ports: Ports
) -> None:
    try:
        handled = _handle(message, record, received, ports)
    except Unreadable as error:  # raising would bring the message back until the record is put right
        log.warning("the dead letter %s of %s is only saved: %s", received.id, received.queue, error)
        handled = False
    except Retryable:
        raise
    except Exception:  # raising here would bring the message back indefinitely
        log.exception("the dead letter %s of %s is only saved", received.id, received.queue)
        handled = False
    ports.services.telemetry.record([Measurement(DEAD_LETTERS, 1, {"queue": received.queue})])
    if not handled:
        letter = _dead_letter(received)
        ports.state.save_dead_letter(letter)
        store_dead_letter(letter, ports)


def _handle(
    message: QueueMessage | None, record: ClusterRecord | None, received: ReceivedDeadLetter, ports: Ports
) -> bool:
    """Act on a message by its kind; return whether the message need not be saved."""
    if isinstance(message, JobMessage):
        _fail_job(message, record, received, ports)
        return True
    if isinstance(message, CheckMessage):
        for name in message.clusters:  # the next check of the fleet reads those that are healthy so far
            record = readable(name, ports.state)
            if record is not None:
                send_all(next_check_of(record, ports, message.at), ports)
        return True
    if isinstance(message, ReadinessMessage):
        return True  # whoever asked sees that nothing was read, and asks again
    if isinstance(message, QueueRequest):
        if isinstance(message, PlanRequest):
            _record_problem(message, received, ports)
        return not (message.ASKED or (isinstance(message, ToPlan) and message.approval))
    log.info("the dead letter %s of %s is not readable", received.id, received.queue)
    return False


def _parsed(queue: str, body: bytes) -> QueueMessage | None:
    """Return the message of a queue, None when its body is not one."""
    of_worker = queue in {*JobQueue}
    if not of_worker and queue not in ("plans", "previews"):
        return None
    try:
        message = message_of(body, QueueMessage)
    except (ValueError, NewerForm):
        return None
    fits = isinstance(message, ExamineRequest) or isinstance(message, WorkerMessage) is of_worker
    return message if fits else None


def replayed(letter: DeadLetter, unique: str) -> Envelope | None:
    """Return the message of a dead letter, to be sent as at its first attempt.

    None for what is no message of this app, and for one of which a part is not stored.
    """
    body = letter.body.encode()
    message = _parsed(letter.queue, body) if len(body) == letter.size else None
    if message is None:
        return None
    if "attempt" in type(message).model_fields:
        message = message.model_copy(update={"attempt": 0})
    return Envelope(message, f"replayed:{unique}", queue=letter.queue)


def _fail_job(
    message: JobMessage, record: ClusterRecord | None, received: ReceivedDeadLetter, ports: Ports
) -> None:
    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or not record.job.active or not names_moment(message, record):
            log.info("%s: the dead letter is of another moment of the record", message.cluster)
            return None
        now = ports.clock()
        if record.job.lease is not None and record.job.lease.until > now:
            send_all(copy_of(record, now), ports)  # a worker runs the step: this copy finds how it ended
            return None
        outcome = Fail(_error(record, received))
        after = _since_first_failure(record, apply_outcome(record, outcome, now=now, jitter=0))
        measured[:] = of_outcome(record, after, outcome)
        events = [*events_between(record, after, outcome)]
        notifications = notifications_of(record, after, ports)
        return Transition(after, events, notifications, then=[Envelope(ReportRequest())])

    measured = list[Measurement | Span]()
    if change(message.cluster, decide, ports, known=(record,)) is not None:
        ports.services.telemetry.record(measured)


def _since_first_failure(before: ClusterRecord, after: ClusterRecord) -> ClusterRecord:
    """Return the record with the failure dated back to the error that was retried before."""
    step, earlier = after.job.step, before.job.step.failure
    if step.failure is None or earlier is None:
        return after
    step = replace(step, failure=replace(step.failure, since=earlier.since))
    return replace(after, job=replace(after.job, step=step))


def _error(record: ClusterRecord, received: ReceivedDeadLetter) -> DeadLettered:
    message = f"the queue gave up the message of {record.job.step.name}: {received.cause}"
    last = record.job.step.failure
    if last is None:
        return DeadLettered(message, code=received.reason)
    message += f"; the last error, after {last.attempts} attempts: {last.kind}: {last.message}"
    return DeadLettered(message, code=last.code or received.reason, request_id=last.request_id)


@again
def _record_problem(request: PlanRequest, received: ReceivedDeadLetter, ports: Ports) -> None:
    commit = request.approval.commit if request.approval else ""
    fleet = ports.state.fleet()
    approved = commit or (fleet.problem.approve_again if fleet.problem else "")
    problem = FleetProblem(received.cause, FailedPart.REQUEST, approve_again=approved)
    if fleet.problem is not None and fleet.problem.failed is FailedPart.PLAN:
        problem = replace(fleet.problem, approve_again=approved)  # it says more than the queue
    if fleet.problem != problem:
        ports.state.save_fleet(replace(fleet, problem=problem))


def _dead_letter(received: ReceivedDeadLetter) -> DeadLetter:
    body = without_secrets(received.shown, MAX_BYTES).encode()[:MAX_BYTES].decode(errors="ignore")
    return DeadLetter(
        queue=received.queue,
        id=received.id,
        at=received.at,
        reason=cut(received.reason, MAX_CHARACTERS),
        description=cut(received.description, MAX_CHARACTERS),
        body=body,
        size=len(received.body),
    )
