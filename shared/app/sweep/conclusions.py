"""What a sweep concludes of one cluster, saved in its record: it is not Ready any more, or is so again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shared.app.access.azure_state import azure_names, busy, profiles_of, running_of
from shared.app.access.contests import UNKNOWN_LIFE, older_than_azure, outdated
from shared.app.access.context import StepContext
from shared.app.notifications import notifications_of
from shared.app.outbox import MAX_SKEW, request_checks, request_next_check, send, send_continuation
from shared.app.records import Send, Transition, change
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.held_corrections import still_held, unless_held
from shared.app.sweep.sources import Sources
from shared.app.sweep.verdicts import Found, verdict
from shared.azure.differences import Difference, drift_of, live_digest, unmanaged_names
from shared.azure.drift.policy import Decided, decide, is_version, only_reported, uncorrected
from shared.azure.node_pools.replacement import serving
from shared.azure.ownership import Owner
from shared.cluster.conditions import (
    IN_SYNC,
    found_of,
    is_at_rest,
    is_unfinished,
    loss_of,
    own_failure,
)
from shared.cluster.drift import Verified, attributed, digest_of_proposal, exhausted
from shared.cluster.failures.errors import ClusterMissing, ReconcileError, Unexpected, classes
from shared.cluster.health import CORRECTED, FLUX, applies_again
from shared.cluster.history import Event
from shared.cluster.job import ContestKind, Failure
from shared.cluster.messages import ProposeRequest, RolloutRequest
from shared.cluster.outcomes import Done, Fail, Outcome
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord, Phase, finding_of_sweep
from shared.cluster.reporting.events import correction_event, drift_event, events_between, restarted_event
from shared.cluster.transitions.acceptance import (
    accept_retry,
    apply_comparison,
    apply_finding,
    start_correction,
)
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.json_tree import Json
from shared.kubernetes.inside import facts_of
from shared.language.desired import digest_of
from shared.language.model.cluster.drift import DriftAction
from shared.logs import about_record
from shared.ports import Ports
from shared.ports.state.clusters import readable
from shared.rollouts.calendar import Start

log = logging.getLogger(__name__)

MISSING = "the cluster"
MISSING_CLUSTER = Difference(MISSING, "exists", None)
"""A whole cluster that differs, as it is counted among the corrections."""
STOPPED = "the power of the cluster"
STOPPED_CLUSTER = Difference(STOPPED, "Running", "Stopped")
CHECK_AFTER_SECONDS = 10.0
"""How long after its facts have changed a cluster is checked, which applies them: by then they are saved."""
SETTLED = timedelta(minutes=2)
"""How long before a list a record must have been written: Azure may list a cluster as it was a moment ago."""


def conclude_from_list(
    name: str, existing: Json, listed_at: datetime, sources: Sources, activity: ActivityLog, ports: Ports
) -> bool | None:
    """Conclude what a list shows of a cluster, unless its record was written at about that time.

    Return whether the cluster is not Ready any more, or is so again; None where only a newer read decides.
    """
    record = readable(name, ports.state)
    if record is None or not is_at_rest(record):
        return False
    if -MAX_SKEW <= listed_at - record.updated <= SETTLED:
        return None  # one that was written later than this can last has the time of a wrong clock
    return conclude(record, existing, sources, activity, ports)


def conclude_still_missing(name: str, sources: Sources, activity: ActivityLog, ports: Ports) -> bool:
    """Conclude what is known meanwhile of a cluster that was found missing, and that a list lacks as well.

    Two reads have shown that before, so nothing is read again. Return whether anything is new.
    """
    record = readable(name, ports.state)
    if record is None or record.finding != ClusterMissing.__name__:
        return False
    return conclude(record, None, sources, activity, ports)


def conclude(
    record: ClusterRecord, existing: Json | None, sources: Sources, activity: ActivityLog, ports: Ports
) -> bool:
    """Save what Azure shows of a cluster at rest, if its record says something else, and start a correction.

    Return whether the cluster is not Ready any more, or not in sync with git, or is so again. A sweep and a
    check may end at one moment, and neither loses what the other found; after a newer job, the next sweep
    reads the cluster.
    """
    news = False

    def decide(current: ClusterRecord | None) -> Transition | None:
        nonlocal news
        news, decided = False, None
        if current is not None and is_beside(current, record):
            news, decided = _decided(current, existing, sources, activity, ports)
        return decided

    with about_record(record):
        saved = change(record.name, decide, ports, known=(record,))
    return saved is not None and news


def is_beside(current: ClusterRecord, record: ClusterRecord) -> bool:
    """Return whether a record has the same job as when it was read, whatever somebody wrote over it since."""
    same = (current.uid, current.job) == (record.uid, record.job)
    if not same:
        log.info("%s: its record was written meanwhile", record.name)
    return same


def _decided(
    record: ClusterRecord, existing: Json | None, sources: Sources, activity: ActivityLog, ports: Ports
) -> tuple[bool, Transition | None]:
    """Return whether anything is news, and what is saved, None for nothing.

    What follows is requested first, so that a crash cannot lose it.
    """
    owner, now = StepContext.of(record, ports).owner, ports.clock()
    found, concluded, events = (
        verdict(existing, owner, unfinished=is_unfinished(record)),
        record,
        list[Event](),
    )
    suspended = record.phase is Phase.SUSPENDED
    older = None
    if existing is not None and not record.job.active:
        older = _older_than(StepContext.of(record, ports), existing, found)
    if older is not None:
        return True, _rebuild(record, older, now, ports)
    if found:
        found = replace(found, error=activity.named(found.error, record, now))
    if suspended:
        concluded = _in_suspension(record, found, now)
    turned = not suspended and _is_news(found, record, now)
    if turned:
        concluded, events = _turned(record, found, now)
    after = concluded
    if found is None and existing is not None and (suspended or not after.job.active):
        decided = decided_of(after, existing, owner, now)
        compared = sources.added(_compared(after, decided, existing, owner, now))
        compared = _attributed(compared, record, azure_names(existing, owner, record.running), now, activity)
        events += drift_event(after, compared)
        started, written = start_correction(compared, _with_flux(compared, decided, now), now=now)
        if decided is None:
            after = still_held(compared, Start.CORRECTION, ports)
        else:
            after = unless_held(compared, started if written else compared, Start.CORRECTION, ports)
        if written and after.held is None:
            events.append(correction_event(after, _corrects(written)))
    elif existing is None and not suspended:
        started = _recreated(after, now)
        after = unless_held(after, started, Start.CREATION, ports)
        if after.job.active:
            events.append(correction_event(after, "a job creates the cluster again"))
    elif existing is not None and not suspended:
        before, started = after, _started_again(after, existing, owner, now)
        if _is_left(before, existing):
            after = still_held(before, Start.CORRECTION, ports)
        else:
            after = unless_held(before, started, Start.CORRECTION, ports)
        if started is not before and after.held is None:
            events.append(correction_event(after, "a job starts the cluster again"))
    if after == record:
        return False, None
    if after.idle and after.facts is not None and after.facts != record.facts:
        facts = digest_of(after.facts)
        request_checks([after.name], f"facts:{after.uid}:{facts}", ports, after=CHECK_AFTER_SECONDS)
    if turned:
        request_next_check(after, ports)
        if after.rollout:
            send(RolloutRequest(), ports)
    notifications = [*notifications_of(record, concluded, ports), *notifications_of(concluded, after, ports)]
    then: list[Send] = [send_continuation]
    if digest_of_proposal(after.drift) != digest_of_proposal(record.drift):
        then.append(lambda _, ports: send(ProposeRequest(), ports))
    news = turned or _differs_since(record) != _differs_since(after)
    return news, Transition(after, events, notifications, then)


def _differs_since(record: ClusterRecord) -> datetime | None:
    in_sync = record.condition(IN_SYNC)
    return in_sync.since if record.drift and in_sync else None


def _older_than(context: StepContext, existing: Json, found: Found | None) -> Fail | None:
    """Return the failure of a record that does not know what this app wrote to a cluster last."""
    if found is None:
        return outdated(context, existing)
    of_life = found.contest is not None and found.contest.kind is ContestKind.LIFE
    return older_than_azure(context, UNKNOWN_LIFE) if of_life else None


def _rebuild(record: ClusterRecord, older: Fail, now: datetime, ports: Ports) -> Transition:
    """Return that a record is older than Azure; the plan that was requested brings it up to date."""
    after = apply_outcome(record, older, now=now, jitter=0)
    return Transition(after, [*events_between(record, after, older)], notifications_of(record, after, ports))


def _is_news(found: Found | None, record: ClusterRecord, now: datetime) -> bool:
    """Return whether a record does not say what was found, who did it, or that an exemption has it so."""
    if (found.error.kind if found else "") != finding_of_sweep(record.finding):
        return True
    return found is not None and _completes(found, record, now)


def _completes(found: Found, record: ClusterRecord, now: datetime) -> bool:
    """Return whether something else is known now of a finding that a record has already."""
    loss = loss_of(record, found.error, now)
    return record.loss is not None and loss is not None and loss != record.loss


def _turned(record: ClusterRecord, found: Found | None, now: datetime) -> tuple[ClusterRecord, list[Event]]:
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
        after = replace(after, has_rival=after.has_rival or rival)
    else:
        step = replace(job.step, failure=earlier)
        after = apply_finding(replace(after, job=replace(job, step=step, earlier=None)), None, now)
        after = replace(after, has_rival=False)
    log.warning("%s: %s", record.name, found.error if found else "as it was before")
    return after, list(events_between(record, after, outcome))


def _error_of(failure: Failure) -> ReconcileError:
    kind = next((each for each in classes() if each.__name__ == failure.kind), Unexpected)
    return kind(failure.message, code=failure.code, request_id=failure.request_id)


def _in_suspension(record: ClusterRecord, found: Found | None, now: datetime) -> ClusterRecord:
    """Return the record of a suspended cluster with what is so; its job goes on waiting.

    Its next sweep compares it, also if it is as it was before by then.
    """
    in_sync = record.condition(IN_SYNC)
    if found is None:
        after = apply_finding(record, None, now)
        return _with_new_sequence(after, now) if found_of(record) else after
    if in_sync is None:
        return record
    if in_sync.reason == found.error.kind and not _completes(found, record, now):
        return record
    after = apply_finding(record, found.error, now)
    after = replace(after, verified=after.verified and replace(after.verified, digest=""))
    return _with_new_sequence(after, now)


def _with_new_sequence(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record at another moment of its job, so that what is announced of it is another fact."""
    return replace(record, job=replace(record.job, sequence=record.job.sequence + 1), updated=now)


