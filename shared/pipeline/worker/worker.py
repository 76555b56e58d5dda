"""The worker: one message makes a cluster take at most one short step.

Save the lease, run the step, append its events, save the outcome, send the continuation. After a crash at any
line the next message, or the timer, continues from the record. The events are appended before the outcome is
saved: what a step did has happened, also when a newer commit or a crash discards its outcome. So an event may
be appended twice, and never not at all.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.jobs.apply_outcome import apply_outcome, postpone, release
from shared.jobs.errors import ReconcileError, Retryable, Stale, Unexpected
from shared.jobs.events import events_between, postponed_event, superseded_event
from shared.jobs.lease import MAX_ABANDONED_LEASES, NotYet, Resend, Run, Superseded, acquire_lease
from shared.jobs.messages import JobMessage
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Retry
from shared.jobs.recipes import next_step
from shared.jobs.record import ClusterRecord
from shared.pipeline import outbox
from shared.pipeline.outbox import postpone_message, send_continuation, send_copy, send_later
from shared.pipeline.worker.lease_guard import LeaseLost, with_lease_guard
from shared.pipeline.worker.rate_limiter import RateLimited, RateLimiter
from shared.pipeline.worker.steps.registry import run_step
from shared.ports import Ports

log = logging.getLogger(__name__)

_GONE = ("ResourceNotFound", "ResourceGroupNotFound")
"""ARM's codes for a cluster, or a group, that does not exist."""
PRUNE_EVERY = 50
"""After so many outcomes of a cluster its old events are removed: that takes a query and some deletes."""
AWAY_SECONDS = 15
"""How long a message waits when the state does not answer; after ten deliveries it is a dead letter."""


def handle(message: JobMessage, ports: Ports) -> None:
    """Let the record decide about the message, and act on it; later, if state or queue do not answer.

    A message that cannot be postponed either is completed: its record is overdue, so the timer resends it.
    """
    try:
        _handle(message, ports)
    except Retryable as error:
        log.warning("%s: postponed: %s: %s", message.cluster, error.kind, error)
        try:
            postpone_message(message, AWAY_SECONDS, ports)
        except Retryable as away:
            log.warning("%s: left to the timer: %s: %s", message.cluster, away.kind, away)


def _handle(message: JobMessage, ports: Ports) -> None:
    decision = acquire_lease(
        ports.state.cluster(message.cluster),
        message,
        now=ports.clock(),
        owner=ports.unique(),
        seconds=ports.config.lease_seconds,
    )
    match decision:
        case Superseded(reason):
            log.info("%s: nothing to do: %s", message.cluster, reason)
        case Resend(current):
            send_continuation(current, ports)
        case NotYet(current):
            send_later(current, message, ports)
        case Run(leased):
            _run(leased, ports)


def _run(leased: ClusterRecord, ports: Ports) -> None:
    try:
        record = ports.state.save(leased)
    except Stale:
        log.info("%s: lost the race for the lease", leased.name)
        _resend_current(leased.name, ports)
        return
    limiter = RateLimiter(record, ports)
    try:
        outcome = _outcome(record, limiter.over(with_lease_guard(record, ports)))
    except LeaseLost as lost:
        log.warning("%s; stepping aside", lost)
        if limiter.request_ids:
            ports.state.append([superseded_event(record, str(lost), limiter.request_ids, ports.clock())])
        _step_aside(record, ports)
        return
    except RateLimited as limited:
        _postpone(record, limited, limiter, ports)
        return
    log.info("%s: %s: %s", record.name, record.job.step, outcome)
    if (
        isinstance(outcome, Done)
        and record.deleting
        and next_step(record.job.recipe, record.job.step) is None
    ):
        _forget(record, outcome, ports)
        return
    after = apply_outcome(
        record, outcome, now=ports.clock(), jitter=ports.random(), retries=ports.config.retries
    )
    ports.state.append(list(events_between(record, after, outcome, request_ids=limiter.request_ids)))
    try:
        saved = ports.state.save(after)
    except Stale:
        _step_aside(record, ports)
        return
    if saved.job.sequence % PRUNE_EVERY == 0:
        ports.state.prune_events(saved.name, ports.config.events_kept)
    if saved.job.active:
        send_continuation(saved, ports)
    changed = saved.phase != record.phase or saved.needs_action != record.needs_action
    if changed or not saved.job.active:
        outbox.request_report(ports)


def _outcome(record: ClusterRecord, ports: Ports) -> Outcome:
    """Run the record's step; an error becomes the outcome that its class asks for."""
    if record.job.lost >= MAX_ABANDONED_LEASES:
        problem = f"the worker died {record.job.lost} times in {record.job.step.value}, or was cut off"
        return Fail(Unexpected(f"{problem}; the log of the host may say why"))
    try:
        return run_step(record, ports)
    except Retryable as error:
        if error.code in _GONE:
            return Restart(f"what an earlier step created no longer exists: {error}")
        return Retry(error)
    except ReconcileError as error:
        return Fail(error)
    except (LeaseLost, RateLimited):
        raise
    except Exception as error:  # an unforeseen error is retried a few times and reported
        log.exception("%s: %s failed unexpectedly", record.name, record.job.step)
        return Retry(
            Unexpected(f"{type(error).__name__} in {record.job.step.value}; the log has the details")
        )


def _postpone(record: ClusterRecord, limited: RateLimited, limiter: RateLimiter, ports: Ports) -> None:
    """Let the step come back for its reservation."""
    log.info("%s: %s: %s", record.name, record.job.step, limited)
    now, reserved = ports.clock(), limiter.reserved
    after = postpone(record, until=limited.at, reason=str(limited), reserved=reserved, now=now)
    ports.state.append(list(postponed_event(record, after, limiter.request_ids)))
    try:
        saved = ports.state.save(after)
    except Stale:
        _step_aside(record, ports)
        return
    send_continuation(saved, ports)


def _step_aside(record: ClusterRecord, ports: Ports) -> None:
    """Release the lease after a newer spec was accepted while the step ran, so that it can start."""
    owner = record.job.lease.owner if record.job.lease else ""
    while (current := ports.state.cluster(record.name)) is not None:
        released = release(current, owner)
        if released is None:
            return
        try:
            saved = ports.state.save(released)
        except Stale:
            continue
        send_copy(saved, ports)
        return


def _resend_current(name: str, ports: Ports) -> None:
    current = ports.state.cluster(name)
    if current is not None:
        send_continuation(current, ports)


def _forget(record: ClusterRecord, outcome: Done, ports: Ports) -> None:
    after = apply_outcome(record, outcome, now=ports.clock(), jitter=0)
    gone = [replace(event, reason="Deleted") for event in events_between(record, after, outcome)]
    ports.state.append(gone)
    try:
        ports.state.forget(record)
    except Stale:
        _step_aside(record, ports)
        return
    outbox.request_report(ports)
    outbox.request_awaited_plan(ports)
