"""The one place that turns an outcome into the next row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from shared.jobs.errors import Aborted, Interrupted, NotYetVisible, ReconcileError
from shared.jobs.outcomes import Done, Fail, GoToStep, Outcome, Restart, Retry, Wait
from shared.jobs.recipes import CONDITIONS, STEPS, Step, deadline, next_step
from shared.jobs.record import ClusterRecord, Condition, Failure, Job, Phase, working_phase
from shared.jobs.retry import DEFAULTS, Policies, policy_for, wait_before_retry

STALLED_WAIT = 300.0
"""Seconds between looks at a job that has waited too long."""
RESTART_WAIT = 15.0
"""Seconds before a recipe begins again, so that what keeps vanishing does not keep us busy."""
MAX_RESTARTS = 5
"""So often a job makes anew what vanished behind its back; then it fails and says so."""


def apply_outcome(
    record: ClusterRecord, outcome: Outcome, *, now: datetime, jitter: float, retries: Policies = DEFAULTS
) -> ClusterRecord:
    """Return the row after its claimed step ended with ``outcome``; jitter is 0 to 1."""
    # A look that found nothing ends no count: what killed the workers before it is tried again after it.
    looked = isinstance(outcome, Retry) and isinstance(outcome.error, NotYetVisible)
    lost = record.job.lost if looked else 0
    done = replace(record.job, sequence=record.job.sequence + 1, lease=None, person="", reserved={})
    job = replace(done, lost=lost, looked=looked)
    record = replace(record, owned=record.owned or _shows_ours(record, outcome))
    match outcome:
        case Done():
            return _done(record, job, outcome, now)
        case Wait():
            return _wait(record, job, outcome, now)
        case Retry(error):
            return _retry(record, job, error, now, jitter=jitter, retries=retries)
        case Fail(error):
            return _fail(record, job, error, now)
        case Restart(reason):
            return _restart(record, job, reason, now)
        case GoToStep(step, reason):
            return _back(record, job, step, reason, now)


def _shows_ours(record: ClusterRecord, outcome: Outcome) -> bool:
    """Tell whether the cluster has our tags by now: nothing else is written, or left as it is."""
    done = isinstance(outcome, Done) or (isinstance(outcome, Wait) and bool(outcome.wrote))
    return done and record.job.step is Step.CLUSTER


def postpone(
    record: ClusterRecord,
    *,
    until: datetime,
    reason: str,
    reserved: Mapping[str, tuple[datetime, ...]],
    now: datetime,
) -> ClusterRecord:
    """Return the row whose step waits for its turn at Azure: no attempt, no outcome, its time not running."""
    job = replace(
        record.job,
        sequence=record.job.sequence + 1,
        lease=None,
        next_at=until,
        reason=reason,
        moved=until,
        person="",
        reserved=reserved,
    )
    return replace(record, job=job, updated=now)


def release(record: ClusterRecord, owner: str) -> ClusterRecord | None:
    """Return the row without the claim of ``owner``, None when the claim is not theirs (any more).

    For a step that ended after somebody else wrote the row, mostly with a newer spec: what it did is noted
    nowhere, so it counts as lost, and the next step looks at the world afresh.
    """
    if record.job.lease is None or record.job.lease.owner != owner:
        return None
    return replace(record, job=replace(record.job, lease=None, lost=record.job.lost + 1, looked=False))


def _done(record: ClusterRecord, job: Job, outcome: Done, now: datetime) -> ClusterRecord:
    conditions = _with(record, CONDITIONS[job.step], True, "Done", outcome.note, now)
    following = next_step(job.recipe, job.step)
    if following is not None:
        job = replace(_at(job, following, now), next_at=now, reason="")
        phase = working_phase(record) if record.phase in (Phase.STALLED, Phase.SUSPENDED) else record.phase
        begun = record.begun or following is Step.CLUSTER
        return replace(record, job=job, phase=phase, conditions=conditions, begun=begun, updated=now)
    job = replace(_at(job, job.step, now), active=False, reason="", step_since=job.step_since, next_at=now)
    return replace(
        record,
        job=job,
        phase=Phase.READY,
        observed_generation=record.generation,
        conditions=conditions,
        dropped={},
        updated=now,
    )


def _at(job: Job, step: Step, now: datetime) -> Job:
    """Return the job at the beginning of a step."""
    return replace(
        job,
        step=step,
        step_since=now,
        attempts=0,
        tries={},
        wrote="",
        request_id="",
        moved=None,
        part="",
        part_since=None,
        failure=None,
    )


def _wait(record: ClusterRecord, job: Job, outcome: Wait, now: datetime) -> ClusterRecord:
    came_on = outcome.open_ended or outcome.wrote not in ("", job.wrote)
    moved = now if came_on else job.moved
    stalled = (now - (moved or job.step_since)).total_seconds() > deadline(job.step)
    seconds = max(outcome.seconds, STALLED_WAIT) if stalled else outcome.seconds
    job = replace(
        job,
        next_at=now + timedelta(seconds=seconds),
        reason=outcome.reason,
        wrote=outcome.wrote or job.wrote,
        request_id=outcome.request_id or (job.request_id if outcome.wrote in ("", job.wrote) else ""),
        part=outcome.part,
        part_since=_part_since(job, outcome.part, now),
        person=outcome.person,
        moved=moved,
        attempts=0,
        tries=_of_writes(job.tries),
        failure=None,
    )
    why = "Stalled" if stalled else "Suspended" if outcome.suspended else "Waiting"
    conditions = _with(record, CONDITIONS[job.step], False, why, outcome.reason, now)
    phase = Phase.STALLED if stalled else Phase.SUSPENDED if outcome.suspended else working_phase(record)
    return replace(record, job=job, phase=phase, conditions=conditions, updated=now)


def _of_writes(tries: Mapping[str, int]) -> Mapping[str, int]:
    """Return the tries that a look does not end: an operation fails long after it was accepted."""
    return {kind: count for kind, count in tries.items() if kind == Interrupted.__name__}


def _part_since(job: Job, part: str, now: datetime) -> datetime | None:
    if not part:
        return None
    return job.part_since if part == job.part else now


def _restart(record: ClusterRecord, job: Job, reason: str, now: datetime) -> ClusterRecord:
    if job.restarts >= MAX_RESTARTS:
        told = f"{reason}; it vanished {MAX_RESTARTS} times before, and something may remove it each time"
        return _fail(record, job, Aborted(f"{told}; the activity log of Azure says who"), now)
    conditions = _with(record, CONDITIONS[job.step], False, "Restarted", reason, now)
    first = STEPS[job.recipe][0]
    due = now + timedelta(seconds=RESTART_WAIT)
    job = replace(_at(job, first, now), next_at=due, reason=reason, restarts=job.restarts + 1)
    return replace(record, job=job, phase=working_phase(record), conditions=conditions, updated=now)


def _back(record: ClusterRecord, job: Job, step: Step, reason: str, now: datetime) -> ClusterRecord:
    conditions = _with(record, CONDITIONS[job.step], True, "Done", reason, now)
    job = replace(_at(job, step, now), next_at=now, reason=reason)
    return replace(record, job=job, phase=working_phase(record), conditions=conditions, updated=now)


def _retry(
    record: ClusterRecord, job: Job, error: ReconcileError, now: datetime, *, jitter: float, retries: Policies
) -> ClusterRecord:
    # Each class has its own limit: what is tried for ever uses up nobody's, and no class hides in another.
    attempts = job.tries.get(error.kind, 0) + 1
    job = replace(job, tries={**job.tries, error.kind: attempts})
    seconds = wait_before_retry(error, attempts, jitter, retries)
    if seconds is None:
        return _fail(record, job, error, now)
    if isinstance(error, Interrupted):
        job = replace(job, wrote="", request_id="")
    job = replace(
        job,
        attempts=attempts,
        next_at=now + timedelta(seconds=seconds),
        reason=f"{error.kind}: {error}",
        failure=_failure(job, error, now),
    )
    conditions = _with(record, CONDITIONS[job.step], False, error.kind, str(error), now)
    stalled = policy_for(type(error), retries).attempts is None and (
        (now - (job.moved or job.step_since)).total_seconds() > deadline(job.step)
    )
    phase = Phase.STALLED if stalled else working_phase(record)
    return replace(record, job=job, phase=phase, conditions=conditions, updated=now)


def _fail(record: ClusterRecord, job: Job, error: ReconcileError, now: datetime) -> ClusterRecord:
    job = replace(
        job,
        active=False,
        attempts=job.tries.get(error.kind, 1),
        next_at=now,
        reason=f"{error.kind}: {error}",
        failure=_failure(job, error, now),
    )
    conditions = _with(record, CONDITIONS[job.step], False, error.kind, str(error), now)
    conditions = _with(replace(record, conditions=conditions), "Ready", False, error.kind, str(error), now)
    return replace(record, job=job, phase=Phase.FAILED, conditions=conditions, updated=now)


def _failure(job: Job, error: ReconcileError, now: datetime) -> Failure:
    earlier = job.failure
    since = earlier.since if earlier and earlier.kind == error.kind else now
    return Failure(error.kind, str(error)[:2000], since, error.code, error.request_id)


def _with(
    record: ClusterRecord, kind: str, status: bool, reason: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with one set; its ``since`` moves only when the status changes."""
    before = record.condition(kind)
    since = before.since if before and before.status == status else now
    changed = Condition(kind, status, reason, message[:1000], since)
    if before is None:
        return (*record.conditions, changed)
    return tuple(changed if c.type == kind else c for c in record.conditions)