def _is_left(record: ClusterRecord, existing: Json) -> bool:
    """Return whether a cluster is left to the next sweep: Azure works on it, or its manifest is refused."""
    return bool(busy(existing["properties"]) or record.desired.problem)


def decided_of(
    record: ClusterRecord, existing: Json, owner: Owner, now: datetime
) -> Sequence[Decided] | None:
    """Return what differs and what happens to it; None for a cluster that is left to the next sweep."""
    desired, before = record.desired, record.verified
    if _is_left(record, existing):
        return None
    differences = drift_of(desired, owner, existing, before.unmanaged if before else None)
    differences += record.windows
    often = exhausted(record.corrections, now)
    pools = {name: mine[0] for name, mine in serving(profiles_of(existing), owner).items()}
    decided = decide(differences, desired.spec.drift, existing, pools=pools, exhausted=often, now=now)
    if is_unfinished(record):
        failure = own_failure(record)
        when = f"after its job failed: {failure.kind}" if failure else "in a suspension"
        return only_reported(decided, when)
    # One that a check found unhealthy is left to a person: its job would apply Flux again, unasked.
    return uncorrected(decided, f"not corrected while {record.finding}") if record.finding else decided


def _with_flux(record: ClusterRecord, decided: Sequence[Decided] | None, now: datetime) -> Sequence[Decided]:
    """Return what happens to each difference, with what Roadstead applied of Flux where that is corrected.

    Nothing happens to a cluster that was not compared. A job writes the version of a cluster before anything
    else: nothing is applied while that is left alone.
    """
    if decided is None:
        return ()
    versions = [each for each in decided if is_version(each.path) and not each.difference.left_alone]
    left = any(each.action is not DriftAction.CORRECT for each in versions)
    if left or is_unfinished(record) or not applies_again(record, now):
        return decided
    return [*decided, CORRECTED]


