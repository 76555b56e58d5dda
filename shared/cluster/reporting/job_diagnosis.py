"""Why a cluster is in its state, by its record alone: what its job does or waits for, and what comes next."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.cluster.divergence.drift import NAMED, Drift
from shared.cluster.failures.advice import action_for
from shared.cluster.failures.errors import (
    ClusterContested,
    ClusterMissing,
    NotOwned,
    Throttled,
    classes,
    is_wait,
)
from shared.cluster.failures.remedies import NO_ACTION, suggested_action
from shared.cluster.failures.retry import Policies, policy_for
from shared.cluster.findings.conditions import exempt_text
from shared.cluster.findings.health import error_of, faults_of, unread_of
from shared.cluster.history import by_whom
from shared.cluster.job import Delay, Failure
from shared.cluster.recipes import STEPS, Step
from shared.cluster.record import ClusterRecord, of_health
from shared.cluster.record_parts import Condition, Phase
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes_versions import is_version

LATE = timedelta(seconds=60)
"""How long after its time a job's message counts as late."""
CHANGES = 3
"""So many changes of the activity log are named."""
NEXT_COMMIT = "the next commit that changes the cluster"
_ACTIVITY_LOG = "Azure's activity log of the resource group shows what delays the operation."
_FLUX = "`kubectl -n flux-system get pods,gitrepositories,kustomizations` shows what delays Flux."
_NODES = "`kubectl get nodes` and Azure's activity log of the resource group show what delays the nodes."
_PLANS = "`roadstead plans` and Azure's activity log of the resource group show what delays the step."
_SECRETS = (
    "`kubectl get namespaces` shows one that is being deleted; docs/how-to/bootstrap-secrets.md has more."
)
_SYSTEMS = (
    "`kubectl get namespaces,kustomizations --all-namespaces` shows what is being deleted, and its conditions"
    " and finalizers what keeps it."
)
_IDENTITIES = (
    "Azure's activity log of the identity and of the scope shows what delays the step;"
    " docs/how-to/identity-access.md has more."
)
_OF_POLICIES = (
    "Azure's activity log of the resource group shows what delays the step;"
    " docs/how-to/assign-policies.md has more."
)
_WHERE_TO_LOOK = {
    Step.IDENTITY_ACCESS: _IDENTITIES,
    Step.DELETE_IDENTITY_ACCESS: _IDENTITIES,
    Step.POLICIES: _OF_POLICIES,
    Step.DELETE_POLICIES: _OF_POLICIES,
    Step.BOOTSTRAP_SECRETS: _SECRETS,
    Step.RESOURCE_GROUP: _PLANS,
    Step.NODE_POOLS: _NODES,
    Step.FLUX_COMPONENTS: _FLUX,
    Step.FLUX_SYNC: _FLUX,
    Step.SYSTEMS: _SYSTEMS,
    Step.VERIFY: _FLUX,
}
"""Where an operator can look when a step is stalled; Azure's activity log for all others."""
_CHECK_AGAIN = "Find out why the cluster cannot be read; `roadstead refresh NAME` checks it again."
_DRIFT = "`roadstead drift NAME` shows both values."
_WRITTEN = "Put the live value into the manifest, or write git's value with `roadstead replay NAME`."
_APPROVE = (
    "Put the live value into the manifest, or let an Approver have git's value written with "
    "`roadstead approve --cluster NAME`."
)
_LEFT_ALONE = (
    "No job changes this: put the live value into the manifest, undo it in Azure, or accept what somebody "
    "added with `roadstead accept NAME`."
)
_NEWER = "A version is never lowered: put the one that runs into the manifest."
_TAGS = "Restore the tags that the message names, then run `roadstead refresh NAME`."
_TAGS_OF_JOB = "Restore the tags that the message names, then run `roadstead replay NAME`."


@dataclass(frozen=True)
class Diagnosis:
    """Sentences for an operator.

    ``activity`` is a predicate whose subject is the cluster. ``next_at`` is when Roadstead acts by itself,
    None when it does not. ``suggested_action`` is "" for a job that has succeeded.
    """

    activity: str
    since: datetime
    attempts: int
    failure: Failure | None
    next: str
    next_at: datetime | None
    suggested_action: str


