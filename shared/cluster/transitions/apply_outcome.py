"""The one place that applies a step's outcome to the record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from shared.azure.ownership import created_for
from shared.cluster.divergence.drift import remaining_after
from shared.cluster.failures.errors import (
    OUTSIDE,
    Aborted,
    ClusterContested,
    NoLongerReady,
    NotYetVisible,
    ReconcileError,
    classes,
)
from shared.cluster.failures.retry import DEFAULTS, Policies, policy_for, wait_before_retry
from shared.cluster.findings.conditions import (
    MESSAGE_LIMIT,
    reassessed,
    with_condition,
    with_in_sync,
    with_summary,
)
from shared.cluster.job import AcceptedWrite, ContestKind, Delay, Failure, NextRun, StepState, start_step
from shared.cluster.lifetime import ready_at
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Restart, Retry, Wait
from shared.cluster.recipes import STEPS, Recipe, Step, next_step
from shared.cluster.record import READY, ClusterRecord, working_phase
from shared.cluster.record_parts import NOTHING_REMOVED, Condition, ConditionReason, Phase
from shared.cluster.transitions.apply_comparison import apply_finding
from shared.frozen import replace
from shared.language.desired import Desired
from shared.masking import cut

STALLED_WAIT = 300.0
"""Seconds between the reads of a stalled job."""
RESTART_WAIT = 15.0
"""Seconds before a recipe starts again: a resource may vanish each time."""
MAX_RESTARTS = 5
"""How often a job restarts because something of an earlier step is no longer so; then it fails."""
_FAIL_LATE = frozenset(kind.__name__ for kind in classes() if kind.rewrites)


def apply_outcome(
    record: ClusterRecord, outcome: Outcome, *, now: datetime, jitter: float, retries: Policies = DEFAULTS
) -> ClusterRecord:
    """Return the record after its step ended with ``outcome``; jitter is 0 to 1."""
    return with_summary(_applied(record, outcome, now, jitter=jitter, retries=retries), now)


def _applied(
    record: ClusterRecord, outcome: Outcome, now: datetime, *, jitter: float, retries: Policies
) -> ClusterRecord:
    # A recheck does nothing, so the abandoned leases before it still count.
    recheck = isinstance(outcome, Retry) and isinstance(outcome.error, NotYetVisible)
    abandoned = record.job.step.abandoned_leases if recheck else 0
    step = record.job.step
    if (step.rechecking, step.abandoned_leases) != (recheck, abandoned):
        record = _with_step(record, replace(step, rechecking=recheck, abandoned_leases=abandoned))
    record = _with_tags_read(record, outcome)
    tagged, rival = record.azure.was_tagged or _shows_our_tags(record, outcome), _has_rival(record, outcome)
    if (tagged, rival) != (record.azure.was_tagged, record.ownership.has_rival):
        record = replace(
            record,
            azure=replace(record.azure, was_tagged=tagged),
            ownership=replace(record.ownership, has_rival=rival),
        )
    delete = _accepted_delete(record, outcome)
    if delete is not None:
        record = replace(record, azure=replace(record.azure, delete_accepted=True, deleted=delete.digest))
    match outcome:
        case Done():
            return _done(record, outcome, now)
        case Wait():
            return _wait(record, outcome, now)
        case Retry(error):
            return _retry(record, error, now, jitter=jitter, retries=retries)
        case Fail(error):
            return _fail(record, error, now)
        case Restart(reason):
            return _restart(record, reason, now)
        case GoToStep(name, reason):
            record = with_condition(record, _condition(record, True, ConditionReason.DONE, reason, now))
            return _advanced(
                record, start_step(name, now), NextRun(now, Delay.NONE, reason), working_phase(record), now
            )


def postpone(
    record: ClusterRecord,
    *,
    until: datetime,
    reason: str,
    reservations: Mapping[str, tuple[datetime, ...]],
    now: datetime,
    unread: bool = False,
) -> ClusterRecord:
    """Return the record of a rate-limited step: that is no attempt, and its deadline does not run.

    ``unread``: the step has read nothing. So one that waited for a person still does, and says so.
    """
    step = replace(record.job.step, last_progress=until)
    waits = unread and record.needs_action
    held = record.job.next_run if waits else NextRun(until, Delay.RATE_LIMIT, reason)
    next_run = replace(held, at=until, delay=Delay.RATE_LIMIT, reservations=reservations)
    return _advanced(record, step, next_run, record.phase, now)


def release(record: ClusterRecord, owner: str) -> ClusterRecord | None:
    """Return the record without the lease of ``owner``, None when ``owner`` no longer has the lease.

    For a step that ended after another actor wrote the record, mostly with a newer spec: no outcome records
    what the step did, so its lease counts as abandoned, and the next step reads Azure again.
    """
    if record.job.lease is None or record.job.lease.owner != owner:
        return None
    step = record.job.step
    step = replace(step, abandoned_leases=step.abandoned_leases + 1, rechecking=False)
    return replace(record, job=replace(record.job, lease=None, step=step))


def _shows_our_tags(record: ClusterRecord, outcome: Outcome) -> bool:
    """Return whether the outcome proves that the cluster has our tags: every write sets them."""
    done = isinstance(outcome, Done) or (isinstance(outcome, Wait) and outcome.write is not None)
    return done and _shows_tags(record)


def _shows_tags(record: ClusterRecord) -> bool:
    """Return whether the step reads who owns the cluster, and ends only where that is us."""
    step = record.job.step.name
    return step is Step.CLUSTER or (step is Step.ACCESS and record.job.recipe is Recipe.ATTACH)


def _accepted_delete(record: ClusterRecord, outcome: Outcome) -> AcceptedWrite | None:
    """Return the delete of the cluster that Azure accepted, as the outcome proves, None for none."""
    written = (outcome.write if isinstance(outcome, Wait) else None) or record.job.step.last_write
    return written if record.job.step.name is Step.DELETE_CLUSTER else None


def _has_rival(record: ClusterRecord, outcome: Outcome) -> bool:
    """Return whether another installation managed the cluster too when it was read last."""
    if isinstance(outcome, Wait) and outcome.contest is not None:
        return outcome.contest.kind is ContestKind.INSTALLATION
    return record.ownership.has_rival and not _shows_our_tags(record, outcome)


def _with_tags_read(record: ClusterRecord, outcome: Outcome) -> ClusterRecord:
    """Return the record with the life that the cluster has; a takeover ends once our tags are back."""
    shown = _shows_tags(record) or record.job.step.name is Step.DELETE_CLUSTER
    if not isinstance(outcome, Done) or not shown:
        return record
    life = outcome.life or record.azure.life
    server = record.observation.api_server if life == record.azure.life else None
    uid = outcome.cluster_uid or record.ownership.cluster_uid
    rebuilt_for = max(record.rebuilt_for, created_for(life)) if record.recovering else record.rebuilt_for
    record = replace(
        record,
        azure=replace(record.azure, life=life),
        observation=replace(record.observation, api_server=server),
        ownership=replace(record.ownership, overruled=(), cluster_uid=uid),
    )
    return replace(record, azure=replace(record.azure, rebuilt_for=rebuilt_for))


def _advanced(
    record: ClusterRecord, step: StepState, next_run: NextRun, phase: Phase, now: datetime
) -> ClusterRecord:
    """Return the record at its job's next sequence, with the lease given back."""
    sequence = record.job.sequence + 1
    job = replace(record.job, sequence=sequence, lease=None, step=step, next_run=next_run)
    return replace(record, job=job, phase=phase, updated=now)


