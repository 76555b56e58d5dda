"""The worker: one message makes a cluster take at most one short step.

Save the claim, run the step, tell what it did, save the outcome, send the continuation. A crash at any line
leaves a row from which the next message, or the timer, goes on. It is told before it is saved: what a step
did happened, also when a newer commit or a crash takes its outcome away; it may be told twice, never not at
all.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.jobs.claim import MOST_LOST, NotYet, Resend, Run, Superseded, claim
from shared.jobs.errors import ReconcileError, Retryable, Stale, Unexpected
from shared.jobs.events import events_between, overtaken_event, postponed_event
from shared.jobs.messages import JobMessage
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Retry
from shared.jobs.recipes import next_step
from shared.jobs.row import ClusterRow
from shared.jobs.settle import postpone, release, settle
from shared.pipeline import planning, report
from shared.pipeline.budget import Budget, Turn
from shared.pipeline.fence import LostClaim, fenced
from shared.pipeline.send import put_off, send_continuation, send_copy, send_later
from shared.pipeline.steps import run_step
from shared.ports import Ports

log = logging.getLogger(__name__)

_GONE = ("ResourceNotFound", "ResourceGroupNotFound")
"""ARM's codes for a cluster, or a group, that is not there."""


PRUNE_EVERY = 50
"""After so many outcomes of a cluster its old events are removed, which takes a query and some deletes."""
AWAY_SECONDS = 15
"""How long a message waits when the state does not answer; ten deliveries in a row would bury it."""


def handle(message: JobMessage, ports: Ports) -> None:
    """Let the row decide about the message, and do what it decides; later, if state or queue do not answer.

    A message that cannot be put off either is done with: the timer sends it again, for its row is overdue.
    """
    try:
        _handle(message, ports)
    except Retryable as error:
        log.warning("%s: put off: %s: %s", message.cluster, error.kind, error)
        try:
            put_off(message, AWAY_SECONDS, ports)
        except Retryable as away:
            log.warning("%s: left to the timer: %s: %s", message.cluster, away.kind, away)


def _handle(message: JobMessage, ports: Ports) -> None:
    decision = claim(
        ports.state.cluster(message.cluster),
        message,
        now=ports.clock(),
        owner=ports.unique(),
        seconds=ports.config.claim_seconds,
    )
    match decision:
        case Superseded(why):
            log.info("%s: nothing to do: %s", message.cluster, why)
        case Resend(current):
            send_continuation(current, ports)
        case NotYet(current):
            send_later(current, message, ports)
        case Run(claimed):
            _run(claimed, ports)


def _run(claimed: ClusterRow, ports: Ports) -> None:
    try:
        row = ports.state.save(claimed)
    except Stale:
        log.info("%s: somebody else was faster", claimed.name)
        _resend_current(claimed.name, ports)
        return
    budget = Budget(row, ports)
    try:
        outcome = _outcome(row, budget.over(fenced(row, ports)))
    except LostClaim as lost:
        log.warning("%s; stepping aside", lost)
        if budget.request_ids:
            ports.state.append([overtaken_event(row, str(lost), budget.request_ids, ports.clock())])
        _step_aside(row, ports)
        return
    except Turn as turn:
        _postpone(row, turn, budget, ports)
        return
    log.info("%s: %s: %s", row.name, row.job.step, outcome)
    if isinstance(outcome, Done) and row.deleting and next_step(row.job.recipe, row.job.step) is None:
        _forget(row, outcome, ports)
        return
    after = settle(row, outcome, now=ports.clock(), jitter=ports.random(), retries=ports.config.retries)
    ports.state.append(list(events_between(row, after, outcome, request_ids=budget.request_ids)))
    try:
        saved = ports.state.save(after)
    except Stale:
        _step_aside(row, ports)
        return
    if saved.job.sequence % PRUNE_EVERY == 0:
        ports.state.prune_events(saved.name, ports.config.events_kept)
    if saved.job.active:
        send_continuation(saved, ports)
    moved = saved.phase != row.phase or saved.waits_for_person != row.waits_for_person
    if moved or not saved.job.active:
        report.request(ports)


def _outcome(row: ClusterRow, ports: Ports) -> Outcome:
    """Run the row's step; an error becomes the outcome that its class asks for."""
    if row.job.lost >= MOST_LOST:
        told = f"the worker died {row.job.lost} times in {row.job.step.value}, or was cut off"
        return Fail(Unexpected(f"{told}; the log of the host may say why"))
    try:
        return run_step(row, ports)
    except Retryable as error:
        if error.code in _GONE:
            return Restart(f"what an earlier step made is gone: {error}")
        return Retry(error)
    except ReconcileError as error:
        return Fail(error)
    except (LostClaim, Turn):
        raise
    except Exception as error:  # what nobody foresaw must not run for ever unseen
        log.exception("%s: %s failed unexpectedly", row.name, row.job.step)
        return Retry(Unexpected(f"{type(error).__name__} in {row.job.step.value}; the log has the details"))


def _postpone(row: ClusterRow, turn: Turn, budget: Budget, ports: Ports) -> None:
    """Let the step come back for its turn."""
    log.info("%s: %s: %s", row.name, row.job.step, turn)
    after = postpone(row, until=turn.at, reason=str(turn), reserved=budget.reserved, now=ports.clock())
    ports.state.append(list(postponed_event(row, after, budget.request_ids)))
    try:
        saved = ports.state.save(after)
    except Stale:
        _step_aside(row, ports)
        return
    send_continuation(saved, ports)


def _step_aside(row: ClusterRow, ports: Ports) -> None:
    """Give the claim back after a newer spec was accepted while the step ran, so that it can start."""
    owner = row.job.claim.owner if row.job.claim else ""
    while (current := ports.state.cluster(row.name)) is not None:
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


def _forget(row: ClusterRow, outcome: Done, ports: Ports) -> None:
    after = settle(row, outcome, now=ports.clock(), jitter=0)
    gone = [replace(event, reason="Deleted") for event in events_between(row, after, outcome)]
    ports.state.append(gone)
    try:
        ports.state.forget(row)
    except Stale:
        _step_aside(row, ports)
        return
    report.request(ports)
    planning.request_awaited(ports)