def diagnose_job(record: ClusterRecord, now: datetime, retries: Policies) -> Diagnosis:
    """Return why a cluster is in its state, whatever the newest plan says of it."""
    if record.job.active:
        return _active(record, now, retries)
    if record.failed:
        return _failed(record)
    activity = f"is idle: generation {record.observed_generation} was verified Ready"
    unhealthy, unread = next(faults_of(record), None), unread_of(record)
    if unhealthy is not None:
        return _unhealthy(record, unhealthy, activity)
    if record.divergence.drift is not None:
        return _drifted(record, record.divergence.drift, activity)
    if unread is not None:
        activity = f"{activity}; whether it is healthy is not known: {unread.message}"
        action = with_name(_CHECK_AGAIN, record)
        return Diagnosis(activity, unread.since, 0, None, "the next check reads it again", None, action)
    return Diagnosis(activity, record.updated, 0, None, NEXT_COMMIT, None, "")


def _unhealthy(record: ClusterRecord, fault: Condition, activity: str) -> Diagnosis:
    """Explain a cluster that a check found unhealthy, and that still counts as Ready."""
    activity = f"{activity}; {fault.type} is False: {fault.message}"
    action = suggested_action(error_of(fault).kind, failed=True)
    following = "the next check reads it again; if that goes on, the cluster is no longer Ready"
    return Diagnosis(activity, fault.since, 0, None, following, None, with_name(action, record))


def _drifted(record: ClusterRecord, drift: Drift, activity: str) -> Diagnosis:
    """Explain a cluster that works and is not as git has it."""
    since = min(drifted_field.since for drifted_field in drift.fields)
    ended = _NEWER if all(is_version(drifted_field.path) for drifted_field in drift.fields) else _LEFT_ALONE
    alone = [drifted_field.left_alone for drifted_field in drift.fields]
    left_alone, others = all(alone), ", but for what no job changes" if any(alone) else ""
    written = f"; {NEXT_COMMIT}, or a replay, writes the values of git{others}"
    following = f"the next sweep compares it again{'' if left_alone else written}"
    action = f"{_DRIFT} {ended if left_alone else _APPROVE if drift.to_approve else _WRITTEN}"
    if drift.approval:
        by = by_whom(drift.approval.by, drift.approval.reason)
        following = f"the sweep compares it once more and starts the job that {by} approved"
    sources = " and ".join(
        dict.fromkeys(drifted_field.source for drifted_field in drift.fields[:NAMED] if drifted_field.source)
    )
    changes = list(
        dict.fromkeys(drifted_field.change for drifted_field in drift.fields if drifted_field.change)
    )[:CHANGES]
    differs = f"differs from git in {drift}" + (f", set in {sources}" if sources else "")
    activity = f"{activity}, and it {'; '.join(filter(None, (differs, *changes, drift.waits)))}"
    diagnosis = Diagnosis(activity, since, 0, None, following, None, with_name(action, record))
    return _until_it_may_start(diagnosis, record)


def _active(record: ClusterRecord, now: datetime, retries: Policies) -> Diagnosis:
    job, failure, where = record.job, record.job.step.failure, _where(record)
    run, at = job.next_run, job.due(now)
    if job.lease is not None and job.lease.until > now:
        following = "the result of the step; if its worker dies, another one runs it"
        activity, at = f"runs {where} now", job.lease.until
    elif run.delay is Delay.RATE_LIMIT and not run.action_required:
        activity, following = f"{run.reason}, in {where}", "runs the step"
    elif failure is not None:
        waits, tries = f"waits in {where}", f"retries {where} after {failure.kind}"
        activity = f"{waits if is_wait(failure.kind) else tries}: {failure.message}"
        following = f"attempt {failure.attempts + 1}{_limit(failure, retries)}"
    elif run.delay in (Delay.WAIT, Delay.RESTORED) or run.action_required:
        activity, following = f"waits in {where}: {run.reason}", "checks again"
    else:
        activity, following = f"is about to run {where}", "runs the step"
    if failure is not None and is_wait(failure.kind):
        failure = None
    late = at + LATE < now
    if late:
        following = "its message is late; the timer sends it again within minutes"
    return Diagnosis(
        activity,
        job.step.since,
        failure.attempts if failure else 0,
        failure,
        following,
        None if late else at,
        with_name(_action_while_active(record), record),
    )


def _action_while_active(record: ClusterRecord) -> str:
    failure, run = record.job.step.failure, record.job.next_run
    rate_limited = run.delay is Delay.RATE_LIMIT and not run.action_required
    stalled, step = record.phase is Phase.STALLED, record.job.step.name
    how = {"deleting": record.deleting, "stalled": stalled}
    if rate_limited or failure is None:
        action = suggested_action(Throttled.__name__ if rate_limited else "", failed=False, **how)
    else:
        action = action_for(
            failure.kind, failure.entry, failure.message, spec=_spec(record), failed=False, **how
        )
    if action in ("", NO_ACTION):
        action = run.action_required
    if stalled and not record.refused:
        late = f"This step takes more than its {step.deadline / 60:g} minutes."
        return f"{action or _WHERE_TO_LOOK.get(step, _ACTIVITY_LOG)} {late}"
    return action