def _ended(record: ClusterRecord) -> ClusterRecord:
    return replace(record, job=replace(record.job, active=False))


def _done(record: ClusterRecord, outcome: Done, now: datetime) -> ClusterRecord:
    step = record.job.step
    reason = ConditionReason.RETAINED if outcome.retained else ConditionReason.DONE
    record = with_condition(record, _condition(record, True, reason, outcome.note, now))
    if outcome.facts is not None:
        record = replace(record, observation=replace(record.observation, facts=outcome.facts))
    if outcome.pins:
        desired = Desired(record.document).with_pins(outcome.pins)
        record = replace(record, document=desired.document(), digest=desired.digest)
    following = next_step(record.job.recipe, step.name)
    if following is None:
        step = replace(start_step(step.name, now), since=step.since)
        if record.trial and record.trial.ended:
            trial = replace(record.trial, back=True)
            record = replace(record, divergence=replace(record.divergence, trial=trial))
        if outcome.verified is not None:
            again = (
                record.observation.verified is not None and record.observed_generation == record.generation
            )
            remaining = remaining_after(
                record.divergence.drift, record.job.left, outcome.added, now, same_generation=again
            )
            known, left = record.observation.companions, record.job.left
            differing = tuple(found for found in known.differences if found.path in left)
            companions = replace(known, differences=differing)
            record = replace(
                record,
                observation=replace(record.observation, verified=outcome.verified, companions=companions),
            )
            record = with_in_sync(record, remaining, now, compared=outcome.in_sync)
        record = replace(
            record,
            observed_generation=record.generation,
            observation=replace(
                record.observation, running=outcome.running or record.observation.running, loss=None
            ),
            removals=NOTHING_REMOVED,
            azure=replace(
                record.azure,
                recreating=False,
                lifetime=ready_at(record.azure.lifetime, now),
                slept=None,
                pools_slept=False,
            ),
            ownership=replace(record.ownership, recovering=False),
        )
        return _ended(_advanced(record, step, NextRun(now, Delay.NONE), Phase.READY, now))
    if following is Step.CLUSTER and not record.azure.creation_requested:
        record = replace(record, azure=replace(record.azure, creation_requested=True))
    phase = (
        working_phase(record)
        if record.phase in (Phase.STALLED, Phase.SUSPENDED, Phase.SLEEPING)
        else record.phase
    )
    return _advanced(record, start_step(following, now), NextRun(now, Delay.NONE), phase, now)


