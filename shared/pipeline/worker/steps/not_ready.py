"""A cluster that cannot be written to now: an operation runs or has failed, or somebody stopped it.

A stopped one waits for an operator, is started where its policy says so, or is left alone by an exemption.
"""

from __future__ import annotations

from shared.fleet.aks.writes import is_stopped
from shared.fleet.json_tree import Json
from shared.jobs.failures.errors import ClusterStopped
from shared.jobs.findings.losses import described, exemption_of
from shared.jobs.job import AcceptedWrite, WriteKind
from shared.jobs.outcomes import Outcome, Wait
from shared.pipeline.worker.steps.azure_state import FAILED_STATES, OBSERVE_SECONDS, busy, failure, state_of
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.repeated_write import next_attempt, wait_for
from shared.ports.azure import StartCluster

CREATION_POLLS = 6
"""Azure takes minutes to create a cluster (learn.microsoft.com/azure/aks/learn/quick-kubernetes-deploy-cli).
One read soon after the write finds what fails at once; the next one comes after so many usual intervals."""
START = "Start the cluster with `az aks start`, or remove its folder, which deletes it."


def not_ready(context: StepContext, existing: Json) -> Outcome | None:
    """Return what prevents a write to the cluster now, None when nothing does."""
    properties = existing["properties"]
    if is_stopped(existing):
        return stopped(context, existing)
    operation = busy(properties)
    if operation:
        return Wait(_until_next_read(context, existing), operation)
    if state_of(existing) in FAILED_STATES and context.job.step.last_write:
        return _cluster_failure(context, properties)
    return None


def stopped(context: StepContext, existing: Json) -> Wait:
    """Return the wait of a stopped cluster, which ``existing`` shows as it was read a moment ago.

    Azure allows nothing but a start. Only a cluster that is certainly ours is started, and only twice in a
    step: what stops it again then is not this job's to settle.
    """
    operation = busy(existing["properties"])
    if operation:
        return Wait(context.poll_seconds, operation)
    exemption = exemption_of(context.record, ClusterStopped, context.ports.clock())
    if exemption is not None:
        reason = f"the cluster is stopped; {described(exemption)}"
        return Wait(OBSERVE_SECONDS, reason, open_ended=True, suspended=True)
    ours = context.owner.owns(existing) and not context.owner.rivals(existing)
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


def _until_next_read(context: StepContext, existing: Json) -> float:
    seconds = context.poll_seconds
    if state_of(existing) != "Creating":
        return seconds
    age = (context.ports.clock() - context.job.step.last_progress).total_seconds()
    return max(seconds, CREATION_POLLS * seconds - age)


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
