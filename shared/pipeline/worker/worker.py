"""The worker and the deleter: each message runs the short steps of a cluster's job that are due.

Both are this code, each with an identity of its own: the worker runs the recipe that creates and changes
clusters, the deleter the one that deletes them. A message for a record with the other recipe runs nothing:
the record's continuation goes to the queue of the other one.

The worker saves the lease, runs the step, writes the events, saves the outcome and sends the continuation. A
step that is done is followed by the next one in the same message: its outcome and the lease of the next step
are one write, and no continuation is sent. A crash at any line leaves a record from which the next message,
or the timer, continues. Events are written before the outcome: the effects of a step are real, even when a
newer commit or a crash discards its outcome. An event may be written twice, and is never missing.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.jobs.apply_outcome import apply_outcome, postpone, release
from shared.jobs.errors import ReconcileError, Retryable, Stale, Unexpected
from shared.jobs.events import events_between, rate_limited_event, superseded_event
from shared.jobs.lease import (
    MAX_ABANDONED_LEASES,
    NotYet,
    Resend,
    Run,
    Superseded,
    acquire_lease,
    keep_lease,
)
from shared.jobs.messages import JobMessage
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Retry
from shared.jobs.recipes import Recipe, next_step
from shared.jobs.record import ClusterRecord
from shared.pipeline import outbox
from shared.pipeline.outbox import postpone_message, send_continuation, send_copy, send_later
from shared.pipeline.worker.lease_guard import LeaseLost, with_lease_guard
from shared.pipeline.worker.rate_limiter import RateLimited, RateLimiter
from shared.pipeline.worker.steps.registry import run_step
from shared.ports import Ports

log = logging.getLogger(__name__)

_NOT_FOUND = ("ResourceNotFound", "ResourceGroupNotFound")
"""ARM's codes for a cluster, or a group, that does not exist."""


PRUNE_EVERY = 50
"""After about this many outcomes of a cluster its old events are removed: a query and some deletes."""
INVOCATION_SECONDS = 150.0
"""How long the steps of one message may take together: half of ``functionTimeout`` in host.json."""
POSTPONE_SECONDS = 15
"""How long a message waits when the state does not answer; the tenth delivery would dead-letter it."""


def handle(message: JobMessage, recipe: Recipe, ports: Ports) -> None:
    """Act on a message as its record decides; postpone it while the state or a queue does not answer.

    ``recipe`` is the only one that this app may run.

    A message that cannot be postponed either is completed: its record becomes overdue, so the timer sends its
    continuation again.
    """
    try:
        _handle(message, recipe, ports)
    except Retryable as error:
        log.warning("%s: postponed: %s: %s", message.cluster, error.kind, error)
        try:
            postpone_message(message, recipe, POSTPONE_SECONDS, ports)
        except Retryable as second:
            log.warning("%s: left to the timer: %s: %s", message.cluster, second.kind, second)