def _wait(record: ClusterRecord, outcome: Wait, now: datetime) -> ClusterRecord:
    step = record.job.step
    new_write = outcome.write is not None and outcome.write != step.last_write
    step = replace(
        step,
        last_progress=now if new_write or outcome.open_ended else step.last_progress,
        last_write=outcome.write if new_write else step.last_write,
        waiting_on=outcome.waiting_on,
        # An operation may fail long after Azure accepted it, so a wait does not reset that count.
        attempts={kind: count for kind, count in step.attempts.items() if kind in _FAIL_LATE},
    )
    stuck = record.phase is Phase.STALLED and step.failure is not None and step.failure.kind in OUTSIDE
    again = stuck and step.last_write is not None  # what fails now will have failed all the time
    step = step if again else replace(step, failure=None)
    stalled = _stalled(step, now)
    if stalled:
        phase, reason = Phase.STALLED, ConditionReason.STALLED
    elif again:
        phase, reason = Phase.STALLED, ConditionReason.WAITING
    elif outcome.suspended:
        record = reassessed(record, now)
        phase, reason = Phase.SUSPENDED, ConditionReason.SUSPENDED
    elif outcome.sleeping:
        phase, reason = Phase.SLEEPING, ConditionReason.SLEEPING
        observation = replace(record.observation, loss=None)
        record = replace(record.fallen_asleep(now), observation=observation)
    else:
        phase, reason = working_phase(record), ConditionReason.WAITING
    seconds = max(outcome.seconds, STALLED_WAIT) if stalled else outcome.seconds
    if stalled or not _is_waking(record):
        record = with_condition(record, _condition(record, False, reason, outcome.reason, now))
    if outcome.contest:
        record = apply_finding(record, ClusterContested(outcome.reason), now)
    elif step.name is Step.VERIFY:  # every step before has compared what it would write
        record = replace(record, ownership=replace(record.ownership, recovering=False))
    at = now + timedelta(seconds=seconds)
    delay = Delay.RESTORED if outcome.restored else Delay.WAIT
    next_run = NextRun(at, delay, outcome.reason, outcome.action_required, contest=outcome.contest)
    return _advanced(record, step, next_run, phase, now)


def _is_waking(record: ClusterRecord) -> bool:
    """Return whether a cluster that was Ready is verified after its sleep: it stays so meanwhile."""
    return record.sleep_job_runs and record.job.step.name is Step.VERIFY


def _stalled(step: StepState, now: datetime) -> bool:
    return (now - step.last_progress).total_seconds() > step.name.deadline


