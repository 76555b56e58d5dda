"""Dead letters: what the queues gave up is told where a person looks, and none is lost.

A job's message fails its job, if it names the present moment of the row; a plan request becomes the
fleet's problem, and the timer plans again. Whatever cannot be understood, or cannot be made again by
itself, is kept whole. A dead-letter queue delivers for ever, so ``bury`` raises only when the state does
not answer: then the message stays where it is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime

from shared.jobs.apply_outcome import apply_outcome
from shared.jobs.errors import DeadLettered, Retryable, Stale
from shared.jobs.events import events_between
from shared.jobs.messages import JobMessage, PlanRequest
from shared.jobs.outcomes import Fail
from shared.jobs.record import ClusterRecord
from shared.pipeline import outbox
from shared.pipeline.outbox import send_copy
from shared.ports import DeadLetter, Ports

log = logging.getLogger(__name__)

MAX_BYTES = 32 * 1024
MOST_WORDS = 500


@dataclass(frozen=True)
class ReceivedDeadLetter:
    """A message from a dead-letter queue; ``shown`` is its body as text without secrets."""

    queue: str
    id: str
    at: datetime
    body: bytes
    shown: str
    reason: str = ""
    description: str = ""

    @property
    def why(self) -> str:
        """The queue's reason and description on one line."""
        words = ": ".join(word for word in (self.reason, self.description) if word)
        return " ".join(words.split())[:MOST_WORDS] or "no reason was given"


def handle_dead_letter(received: ReceivedDeadLetter, ports: Ports) -> None:
    """Take a dead letter in; raise Retryable when the state or a queue does not answer."""
    log.error("the queue %s gave up the message %s: %s", received.queue, received.id, received.why)
    try:
        understood = _take(received, ports)
    except Retryable:
        raise
    except Exception:  # raising here would bring the message back for ever
        log.exception("the dead letter %s of %s is only kept", received.id, received.queue)
        understood = False
    if not understood:
        ports.state.save_dead_letter(_letter(received))


def _take(received: ReceivedDeadLetter, ports: Ports) -> bool:
    """Do what the message's kind asks for; tell whether nothing more is to be kept of it."""
    try:
        if received.queue == "jobs":
            _fail_job(JobMessage.model_validate_json(received.body), received, ports)
            return True
        if received.queue == "plans":
            request = PlanRequest.model_validate_json(received.body)
            _note_problem(request, received, ports)
            return request.kind != "pull" and request.approval is None
    except ValueError:
        log.info("the dead letter %s of %s cannot be read", received.id, received.queue)
    return False


def _fail_job(message: JobMessage, received: ReceivedDeadLetter, ports: Ports) -> None:
    while True:
        record = ports.state.cluster(message.cluster)
        if record is None or not record.job.active or not _names_moment(message, record):
            log.info("%s: the dead letter is of another moment", message.cluster)
            return
        now = ports.clock()
        if record.job.lease is not None and record.job.lease.until > now:
            send_copy(record, ports)  # somebody runs the step: this copy sees how that ended
            return
        outcome = Fail(_error(record, received))
        after = apply_outcome(record, outcome, now=now, jitter=0)
        failure = after.job.failure
        if failure is not None and record.job.failure is not None:
            after = replace(
                after, job=replace(after.job, failure=replace(failure, since=record.job.failure.since))
            )
        ports.state.append(list(events_between(record, after, outcome)))  # first, so that it is told for sure
        try:
            ports.state.save(after)
        except Stale:
            continue
        outbox.request_report(ports)
        return


def _names_moment(message: JobMessage, record: ClusterRecord) -> bool:
    named = (message.uid, message.generation, message.sequence)
    return named == (record.uid, record.generation, record.job.sequence)


def _error(record: ClusterRecord, received: ReceivedDeadLetter) -> DeadLettered:
    words = f"the queue gave up the message of {record.job.step.value}: {received.why}"
    last = record.job.failure
    if last is None:
        return DeadLettered(words, code=received.reason)
    told = f"{words}; last known, after {record.job.attempts} attempts: {last.kind}: {last.message}"
    return DeadLettered(told, code=last.code or received.reason, request_id=last.request_id)


def _note_problem(request: PlanRequest, received: ReceivedDeadLetter, ports: Ports) -> None:
    words = f"a {request.kind} request could not be handled: {received.why}"
    if request.approval is not None:
        words += f"; approve {request.approval.commit[:8]} again"
    while request.kind == "plan":
        fleet = ports.state.fleet()
        if fleet.problem == words:
            return
        try:
            ports.state.save_fleet(replace(fleet, problem=words))
        except Stale:
            continue
        return


def _letter(received: ReceivedDeadLetter) -> DeadLetter:
    kept = received.shown.encode()[:MAX_BYTES].decode(errors="ignore")
    return DeadLetter(
        queue=received.queue,
        id=received.id,
        at=received.at,
        reason=received.reason[:MOST_WORDS],
        description=received.description[:MOST_WORDS],
        body=kept,
        size=len(received.body),
    )