def _corrects(written: Sequence[str]) -> str:
    fields = [path for path in written if path != FLUX]
    values = f"a job writes git's {', '.join(fields)}" if fields else ""
    flux = "a job applies again what Roadstead applied of Flux" if len(fields) < len(written) else ""
    return "; ".join(filter(None, (values, flux)))


def _compared(
    record: ClusterRecord, decided: Sequence[Decided] | None, existing: Json, owner: Owner, now: datetime
) -> ClusterRecord:
    if decided is None:
        return record
    before = record.verified
    unmanaged = before.unmanaged if before else unmanaged_names(record.desired, owner, existing)
    verified = Verified("" if decided else live_digest(existing), unmanaged)
    after = apply_comparison(record, decided, verified, now=now)
    if after.running is None:
        return after
    running = running_of(existing, owner, after.running.flux, after.running)
    facts = (
        None if after.facts is None else facts_of(record.desired, existing)
    )  # a job applies the first ones
    if facts != after.facts and after.job.sequence == record.job.sequence:
        after = _with_new_sequence(after, now)
    return replace(after, running=running, facts=facts)


def _attributed(
    compared: ClusterRecord,
    before: ClusterRecord,
    pools: Mapping[str, Sequence[str]],
    now: datetime,
    activity: ActivityLog,
) -> ClusterRecord:
    """Return the record with who changed what has differed for some hours at most, as the log has it."""
    since = activity.asked_since(before.desired.id.subscription, now)
    drift = attributed(compared.drift, since, lambda each: activity.change(before, each, pools, now))
    return compared if drift == compared.drift else replace(compared, drift=drift)


