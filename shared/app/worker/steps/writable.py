"""Whether a step may write now: no operation runs, nobody suspended it, it was not sent before.

A stopped one sleeps, waits for an operator, is started as its policy says, or is left alone by an exemption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from shared.app.access.azure_state import (
    FAILED_STATES,
    busy,
    etag_of,
    failure,
    recheck,
    reverted_fields,
    state_of,
    without_version,
)
from shared.app.access.contests import read_ours
from shared.app.access.context import StepContext
from shared.app.worker.steps.companions import differing_windows
from shared.azure.changes.writes import is_final, is_stopped, last_write_failed, pool_is_stopped
from shared.azure.differences import beyond_git, drift_of
from shared.azure.node_pools.body import power_write
from shared.azure.node_pools.replacement import sleepers
from shared.cluster.divergence.verification import known_beyond
from shared.cluster.failures.azure_failures import operation_failure as failed_operation
from shared.cluster.failures.errors import (
    Aborted,
    ClusterStopped,
    Interrupted,
    InvalidManifest,
    ReconcileError,
    Unexplained,
)
from shared.cluster.findings.conditions import described, exemption_of
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import OBSERVE_SECONDS, Fail, Outcome, Retry, Wait
from shared.cluster.recipes import Recipe
from shared.cluster.sleep import SleepDecision, keeps_change, time_text
from shared.frozen import dataclass, replace
from shared.json_tree import Json, digest_of
from shared.language.model.node_pool import NodePool
from shared.ports.azure import Conditional, GetCluster, PutPool, StartCluster, WriteResponse
from shared.ports.azure import Write as AzureWrite
from shared.sentences import some_of

# The last accepted write of a step, and whether the same write may be sent again.
#
# A creation or a deletion that Azure accepts without effect is sent twice, then the job fails.


def was_accepted(context: StepContext, write: AcceptedWrite) -> bool:
    """Return whether this was the last write of the step, sent once or twice."""
    return write.repeats(context.job.step.last_write)


def next_attempt(context: StepContext, write: AcceptedWrite) -> AcceptedWrite | None:
    """Return a creation or a deletion with the number of its next attempt, None after two attempts."""
    last = context.job.step.last_write
    if last is None or not write.repeats(last):
        return write
    return replace(write, attempt=2) if last.attempt == 1 else None


def wait_for(context: StepContext, reason: str, write: AcceptedWrite, written: WriteResponse) -> Wait:
    """Return the wait for an operation that Azure has just accepted."""
    return Wait(context.poll_seconds, reason, replace(write, request_id=written.request_id))


def still_exists(what: str) -> Fail:
    """Return the failure after two deletions that Azure accepted without effect."""
    problem = f"Azure accepted the deletion of {what} twice, and it still exists"
    return Fail(Aborted(f"{problem}; its activity log shows what prevents the deletion"))


def _vanished_again(what: str) -> Fail:
    problem = f"Azure accepted the creation of {what} twice, and it does not exist"
    return Fail(Aborted(f"{problem}; its activity log shows who removes it"))


def send(context: StepContext, what: str, accepted: AcceptedWrite, write: AzureWrite, reason: str) -> Outcome:
    """Send a creation or a deletion, twice at most; return the wait for it, or the failure.

    Azure checks no condition of some writes below a cluster: whose that is, is read a moment before.
    """
    attempt = next_attempt(context, accepted)
    if attempt is None:
        return still_exists(what) if accepted.kind is WriteKind.DELETE else _vanished_again(what)
    hindered = None if isinstance(write, Conditional) else hindrance(context)
    return hindered or wait_for(context, reason, attempt, context.azure(write))


def hindrance(context: StepContext) -> Outcome | None:
    """Return what prevents a write below the cluster now, None when nothing does."""
    live = read_ours(context)
    return not_ready(context, live) if isinstance(live, Mapping) else live


@dataclass(frozen=True)
class BelowCluster:
    """A resource below the cluster that Azure writes in an operation, as a step finds it.

    ``body`` is what identifies the write, ``live`` what Azure has, None for nothing, ``changed`` are the
    fields that differ, and ``error`` is Azure's of an operation that failed, with ``code`` and ``message``.
    """

    what: str
    target: str
    body: Json
    live: Json | None
    changed: Sequence[str]
    error: Json


def bring(
    context: StepContext, resource: BelowCluster, write: AzureWrite, doing: str, *, anyway: bool = False
) -> Outcome | None:
    """Write a resource that differs or failed, once; return the wait or the failure, None where it is right.

    ``anyway``: it is written once in any case, because nobody can see whether it differs.
    """
    live, changed = resource.live, resource.changed
    failed = live is not None and has_failed(live)
    put = AcceptedWrite(WriteKind.PUT, resource.target, digest_of(resource.body))
    accepted = was_accepted(context, put)
    if accepted and failed:
        return operation_failure(context, resource.what, resource.error)
    if accepted and live is not None:
        return reverted_fields(resource.what, changed) if changed else None
    if accepted and not context.job.step.rechecking:
        return recheck(context, resource.what)
    if live is not None and not (changed or failed or anyway):
        return None
    fields = f": {', '.join(changed)}" if changed else ""
    return send(context, resource.what, put, write, f"Azure is {doing} {resource.what}{fields}")


def is_at_work(live: Json) -> bool:
    """Return whether Azure is still carrying the last write out."""
    return not is_final(state_of(live))


def has_failed(live: Json) -> bool:
    """Return whether the last write did not succeed."""
    return state_of(live) in FAILED_STATES


def operation_failure(context: StepContext, what: str, error: Json) -> Outcome:
    """Return the failure of the last write below the cluster, with Azure's ``code`` and ``message``.

    Azure had taken the body, and its agents in the cluster could not carry it out. That may pass, as when
    nodes come late, so the write is repeated as often as any operation that Azure abandoned.
    """
    message = f"{what}: {error.get('message') or 'Azure gives no reason'}"
    code, last = str(error.get("code") or "ExtensionOperationFailed"), context.job.step.last_write
    request_id = last.request_id if last else ""
    found = failed_operation("Failed", {**error, "code": code}, message, request_id=request_id)
    if isinstance(found, InvalidManifest | Unexplained):
        found = Interrupted(message, code=code, request_id=request_id)
    return Retry(found) if found.rewrites else Fail(found)


SLOW_POLLS = 6
"""After so many usual intervals Azure is asked first whether it has stopped or started a cluster.