def _failed(record: ClusterRecord) -> Diagnosis:
    failure = record.job.step.failure
    if failure is not None and record.finding:
        return _no_longer_ready(record, failure)
    commit = "the next commit, whatever it changes"
    if not record.retryable_failure:
        commit = "a commit that changes the cluster"
    differs = (
        f"; it differs from git in {record.divergence.drift}, as a sweep found"
        if record.divergence.drift
        else ""
    )
    return Diagnosis(
        f"failed in {_where(record)}: {record.job.reason}{differs}",
        failure.since if failure else record.updated,
        record.job.attempts,
        failure,
        f"nothing by itself; {commit}, or a replay starts the job again",
        None,
        with_name(_action_after_failure(record), record),
    )


def _no_longer_ready(record: ClusterRecord, failure: Failure) -> Diagnosis:
    """Explain what a sweep or a check found at an idle cluster."""
    activity = f"is not Ready any more: {failure.message}{_before(record)}"
    again = "check reads" if of_health(record.finding) else "sweep compares"
    missing = record.finding == ClusterMissing.__name__ and not record.may_create
    job = "a replay creates it again" if missing else f"{NEXT_COMMIT}, or a replay, starts a job"
    following = f"the next {again} it again; {job}"
    exempt = exempt_text(record)
    if exempt:
        activity = f"{activity}; {exempt}"
        return Diagnosis(activity, failure.since, 0, failure, following, None, "")
    diagnosis = Diagnosis(
        activity, failure.since, 0, failure, following, None, with_name(_action_after_failure(record), record)
    )
    return _until_it_may_start(diagnosis, record)


def _until_it_may_start(diagnosis: Diagnosis, record: ClusterRecord) -> Diagnosis:
    """Return a diagnosis with the freeze or the window that keeps the job from starting, if one does."""
    hold = record.divergence.held
    if hold is None:
        return diagnosis
    following = "a sweep compares it again then, and starts the job"
    return replace(diagnosis, activity=f"{diagnosis.activity}; {hold}", next=following, next_at=hold.until)


def _before(record: ClusterRecord) -> str:
    """Return the failure that the job had before a sweep found something else, "" for none."""
    earlier = record.job.earlier
    return (
        f"; before that, it failed in {_where(record)}: {earlier.kind}: {earlier.message}" if earlier else ""
    )


def _action_after_failure(record: ClusterRecord) -> str:
    failures = list(filter(None, (record.job.step.failure, record.job.earlier)))
    if not failures:
        return suggested_action("", failed=True, deleting=record.deleting)
    return " ".join(_after(failure, record) for failure in failures)


def _after(failure: Failure, record: ClusterRecord) -> str:
    """Return what to do after a failure; a cluster of ours without our tags can only get them back."""
    kind = failure.kind
    if kind == ClusterContested.__name__ and not record.contested:
        return _TAGS
    of_cluster = record.job.step.name not in (Step.BOOTSTRAP_SECRETS, Step.NODE_POOLS)
    if kind == NotOwned.__name__ and of_cluster and record.was_ready and not record.deleting:
        return _TAGS_OF_JOB
    how = {"failed": True, "deleting": record.deleting}
    return action_for(kind, failure.entry, failure.message, spec=_spec(record), **how)


def _spec(record: ClusterRecord) -> Json:
    """Return the spec of a cluster as it is stored."""
    spec: Json = record.desired.document()["spec"]
    return spec


def _where(record: ClusterRecord) -> str:
    """Return the step and its place, such as "the step cluster (2 of 7 of provision)"."""
    recipe, step = record.job.recipe, record.job.step.name
    return f"the step {step} ({STEPS[recipe].index(step) + 1} of {len(STEPS[recipe])} of {recipe})"


def _limit(failure: Failure, retries: Policies) -> str:
    kind = next((error_class for error_class in classes() if error_class.__name__ == failure.kind), None)
    limit = None if kind is None or kind.outside else policy_for(kind, retries).attempts
    return f" of {limit}" if limit is not None else ""


def with_name(action: str, record: ClusterRecord) -> str:
    """Return what an operator is to do, with the name of the cluster in its commands."""
    return action.replace("NAME", record.name)
