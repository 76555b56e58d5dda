"""What Azure shows of a cluster at rest becomes a decision: what its record says, what is corrected. Pure.

A sweep reads first, and saves afterwards. What differs is known before the activity log and git are asked
about it, so the decision has two parts: ``compare``, and ``correct``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from shared.app.access.azure_state import busy, profiles_of, running_of
from shared.app.records import Transition
from shared.app.sweep.verdicts import SweepVerdict
from shared.azure.differences import Difference, beyond_git, drift_of, live_digest
from shared.azure.drift.policy import (
    DriftDecision,
    decide,
    only_reported,
    starts_only_pools,
    uncorrected,
    with_pools_started,
)
from shared.azure.node_pools.replacement import serving
from shared.azure.ownership import Owner
from shared.cluster.divergence.drift import digest_of_proposal, exhausted
from shared.cluster.divergence.verification import Verification, known_beyond
from shared.cluster.failures.errors import ReconcileError, Unexpected, classes
from shared.cluster.findings.conditions import IN_SYNC, found_of, is_unfinished, loss_of, own_failure
from shared.cluster.findings.health import CORRECTED, FLUX, applies_again
from shared.cluster.history import Event
from shared.cluster.job import ContestKind, Failure
from shared.cluster.outcomes import Done, Fail, Outcome
from shared.cluster.queues.envelopes import Envelope, checks_of, continuation
from shared.cluster.queues.messages import ProposeRequest, RolloutRequest, SweepRequest
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord, at_another_moment, finding_of_sweep
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import correction_event, drift_event, events_between, restarted_event
from shared.cluster.transitions.acceptance import (
    accept_retry,
)
from shared.cluster.transitions.apply_comparison import apply_comparison, apply_finding, start_correction
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.frozen import dataclass, replace
from shared.json_tree import Json, digest_of
from shared.kubernetes.inside import facts_of
from shared.kubernetes_versions import is_version
from shared.language.model.cluster.drift import DriftAction
from shared.rollouts.calendar import Start
from shared.rollouts.shut import Calendar, held_start

MISSING = "the cluster"
MISSING_CLUSTER = Difference(MISSING, "exists", None)
"""A whole cluster that differs, as it is counted among the corrections."""
STOPPED = "the power of the cluster"
STOPPED_CLUSTER = Difference(STOPPED, "Running", "Stopped")
CHECK_AFTER_SECONDS = 10.0
"""How long after its facts have changed a cluster is checked, which applies them: by then they are saved."""


ReadCalendar = Callable[[], Calendar]


@dataclass(frozen=True)
class Sighting:
    """What Azure shows of a cluster at a time; ``live`` is None for no cluster, ``found`` what is wrong.

    ``calendar`` reads the freezes and change windows in force, where a job would start.
    """

    live: Json | None
    found: SweepVerdict | None
    owner: Owner
    calendar: ReadCalendar
    now: datetime


@dataclass(frozen=True)
class SweepComparison:
    """A record with what Azure shows, before any correction starts.

    ``concluded`` is the record before its values were compared; ``turned``: the cluster is not Ready any
    more, or is so again. ``of_values``: what Azure shows of it can be compared with git. ``decided`` is what
    becomes of each difference, None for a cluster that is left to the next sweep.
    """

    record: ClusterRecord
    concluded: ClusterRecord
    events: tuple[Event, ...] = ()
    turned: bool = False
    of_values: bool = False
    decided: Sequence[DriftDecision] | None = None


def compare(record: ClusterRecord, shown: Sighting) -> SweepComparison:
    """Return what Azure shows of a cluster, and what differs from git where it can be compared."""
    found, now, live = shown.found, shown.now, shown.live
    concluded, events = record, list[Event]()
    suspended = record.phase is Phase.SUSPENDED
    turned = not suspended and _is_news(found, record, now)
    if suspended:
        concluded = _in_suspension(record, found, now)
    elif turned:
        concluded, events = _turned(record, found, now)
    if found is not None or live is None or (concluded.job.active and not suspended):
        return SweepComparison(concluded, concluded, tuple(events), turned)
    decided = decided_of(concluded, live, shown.owner, now)
    compared = _compared(concluded, decided, live, shown.owner, now)
    return SweepComparison(compared, concluded, tuple(events), turned, True, decided)


def correct(before: ClusterRecord, compared: SweepComparison, shown: Sighting) -> Transition:
    """Return the record with the job that the policy starts, unless something holds it, and what is sent."""
    events = [*compared.events]
    after, what = _corrected(before, compared, shown)
    if compared.of_values:
        events += drift_event(compared.concluded, compared.record)
    if what:
        events.append(correction_event(after, what))
    first, then = [*sweep_of_held(after, shown.now)], [*continuation(after, shown.now)]
    if (
        after.idle
        and after.observation.facts is not None
        and after.observation.facts != before.observation.facts
    ):
        facts = digest_of(after.observation.facts)
        first += checks_of([after.name], f"facts:{after.uid}:{facts}", CHECK_AFTER_SECONDS)
    if compared.turned and after.rollout:
        first.append(Envelope(RolloutRequest()))
    if digest_of_proposal(after.divergence.drift) != digest_of_proposal(before.divergence.drift):
        then.append(Envelope(ProposeRequest()))
    return Transition(after, events, first=first, then=then)


def is_news(before: ClusterRecord, compared: SweepComparison, after: ClusterRecord) -> bool:
    """Return whether a cluster is not Ready any more, or not in sync with git, or is so again."""
    return compared.turned or _differs_since(before) != _differs_since(after)


def _corrected(
    before: ClusterRecord, compared: SweepComparison, shown: Sighting
) -> tuple[ClusterRecord, str]:
    record, now, live = compared.record, shown.now, shown.live
    if compared.of_values:
        if compared.decided is None:
            return still_held(record, shown.calendar, now), ""
        started, written = start_correction(record, _with_flux(record, compared.decided, now), now=now)
        what, start, started = _corrects(written), Start.CORRECTION, started if written else record
    elif before.phase is Phase.SUSPENDED:
        return record, ""
    elif live is None:
        what, start, started = "a job creates the cluster again", Start.CREATION, _recreated(record, now)
    elif _is_left(record, live):
        return still_held(record, shown.calendar, now), ""
    else:
        what, start = "a job starts the cluster again", Start.CORRECTION
        started = _started_again(record, live, shown.owner, now)
    sleeps = live is not None and not compared.of_values and record.sleep_at(now) is not None
    sleeps = sleeps or (record.sleeps_in_pools and starts_only_pools(compared.decided or ()))
    after = started if sleeps else unless_held(record, started, start, shown.calendar, now)
    return after, what if started is not record and after.divergence.held is None else ""


# Corrections that a freeze or a change window holds: none starts, and a sweep compares again then.


def unless_held(
    record: ClusterRecord, started: ClusterRecord, start: Start, calendar: ReadCalendar, now: datetime
) -> ClusterRecord:
    """Return the record with the job that a sweep ``started``, or without it and with what holds that."""
    if started is record:
        return (
            replace(record, divergence=replace(record.divergence, held=None))
            if record.divergence.held
            else record
        )
    held = held_start(record, start, calendar(), now)
    return started if held is None else replace(record, divergence=replace(record.divergence, held=held))


def sweep_of_held(record: ClusterRecord, now: datetime) -> tuple[Envelope, ...]:
    """Return the sweep of a cluster at the time when what holds its job ends, nothing where that has none."""
    if (
        record.divergence.held is None
        or record.divergence.held.until is None
        or record.divergence.held.until <= now
    ):
        return ()
    return (Envelope(SweepRequest(clusters=(record.name,)), at=record.divergence.held.until),)


def still_held(record: ClusterRecord, calendar: ReadCalendar, now: datetime) -> ClusterRecord:
    """Return the record of a cluster that was not compared: what keeps its job from starting still does."""
    if record.divergence.held is None:
        return record
    return replace(
        record,
        divergence=replace(record.divergence, held=held_start(record, Start.CORRECTION, calendar(), now)),
    )


def _differs_since(record: ClusterRecord) -> datetime | None:
    in_sync = record.condition(IN_SYNC)
    return in_sync.since if record.divergence.drift and in_sync else None


def _is_news(found: SweepVerdict | None, record: ClusterRecord, now: datetime) -> bool:
    """Return whether a record does not say what was found, who did it, or that an exemption has it so."""
    if (found.error.kind if found else "") != finding_of_sweep(record.finding):
        return True
    return found is not None and _completes(found, record, now)


def _completes(found: SweepVerdict, record: ClusterRecord, now: datetime) -> bool:
    """Return whether something else is known now of a finding that a record has already."""
    loss = loss_of(record, found.error, now)
    return record.observation.loss is not None and loss is not None and loss != record.observation.loss


def _turned(
    record: ClusterRecord, found: SweepVerdict | None, now: datetime
) -> tuple[ClusterRecord, list[Event]]:
    """Return the record of a cluster that is not Ready any more, or is so again, and the events.

    A job that ended because Azure did not show its cluster starts again. One that had failed before is so
    again, for its own reason.
    """
    earlier = own_failure(record)
    if found is None and earlier is None and record.job.step.name is not Step.VERIFY:
        after = accept_retry(apply_finding(record, None, now), now=now, left=record.job.left)
        return after, [restarted_event(after)]
    outcome: Outcome = Done("a sweep found the cluster as it was verified")
    if found:
        outcome = Fail(found.error)
    elif earlier:
        outcome = Fail(_error_of(earlier))
    after = apply_outcome(record, outcome, now=now, jitter=0)
    job, reason = after.job, after.job.reason
    if found:
        reason += f"; before that, its job failed: {earlier.kind}: {earlier.message}" if earlier else ""
        next_run = replace(job.next_run, reason=reason, contest=found.contest)
        rival = found.contest is not None and found.contest.kind is ContestKind.INSTALLATION
        after = replace(after, job=replace(job, next_run=next_run, earlier=earlier))
        after = replace(
            after, ownership=replace(after.ownership, has_rival=after.ownership.has_rival or rival)
        )
    else:
        step = replace(job.step, failure=earlier)
        after = apply_finding(replace(after, job=replace(job, step=step, earlier=None)), None, now)
        after = replace(after, ownership=replace(after.ownership, has_rival=False))
    return after, list(events_between(record, after, outcome))


def _error_of(failure: Failure) -> ReconcileError:
    kind = next(
        (error_class for error_class in classes() if error_class.__name__ == failure.kind), Unexpected
    )
    error = kind(failure.message, code=failure.code, request_id=failure.request_id)
    error.entry = failure.entry
    return error


def _in_suspension(record: ClusterRecord, found: SweepVerdict | None, now: datetime) -> ClusterRecord:
    """Return the record of a suspended cluster with what is so; its job goes on waiting."""
    in_sync = record.condition(IN_SYNC)
    if found is None:
        after = apply_finding(record, None, now)
        return at_another_moment(after, now) if found_of(record) else after
    if in_sync is None:
        return record
    if in_sync.reason == found.error.kind and not _completes(found, record, now):
        return record
    after = apply_finding(record, found.error, now)
    after = replace(
        after,
        observation=replace(
            after.observation,
            verified=after.observation.verified and replace(after.observation.verified, digest=""),
        ),
    )
    return at_another_moment(after, now)


def _is_left(record: ClusterRecord, live: Json) -> bool:
    """Return whether a cluster is left to the next sweep: Azure works on it, or its manifest is refused."""
    return bool(busy(live["properties"]) or record.desired.problem)


def decided_of(
    record: ClusterRecord, live: Json, owner: Owner, now: datetime
) -> Sequence[DriftDecision] | None:
    """Return what differs and what happens to it; None for a cluster that is left to the next sweep."""
    desired, before = record.desired, record.observation.verified
    if _is_left(record, live):
        return None
    known = known_beyond(before, beyond_git(desired, owner, live))
    differences = drift_of(desired, owner, live, known)
    differences += record.observation.companions.differences
    often = exhausted(record.divergence.corrections, now)
    pools = {name: mine[0] for name, mine in serving(profiles_of(live), owner).items()}
    decided = decide(differences, desired.spec.drift, live, pools=pools, exhausted=often, now=now)
    sleep = record.sleep_at(now) if record.sleeps_in_pools else None
    decided = with_pools_started(decided, often) if sleep is not None and sleep.awake else decided
    if is_unfinished(record):
        failure = own_failure(record)
        when = f"after its job failed: {failure.kind}" if failure else "in a suspension"
        return only_reported(decided, when)
    # One that a check found unhealthy is left to a person: its job would apply Flux again, unasked.
    return uncorrected(decided, f"not corrected while {record.finding}") if record.finding else decided


def _with_flux(
    record: ClusterRecord, decided: Sequence[DriftDecision] | None, now: datetime
) -> Sequence[DriftDecision]:
    """Return what happens to each difference, with what Roadstead applied of Flux where that is corrected.

    Nothing happens to a cluster that was not compared. A job writes the version of a cluster before anything
    else: nothing is applied while that is left alone.
    """
    if decided is None:
        return ()
    versions = [
        decision for decision in decided if is_version(decision.path) and not decision.difference.left_alone
    ]
    left = any(version.action is not DriftAction.CORRECT for version in versions)
    if left or is_unfinished(record) or not applies_again(record, now):
        return decided
    return [*decided, CORRECTED]


def _corrects(written: Sequence[str]) -> str:
    fields = [path for path in written if path != FLUX]
    values = f"a job writes git's {', '.join(fields)}" if fields else ""
    flux = "a job applies again what Roadstead applied of Flux" if len(fields) < len(written) else ""
    return "; ".join(filter(None, (values, flux)))


def _compared(
    record: ClusterRecord,
    decided: Sequence[DriftDecision] | None,
    live: Json,
    owner: Owner,
    now: datetime,
) -> ClusterRecord:
    if decided is None:
        return record
    beyond = beyond_git(record.desired, owner, live)
    before = record.observation.verified or Verification(unmanaged=tuple(beyond))
    verified = before.now(beyond).compared("" if decided else live_digest(live), beyond)
    after = apply_comparison(record, decided, verified, now=now)
    if after.observation.running is None:
        return after
    running = running_of(live, owner, after.observation.running.flux, after.observation.running)
    facts = (
        None if after.observation.facts is None else facts_of(record.desired, live)
    )  # a job applies the first ones
    if facts != after.observation.facts and after.job.sequence == record.job.sequence:
        after = at_another_moment(after, now)
    return replace(after, observation=replace(after.observation, running=running, facts=facts))


def _started_again(record: ClusterRecord, live: Json, owner: Owner, now: datetime) -> ClusterRecord:
    """Return the record of a cluster that is stopped, with the job that the policy may ask for.

    The job starts the cluster, and leaves everything else that differs, and the counts of the pools: a
    stopped one does not show how many nodes it will have. It would have to write the version of a cluster
    before anything else, so one whose version differs is left to a person.
    """
    if not record.started_again or STOPPED in exhausted(record.divergence.corrections, now):
        return record
    others = decided_of(record, live, owner, now)
    if others is None or any(
        is_version(decision.path) and not decision.difference.left_alone for decision in others
    ):
        return record
    counts = [f"nodePools[{pool.name}].count" for pool in record.desired.spec.node_pools]
    left = [DriftDecision(Difference(path, None, None), DriftAction.REPORT) for path in counts]
    left += uncorrected(others, "not corrected while the cluster is stopped")
    return start_correction(record, [DriftDecision(STOPPED_CLUSTER, DriftAction.CORRECT), *left], now=now)[0]


def _recreated(record: ClusterRecord, now: datetime) -> ClusterRecord:
    if not record.recreated or MISSING in exhausted(record.divergence.corrections, now):
        return record
    return start_correction(record, [DriftDecision(MISSING_CLUSTER, DriftAction.CORRECT)], now=now)[0]