def _restart(record: ClusterRecord, reason: str, now: datetime) -> ClusterRecord:
    if record.job.restarts >= MAX_RESTARTS:
        often = f"{reason}; the job started again {MAX_RESTARTS} times for such reasons"
        return _fail(record, Aborted(f"{often}, and something may undo each time what it does"), now)
    restarted = _condition(record, False, ConditionReason.RESTARTED, reason, now)
    job, first = replace(record.job, restarts=record.job.restarts + 1), STEPS[record.job.recipe][0]
    if job.recipe is Recipe.SLEEP and job.step.name.inside:
        job, first = replace(job, recipe=Recipe.PROVISION, started=now, left=_differing(record)), Step.ACCESS
    record = with_condition(record, restarted)
    record = replace(record, job=job, observation=replace(record.observation, api_server=None))
    next_run = NextRun(now + timedelta(seconds=RESTART_WAIT), Delay.WAIT, reason)
    return _advanced(record, start_step(first, now), next_run, working_phase(record), now)


def _differing(record: ClusterRecord) -> tuple[str, ...]:
    """Return every field that differs: a job that follows a sleep only applies again what is inside.

    It begins inside the cluster, so it writes nothing to Azure that a freeze or a change window would hold.
    """
    drift = record.divergence.drift
    fields = [field.path for field in drift.fields] if drift else []
    fields += [difference.path for difference in record.observation.companions.differences]
    return tuple(dict.fromkeys(fields))


def _retry(
    record: ClusterRecord, error: ReconcileError, now: datetime, *, jitter: float, retries: Policies
) -> ClusterRecord:
    # Each class has its own limit: one that is retried indefinitely uses up no attempts of another.
    step = record.job.step
    attempts = step.attempts.get(error.kind, 0) + 1
    step = replace(step, attempts={**step.attempts, error.kind: attempts})
    seconds = wait_before_retry(error, attempts, jitter, retries)
    starts = step.name is Step.WAKE
    if seconds is None and starts:  # somebody waits for the cluster: the attempts never end
        seconds = policy_for(type(error), retries).longest
    if seconds is None:
        return _fail(_with_step(record, step), error, now)
    if error.rewrites:
        step = replace(step, last_write=None)
    reason = ConditionReason.WAITING if error.waits else error.kind
    if not _is_waking(record):
        record = with_condition(record, _condition(record, False, reason, str(error), now))
    limit = policy_for(type(error), retries).attempts
    by_time = limit is None or (error.outside and record.deleting)
    counts = error.outside and limit is not None and attempts >= limit
    late = starts and (now - step.since).total_seconds() > step.name.deadline
    stalled = counts or late or (by_time and _stalled(step, now))
    phase = Phase.STALLED if stalled else working_phase(record)
    told = str(error) if error.waits else f"{error.kind}: {error}"
    next_run = NextRun(now + timedelta(seconds=seconds), Delay.RETRY, told)
    return _advanced(record, _failing(step, error, now), next_run, phase, now)


def _fail(record: ClusterRecord, error: ReconcileError, now: datetime) -> ClusterRecord:
    step = record.job.step
    failed = _condition(record, False, error.kind, str(error), now)
    record = with_condition(record, failed)
    record = with_condition(record, replace(failed, type=READY))
    record = (
        apply_finding(record, error, now)
        if isinstance(error, NoLongerReady)
        else replace(record, observation=replace(record.observation, loss=None))
    )
    next_run = NextRun(now, Delay.NONE, f"{error.kind}: {error}")
    return _ended(_advanced(record, _failing(step, error, now), next_run, Phase.FAILED, now))


def _failing(step: StepState, error: ReconcileError, now: datetime) -> StepState:
    earlier = step.failure
    since = earlier.since if earlier and earlier.kind == error.kind else now
    attempts = step.attempts.get(error.kind, 1)
    told = cut(str(error), 2000)
    failure = Failure(error.kind, told, since, attempts, error.code, error.request_id, error.entry)
    return replace(step, failure=failure)


def _with_step(record: ClusterRecord, step: StepState) -> ClusterRecord:
    return replace(record, job=replace(record.job, step=step))


def _condition(record: ClusterRecord, status: bool, reason: str, message: str, now: datetime) -> Condition:
    kind, generation = record.job.step.name.condition, record.generation
    return Condition(kind, status, reason, cut(message, MESSAGE_LIMIT), now, generation, now)