def _started_again(record: ClusterRecord, existing: Json, owner: Owner, now: datetime) -> ClusterRecord:
    """Return the record of a cluster that is stopped, with the job that the policy may ask for.

    The job starts the cluster, and leaves everything else that differs, and the counts of the pools: a
    stopped one does not show how many nodes it will have. It would have to write the version of a cluster
    before anything else, so one whose version differs is left to a person.
    """
    if not record.started_again or STOPPED in exhausted(record.corrections, now):
        return record
    others = decided_of(record, existing, owner, now)
    if others is None or any(is_version(each.path) and not each.difference.left_alone for each in others):
        return record
    counts = [f"nodePools[{pool.name}].count" for pool in record.desired.spec.node_pools]
    left = [Decided(Difference(path, None, None), DriftAction.REPORT) for path in counts]
    left += uncorrected(others, "not corrected while the cluster is stopped")
    return start_correction(record, [Decided(STOPPED_CLUSTER, DriftAction.CORRECT), *left], now=now)[0]


def _recreated(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record of a cluster that does not exist, with the job that the policy may ask for."""
    if not record.recreated or MISSING in exhausted(record.corrections, now):
        return record
    return start_correction(record, [Decided(MISSING_CLUSTER, DriftAction.CORRECT)], now=now)[0]