def _handle(message: JobMessage, recipe: Recipe, ports: Ports) -> None:
    record = ports.state.cluster(message.cluster)
    if record is not None and not _may_run(record, recipe):
        log.info("%s: handed over to the queue of the recipe %s", record.name, record.job.recipe)
        send_continuation(record, ports)
        return
    decision = acquire_lease(
        record,
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


def _may_run(record: ClusterRecord, recipe: Recipe) -> bool:
    """Return whether the record's job is one of this app: only the deleter's identity may delete."""
    return record.job.recipe is recipe


def _run(leased: ClusterRecord, ports: Ports) -> None:
    """Run the step with the lease, and those that follow it at once."""
    try:
        record: ClusterRecord | None = ports.state.save(leased)
    except Stale:
        log.info("%s: lost the race for the lease", leased.name)
        _resend_current(leased.name, ports)
        return
    last_start = ports.elapsed() + INVOCATION_SECONDS - ports.config.lease_seconds
    while record is not None:
        record = _run_step(record, last_start, ports)


def _run_step(record: ClusterRecord, last_start: float, ports: Ports) -> ClusterRecord | None:
    """Run a step and save its outcome; return the record with the lease of the step that follows at once.

    No step follows that would start after ``last_start``.
    """
    limiter = RateLimiter(record, ports)
    try:
        outcome = _outcome(record, limiter.over(with_lease_guard(record, ports)))
    except LeaseLost as lost:
        log.warning("%s", lost)
        if limiter.request_ids:
            ports.state.append([superseded_event(record, str(lost), limiter.request_ids, ports.clock())])
        _give_lease_back(record, ports)
        return None
    except RateLimited as limited:
        _postpone(record, limited, limiter, ports)
        return None
    log.info("%s: %s: %s", record.name, record.job.step.name, outcome)
    if isinstance(outcome, Done) and record.deleting and _is_last_step(record):
        _delete_record(record, outcome, ports)
        return None
    after = apply_outcome(
        record, outcome, now=ports.clock(), jitter=ports.random(), retries=ports.config.retries
    )
    ports.state.append(list(events_between(record, after, outcome, request_ids=limiter.request_ids)))
    seconds = ports.config.lease_seconds if ports.elapsed() <= last_start else 0
    following = keep_lease(record, after, now=ports.clock(), seconds=seconds)
    try:
        saved = ports.state.save(following or after)
    except Stale:
        _give_lease_back(record, ports)
        return None
    if saved.job.sequence % PRUNE_EVERY in (0, 1):  # the planner, or a reservation, may have taken the first
        ports.state.prune_events(saved.name, ports.config.events_kept)
    if saved.job.active and following is None:
        send_continuation(saved, ports)
    changed = saved.phase != record.phase or saved.needs_action != record.needs_action
    if changed or not saved.job.active:
        outbox.request_report(ports)
    return saved if following else None


def _is_last_step(record: ClusterRecord) -> bool:
    return next_step(record.job.recipe, record.job.step.name) is None


def _outcome(record: ClusterRecord, ports: Ports) -> Outcome:
    """Run the record's step; turn an error into the outcome of its class."""
    step = record.job.step
    if step.abandoned_leases >= MAX_ABANDONED_LEASES:
        problem = f"the worker died {step.abandoned_leases} times in {step.name}, or was cut off"
        return Fail(Unexpected(f"{problem}; the log of the host may say why"))
    try:
        return run_step(record, ports)
    except Retryable as error:
        if error.code in _NOT_FOUND:
            return Restart(f"what an earlier step created no longer exists: {error}")
        return Retry(error)
    except ReconcileError as error:
        return Fail(error)
    except (LeaseLost, RateLimited):
        raise
    except Exception as error:  # an unforeseen error must not be retried indefinitely and unseen
        log.exception("%s: %s failed unexpectedly", record.name, step.name)
        return Retry(Unexpected(f"{type(error).__name__} in {step.name}; the log has the details"))


def _postpone(record: ClusterRecord, limited: RateLimited, limiter: RateLimiter, ports: Ports) -> None:
    """Schedule the step for the time of its reservation."""
    log.info("%s: %s: %s", record.name, record.job.step.name, limited)
    after = postpone(
        record,
        until=limited.at,
        reason=str(limited),
        reservations=limiter.reserved,
        now=ports.clock(),
    )
    ports.state.append(list(rate_limited_event(record, after, limiter.request_ids)))
    try:
        saved = ports.state.save(after)
    except Stale:
        _give_lease_back(record, ports)
        return
    send_continuation(saved, ports)


def _give_lease_back(record: ClusterRecord, ports: Ports) -> None:
    """Release the lease of a step that a newer commit superseded, so that the newer job can start."""
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


def _delete_record(record: ClusterRecord, outcome: Done, ports: Ports) -> None:
    after = apply_outcome(record, outcome, now=ports.clock(), jitter=0)
    events = [replace(event, reason="Deleted") for event in events_between(record, after, outcome)]
    ports.state.append(events)
    try:
        ports.state.delete(record)
    except Stale:
        _give_lease_back(record, ports)
        return
    outbox.request_report(ports)
    outbox.request_awaited_plan(ports, deleted=record.name)