Azure takes minutes to create a cluster (learn.microsoft.com/azure/aks/learn/quick-kubernetes-deploy-cli).
One read soon after the write finds what fails at once; the next one comes as late."""
BEFORE_START = timedelta(minutes=15)
"""AKS asks to wait 15 to 30 minutes after a stop (learn.microsoft.com/azure/aks/start-stop-cluster)."""
START = "Start the cluster with `az aks start`, or remove its folder, which deletes it."


def not_ready(context: StepContext, live: Json) -> Outcome | None:
    """Return what prevents a write to the cluster now, None when nothing does."""
    properties = live["properties"]
    if is_stopped(live):
        return stopped(context, live)
    operation = busy(properties)
    if operation:
        return Wait(_until_next_read(context, live), operation)
    asleep = _pools_asleep(context, live)
    if asleep:
        return asleep
    if state_of(live) in FAILED_STATES and context.job.step.last_write:
        return _cluster_failure(context, properties)
    return None


def _pools_asleep(context: StepContext, live: Json) -> Outcome | None:
    """Return what becomes of the pools that sleep, or that somebody stopped; None where they run.

    A change waits for their start only where all of them sleep.
    """
    if not context.record.sleeps_in_pools:
        return None
    pools = sleepers(context.desired, context.owner, live)
    stopped = [found for found in pools if pool_is_stopped(found[1])]
    if not stopped:
        return None
    decision, whole = context.record.sleep_at(context.ports.clock()), len(stopped) == len(pools)
    if whole and decision is not None and _change_waits(context, decision):
        return sleeps(context, decision)
    return start_pool(context, *stopped[0])


def sleeps(context: StepContext, decision: SleepDecision) -> Wait:
    """Return the wait of a cluster that is stopped, as it is to be now."""
    now, sleep, until = context.ports.clock(), context.desired.spec.sleep, decision.until
    if sleep is None or until is None:
        raise ValueError("a cluster sleeps only where its manifest says so, and until some time")
    reason = f"sleeps until {time_text(sleep, until, now)}"
    reason += f", ordered by {decision.order.by}" if decision.order else ""
    reason += "" if context.job.recipe is Recipe.SLEEP else "; then its change is carried out"
    return Wait((until - now).total_seconds(), reason, open_ended=True, sleeping=True)


def _change_waits(context: StepContext, decision: SleepDecision) -> bool:
    now, sleep = context.ports.clock(), context.desired.spec.sleep
    if decision.awake or sleep is None or decision.until is None:
        return False
    return keeps_change(sleep, decision.until, now)


def start_again(context: StepContext, live: Json) -> Outcome:
    """Start a cluster that has slept, as often as it takes: Azure may lack the capacity."""
    early = (
        (context.record.azure.slept or datetime.min.replace(tzinfo=UTC))
        + BEFORE_START
        - context.ports.clock()
    )
    if early > timedelta():
        reason = "AKS asks to wait 15 minutes between a stop and a start"
        return Wait(early.total_seconds(), f"is started soon: {reason}", open_ended=True)
    if has_failed(live) and context.job.step.last_write:
        return _failed_start(context, live["properties"], "the start of the cluster")
    start = next_attempt(context, AcceptedWrite(WriteKind.START))
    if start is None:
        return Retry(Interrupted("Azure accepted the start of the cluster twice, and it is stopped"))
    written = context.azure(StartCluster(context.cluster))
    starting = wait_for(context, "Azure is starting the cluster", start, written)
    return replace(starting, seconds=SLOW_POLLS * starting.seconds)


def _failed_start(context: StepContext, properties: Json, what: str) -> Outcome:
    failed = failure(context, properties, what)
    error = failed.error if isinstance(failed, Retry | Fail) else None
    return failed if error is None or error.rewrites else Retry(Interrupted(str(error), code=error.code))


def start_pool(context: StepContext, pool: NodePool, profile: Json) -> Outcome:
    """Start a node pool that has slept, as often as it takes: Azure may lack the capacity."""
    name = str(profile["name"])
    what, started = f"the node pool {name}", AcceptedWrite(WriteKind.START, name)
    if last_write_failed(profile) and was_accepted(context, started):
        return _failed_start(context, profile, f"the start of {what}")
    start = next_attempt(context, started)
    if start is None:
        return Retry(Interrupted(f"Azure accepted the start of {what} twice, and it is stopped"))
    return switch_pool(context, pool, profile, start)


def switch_pool(context: StepContext, pool: NodePool, profile: Json, switch: AcceptedWrite) -> Outcome:
    """Stop or start a node pool, over the version that was read; return the wait for that."""
    name, starts = str(profile["name"]), switch.kind is WriteKind.START
    again = without_version(context, profile, f"the node pool {name}")
    if again:
        return again
    body = power_write(pool, profile, "Running" if starts else "Stopped").body
    written = context.azure(PutPool(context.cluster, name, body, etag=etag_of(profile)))
    doing = f"Azure is {'starting' if starts else 'stopping'} the node pool {name}"
    waiting = wait_for(context, doing, switch, written)
    return replace(waiting, seconds=SLOW_POLLS * waiting.seconds)


def stopped(context: StepContext, live: Json) -> Outcome:
    """Return what becomes of a stopped cluster, which ``live`` shows as it was read a moment ago.

    Azure allows nothing but a start. One that sleeps is started in its time, or by a change that wakes it.
    Only a cluster that is certainly ours is started. One that never sleeps is so only twice in a step: what
    stops it again then is not this job's to settle.
    """
    operation = busy(live["properties"])
    if operation:
        return Wait(context.poll_seconds, operation)
    ours = context.owner.owns(live) and not context.owner.rivals(live)
    decision = context.record.sleep_at(context.ports.clock())
    if decision is not None and _change_waits(context, decision):
        return sleeps(context, decision)
    if ours and (decision is not None or context.record.azure.slept is not None):
        return start_again(context, live)
    exemption = exemption_of(context.record, ClusterStopped, context.ports.clock())
    if exemption is not None:
        reason = f"the cluster is stopped; {described(exemption)}"
        return Wait(OBSERVE_SECONDS, reason, open_ended=True, suspended=True)
    start = next_attempt(context, AcceptedWrite(WriteKind.START))
    if context.record.may_start and ours and start is not None:
        written = context.azure(StartCluster(context.cluster))
        return wait_for(context, "Azure is starting the cluster, which somebody stopped", start, written)
    again = "; it was started twice, and is stopped" if context.record.may_start and ours else ""
    return Wait(
        context.poll_seconds * 4,
        f"the cluster is stopped; Azure allows nothing but a start{again}",
        action_required=START,
        open_ended=True,
    )


def _until_next_read(context: StepContext, live: Json) -> float:
    seconds = context.poll_seconds
    if state_of(live) != "Creating":
        return seconds
    age = (context.ports.clock() - context.job.step.last_progress).total_seconds()
    return max(seconds, SLOW_POLLS * seconds - age)


def _cluster_failure(context: StepContext, properties: Json) -> Outcome:
    """Return the failure of the cluster, or of the pool that caused it where only the pool has the reason."""
    for pool in properties.get("agentPoolProfiles") or ():
        if (
            pool.get("provisioningState") in FAILED_STATES
            and pool.get("status")
            and not properties.get("status")
        ):
            return failure(context, pool, f"the node pool {pool['name']}")
    return failure(context, properties, f"the cluster {context.record.name}")


# A suspended cluster: the step writes nothing until the suspension ends, and reports the differences.

RECHECK_SECONDS = 900.0
SHOWN = 5


def suspended(context: StepContext) -> Wait | None:
    """Return the wait of a suspended cluster, with what differs in Azure; None when it is not suspended."""
    if context.record.deleting:
        return None
    suspension = context.desired.spec.suspend
    if suspension is None:
        return None
    left = (datetime.fromisoformat(suspension.until) - context.ports.clock()).total_seconds()
    if left <= 0:
        return None
    reason = f"suspended by {suspension.owner} until {suspension.until}: {suspension.reason}"
    return Wait(
        min(left, RECHECK_SECONDS),
        f"{reason}; {_drift(context)}",
        action_required="Remove the suspension from the manifest to end it early.",
        open_ended=True,
        suspended=True,
    )


def _drift(context: StepContext) -> str:
    """Describe how the cluster in Azure differs from the manifest; a failed read is not retried."""
    desired, owner = context.desired, context.owner
    if desired.is_attached:
        return "checks go on"
    try:
        live = context.azure(GetCluster(context.cluster))
        windows = differing_windows(context) if live is not None else []
    except ReconcileError as error:
        return f"what differs could not be read: {error.kind}: {error}"
    if live is None:
        return "the cluster does not exist"
    known = known_beyond(context.record.observation.verified, beyond_git(desired, owner, live))
    found = drift_of(desired, owner, live, known)
    differences = [*map(str, found), *windows]
    differences += ["powerState (it is stopped)"] if is_stopped(live) else []
    return f"it differs in {some_of(differences, SHOWN)}" if differences else "nothing differs"
