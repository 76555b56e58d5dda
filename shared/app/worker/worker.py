"""The worker and the deleter: each message runs the short steps of a cluster's job that are due.

Both are this code, each with an identity of its own: the worker runs the recipe that creates and changes
clusters, from two queues, the deleter the one that deletes them. A message for a record with the other recipe
runs nothing: the record's continuation goes to the queue of the other one.

The worker runs the step, saves the outcome with its events and sends the continuation. A step that is done is
followed by the next one in the same message, and no continuation is sent. The lease is saved before the next
write to Azure or to the cluster, with the outcomes so far: a step that is done needs no save of its own. A
delete, and a message that comes late, save their lease first: a tombstone may not be taken back while its
delete runs, and the timer recognises a backlog by the leases.

A crash at any line leaves a record from which the next message, or the timer, continues. Events are written
with the outcome, and by themselves where a newer commit discards it: the effects of a step are real. An event
may be written twice, and is never missing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta

from shared.app import outbox
from shared.app.access.context import ClusterAccess
from shared.app.access.lease_guard import LeasedRecord, LeaseLost, with_lease_guard
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.notifications import notifications_of, store_deletion
from shared.app.outbox import send_all
from shared.app.pause import pause_now
from shared.app.records import Transition, change
from shared.app.worker.stay import Stay
from shared.app.worker.steps.registry import begins_inside, run_step
from shared.azure.rate_limits import Limit
from shared.cluster.failures.errors import NOT_FOUND, ReconcileError, Retryable, Stale, Unexpected, Unreadable
from shared.cluster.findings.health import needs_check
from shared.cluster.job import JobQueue
from shared.cluster.outcomes import Done, Fail, Outcome, Restart, Retry
from shared.cluster.queues.envelopes import (
    Envelope,
    checks_of,
    continuation,
    continuation_at,
    copy_of,
    job_message,
)
from shared.cluster.queues.messages import JobMessage, ReportRequest, RolloutRequest, TryRequest
from shared.cluster.recipes import Step, next_step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import (
    DELETED,
    RELEASED,
    events_between,
    rate_limited_event,
    superseded_event,
)
from shared.cluster.reporting.measurements import of_outcome, of_reservation
from shared.cluster.transitions.apply_outcome import apply_outcome, postpone, release
from shared.cluster.transitions.lease import (
    MAX_ABANDONED_LEASES,
    NotYet,
    Resend,
    Run,
    Superseded,
    acquire_lease,
    is_late,
    keep_lease,
    names_moment,
)
from shared.frozen import replace
from shared.logs import about, about_record
from shared.ports import Ports
from shared.ports.azure import PutPool, StartCluster, StopCluster

log = logging.getLogger(__name__)

INVOCATION_SECONDS = 150.0
"""How long the steps of one message may take together: half of ``functionTimeout`` in host.json."""
CHECK_AFTER_SECONDS = 10.0
"""How long after the end of a job its cluster is checked: by then the record is saved."""
ROLLOUT_AFTER_SECONDS = 5
"""How long after the end of a job the rollout continues: by then the record is saved."""
UNREADABLE_SECONDS = 120
"""How long a message waits whose record cannot be read: a person has to put the record right."""
POSTPONE_SECONDS = 15
"""How long a message waits when the state does not answer; the tenth delivery would dead-letter it."""


def handle(message: JobMessage, queue: JobQueue, ports: Ports) -> None:
    """Act on a message as its record decides; postpone it while the state or a queue does not answer.

    ``queue`` is the one from which the message came: its recipe is the only one that this app may run.

    A message that cannot be postponed either is completed: its record becomes overdue, so the timer sends its
    continuation again.
    """
    with about(cluster=message.cluster, generation=message.generation):
        try:
            record = ports.state.cluster(message.cluster)
            with about_record(record) if record else nullcontext():
                _handle(record, message, queue, ports)
        except Retryable as error:
            seconds = UNREADABLE_SECONDS if isinstance(error, Unreadable) else POSTPONE_SECONDS
            log.warning("%s: postponed by %d s: %s: %s", message.cluster, seconds, error.kind, error)
            try:
                send_all([_postponed(message, queue, seconds, ports.clock())], ports)
            except Retryable as second:
                log.warning("%s: left to the timer: %s: %s", message.cluster, second.kind, second)


def _handle(record: ClusterRecord | None, message: JobMessage, queue: JobQueue, ports: Ports) -> None:
    if record is not None and not _may_run(record, queue):
        log.info("%s: handed over to the queue of the recipe %s", record.name, record.job.recipe)
        send_all(continuation(record, ports.clock()), ports)
        return
    pause = pause_now(ports)
    if pause is not None:
        log.info("%s: left to the timer: %s", message.cluster, pause)
        return
    decision = acquire_lease(
        record,
        message,
        now=ports.clock(),
        owner=ports.unique(),
        seconds=ports.config.timing.lease_seconds,
    )
    match decision:
        case Superseded(reason):
            log.info("%s: nothing to do: %s", message.cluster, reason)
        case Resend(current):
            send_all(continuation(current, ports.clock()), ports)
        case NotYet(current):
            send_all(_later(current, message, ports.clock()), ports)
        case Run(leased):
            _run(leased, ports)


def _later(record: ClusterRecord, early: JobMessage, now: datetime) -> tuple[Envelope, ...]:
    """Return a message again that came before its record was due, for the time at which the record is due.

    A message that arrives before the time it was scheduled for shows how far this clock is behind
    Service Bus, so the copy is scheduled that much later. All early messages for one time become one message:
    its id is that time. A copy that is early again is scheduled for another time, so it gets through.
    """
    at = record.job.due(now)
    if early.at is not None and early.at > now:
        at += early.at - now
    return continuation_at(record, at, now, f"{math.ceil(at.timestamp())}-{record.job.step.abandoned_leases}")


def _postponed(message: JobMessage, queue: JobQueue, seconds: float, now: datetime) -> Envelope:
    """Return a copy of a message whose record cannot be read now, on the queue from which it came."""
    at = now + timedelta(seconds=seconds)
    moment = JobMessage.ID.format(**dict(message))
    later = message.model_copy(update={"at": at})
    return Envelope(later, f"{moment}@away{int(at.timestamp())}", at=at, queue=queue)


def _may_run(record: ClusterRecord, queue: JobQueue) -> bool:
    """Return whether the record's job is one of this app: only the deleter's identity may delete."""
    return queue.carries(record.job.recipe)


def _run(record: ClusterRecord, ports: Ports) -> None:
    """Run the step of a record with our lease, and those that follow it at once."""
    leased = LeasedRecord(record, ports)
    if record.deleting or is_late(record, now=ports.clock(), seconds=ports.config.timing.lease_seconds):
        try:
            leased.save(record)
        except Stale:
            log.info("%s: lost the race for the lease", record.name)
            _resend_current(record.name, ports)
            return
    last_start = ports.elapsed() + INVOCATION_SECONDS - ports.config.timing.lease_seconds
    follows = True
    while follows:
        with about_record(leased.record):
            follows = _run_step(leased, last_start, ports)


def _run_step(leased: LeasedRecord, last_start: float, ports: Ports) -> bool:
    """Run a step; return whether ``leased`` is at the one that follows it at once."""
    limiter = RateLimiter(leased.record, ports)
    access = ClusterAccess(leased.record, limiter.over(with_lease_guard(leased, ports)))
    stay, first = Stay(leased, ports, access, last_start), leased.found.job.step.name

    def run(current: ClusterRecord) -> Outcome:
        limiter.run_again()
        limiter.hold(current.document["spec"]["subscriptionId"], _write_ahead(current))
        return _outcome(current, access.ports, first)

    try:
        outcome = stay.run(run)
    except LeaseLost as lost:
        log.warning("%s", lost)
        ids = limiter.request_ids
        leased.append(
            [superseded_event(leased.record, str(lost), ids, ports.clock())] if limiter.wrote else []
        )
        _give_lease_back(leased, ports)
        return False
    except RateLimited as limited:
        _postpone(leased, limited, limiter, ports, unread=not (limiter.called or access.opened))
        return False
    before = leased.record
    log.info("%s: %s: %s", before.name, before.job.step.name, outcome)
    if isinstance(outcome, Done) and before.deleting and _is_last_step(before):
        _delete_record(leased, outcome, ports)
        return False
    entered = replace(
        before, observation=replace(before.observation, api_server=access.server_after(outcome))
    )
    after = apply_outcome(
        entered, outcome, now=ports.clock(), jitter=ports.random(), retries=ports.config.timing.retries
    )
    ports.telemetry.record(of_outcome(before, after, outcome))
    events = list(events_between(before, after, outcome, request_ids=limiter.request_ids))
    seconds = ports.config.timing.lease_seconds if ports.elapsed() <= last_start else 0
    following = keep_lease(before, after, now=ports.clock(), seconds=seconds)
    changed = _reported(after) != _reported(before)
    quiet = isinstance(outcome, Done) and not (changed or before.deleting)
    notifications = notifications_of(before, after, ports)
    if following is not None and quiet:
        leased.advance(following, events, notifications)
        return True
    if not after.job.active and needs_check(after):  # what a check found before may be over
        moment = f"{after.uid}:{after.job.sequence}"
        outbox.send_all(checks_of([after.name], moment, CHECK_AFTER_SECONDS), ports)
    if (changed or not after.job.active) and after.rollout:
        outbox.send(RolloutRequest(), ports, after=ROLLOUT_AFTER_SECONDS)
    if (changed or not after.job.active) and following is None:
        outbox.request_plan_after(after, ports)
    tried = after.divergence.trial
    if tried and (changed or not after.job.active):
        outbox.send(TryRequest(pull=tried.pull), ports, after=ROLLOUT_AFTER_SECONDS)
    try:
        leased.save(following or after, events, notifications)
    except Stale:
        _give_lease_back(leased, ports)
        return False
    if after.job.active and following is None:
        send_all(continuation(leased.record, ports.clock()), ports)
    if changed or not after.job.active:
        outbox.send(ReportRequest(), ports)
    if not after.job.active:
        outbox.request_replacing_plan(after, ports)
    return following is not None


def _write_ahead(record: ClusterRecord) -> Sequence[Limit]:
    """Return the limits of the write with which a step begins: all clusters of a schedule come at once."""
    step = record.job.step
    if step.last_write is not None or step.name not in (Step.SLEEP, Step.WAKE):
        return ()
    if record.sleeps_in_pools:
        return PutPool.limits
    return StopCluster.limits if step.name is Step.SLEEP else StartCluster.limits


def _reported(record: ClusterRecord) -> tuple[Phase, bool, bool]:
    return record.phase, record.needs_action, record.contested


def _is_last_step(record: ClusterRecord) -> bool:
    return next_step(record.job.recipe, record.job.step.name) is None


def _outcome(record: ClusterRecord, ports: Ports, first: Step) -> Outcome:
    step = record.job.step
    if step.abandoned_leases >= MAX_ABANDONED_LEASES:
        problem = f"the worker died {step.abandoned_leases} times in {step.name}, or was cut off"
        return Fail(Unexpected(f"{problem}; the log of the host may say why"))
    try:
        return run_step(record, ports, inside=begins_inside(record.job.recipe, first))
    except Retryable as error:
        if error.code in NOT_FOUND:
            return Restart(f"what an earlier step created no longer exists: {error}")
        return Retry(error)
    except ReconcileError as error:
        return Fail(error)
    except (LeaseLost, RateLimited):
        raise
    except Exception as error:  # an unforeseen error must not be retried indefinitely and unseen
        log.exception("%s: %s failed unexpectedly", record.name, step.name)
        return Retry(Unexpected(f"{type(error).__name__} in {step.name}; the log has the details"))


def _postpone(
    leased: LeasedRecord, limited: RateLimited, limiter: RateLimiter, ports: Ports, *, unread: bool
) -> None:
    """Schedule the step for the time of its reservation; ``unread``: it has read nothing yet."""
    before = leased.record
    log.info("%s: %s: %s", before.name, before.job.step.name, limited)
    ports.telemetry.record(of_reservation(before.job.step.name))
    after = postpone(
        before,
        until=limited.at,
        reason=str(limited),
        reservations=limiter.reserved,
        now=ports.clock(),
        unread=unread,
    )
    try:
        leased.save(after, rate_limited_event(before, after, str(limited), limiter.request_ids))
    except Stale:
        _give_lease_back(leased, ports)
        return
    send_all(continuation(leased.record, ports.clock()), ports)


def _give_lease_back(leased: LeasedRecord, ports: Ports) -> None:
    """Release the lease of a step that a newer commit superseded, so that the newer job can start.

    A record that was only saved again, before our lease was, waits for a message: this one had no effect.
    """
    owner = leased.record.job.lease.owner if leased.record.job.lease else ""

    def decide(current: ClusterRecord | None) -> Transition | ClusterRecord | None:
        if current is None:
            return None
        released = release(current, owner)
        if released is not None:
            return Transition(released)
        waits = current.job.lease is None and names_moment(job_message(leased.found, None), current)
        return current if waits else None

    waiting = change(leased.record.name, decide, ports)
    if waiting is not None:
        send_all(copy_of(waiting, ports.clock()), ports)


def _resend_current(name: str, ports: Ports) -> None:
    current = ports.state.cluster(name)
    if current is not None:
        send_all(continuation(current, ports.clock()), ports)


def _delete_record(leased: LeasedRecord, outcome: Done, ports: Ports) -> None:
    record = leased.record
    after = apply_outcome(record, outcome, now=ports.clock(), jitter=0)
    ports.telemetry.record(of_outcome(record, after, outcome))
    reason = RELEASED if record.desired.is_attached else DELETED
    deleted = [replace(event, reason=reason) for event in events_between(record, after, outcome)]
    store_deletion(record, ports)
    try:
        leased.remove(deleted)
    except Stale:
        _give_lease_back(leased, ports)
        return
    outbox.send(ReportRequest(), ports)
    outbox.request_awaited_plan(ports, deleted=record.name)
