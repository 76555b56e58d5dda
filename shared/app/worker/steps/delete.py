"""The steps of a delete. A missing resource is success, and nothing is created after the tombstone."""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.access.azure_state import (
    FAILED_STATES,
    etag_of,
    failure,
    foreign_delete,
    read_once_more,
    recheck,
    resource_uid,
    state_of,
)
from shared.app.access.contests import contested, is_another_resource, unknown_life
from shared.app.access.context import StepContext
from shared.app.outbox import send
from shared.app.worker.steps.still_removed import group_of, member_of, not_removed, others_in_group
from shared.app.worker.steps.writable import next_attempt, still_exists, wait_for, was_accepted
from shared.cluster.failures.errors import (
    Dependency,
    NotOwned,
    Refused,
    Terminal,
    Unauthenticated,
    Unauthorized,
)
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import Done, Fail, Outcome, Wait
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.recipes import STEPS, Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import ConditionReason
from shared.frozen import replace
from shared.json_tree import Json
from shared.ports.azure import DeleteCluster, DeleteGroup, GetCluster, GetGroup, ListResources
from shared.resource_ids import ClusterId

DELETE = AcceptedWrite(WriteKind.DELETE)
"""The delete of the cluster, or of the group."""


def tombstone(context: StepContext) -> Outcome:
    """Report the tombstone, which is the record itself: a record with this recipe runs no other one."""
    return Done(f"commit {context.record.commit[:8]} removed the cluster")


def delete_cluster(context: StepContext) -> Outcome:
    """Delete the managed cluster, whatever state it is in, if it is ours."""
    record, owner, what = context.record, context.owner, f"the cluster {context.record.name}"
    if not record.azure.creation_requested:  # even where Azure does not let us read the cluster
        return Done(f"{what} was never created")
    live = context.azure(GetCluster(context.cluster))
    if live is None:
        return Done(f"{what} no longer exists") if context.job.step.rechecking else recheck(context, what)
    last = context.job.step.last_write
    state, write = state_of(live), replace(DELETE, digest=resource_uid(live))
    accepted = last is not None and not is_another_resource(context, live)
    if not owner.owns(live):
        if state == "Deleting" and record.azure.was_tagged and not accepted:
            return foreign_delete(context)
        return _not_deleted(context, owner.describe_tags(live), accepted=last is not None)
    if state in FAILED_STATES and accepted:
        return failure(context, live["properties"], f"the deletion of {what}")
    if state == "Deleting":
        return Wait(context.poll_seconds, "Azure is deleting the cluster", None if accepted else write)
    delete = next_attempt(context, write)
    if delete is None:
        return still_exists(what)
    unknown = unknown_life(context, live)
    started = record.azure.delete_accepted and not (unknown or record.recovering)
    restored = not_removed(context, live, started=started)
    unsure = not started and _may_have_started(context, accepted=accepted)
    if restored and unsure and not context.job.step.rechecking:
        unseen = f"Azure may not show yet that it deletes {what}; reading once more"
        return read_once_more(context, unseen)
    held = restored or _of_others(context, live) or unknown
    if held:
        return held
    written = context.azure(DeleteCluster(context.cluster, etag=etag_of(live)))
    return wait_for(context, "Azure is deleting the cluster", delete, written)


def _may_have_started(context: StepContext, *, accepted: bool) -> bool:
    """Return whether Azure may have received the delete: it accepted it, or no outcome says what happened."""
    step = context.job.step
    return accepted or step.failure is not None or step.abandoned_leases > 0


def _of_others(context: StepContext, live: Json) -> Outcome | None:
    """Leave a cluster that another installation manages; one of ours, or that was, waits for a person."""
    ours = context.record.azure.was_tagged or context.owner.is_by_us(live)
    if ours or not context.owner.rivals(live):
        return contested(context, live)
    return _retained(f"the cluster {context.record.name}", "another installation of this fleet manages it")


def _not_deleted(context: StepContext, tags: str, *, accepted: bool) -> Outcome:
    """Leave a cluster without our tags: a foreign one, or ours after somebody removed the tags."""
    name = context.record.name
    if not context.record.azure.was_tagged:
        return _retained(f"the cluster {name}", "it was never this fleet's")
    if accepted:
        return _retained(f"the cluster {name}", "ours is deleted, and somebody else has created this one")
    remedy = "put the tags back, or delete it by hand, then replay"
    return Fail(NotOwned(f"the cluster {name} is not deleted: {tags}; {remedy}"))


def _retained(what: str, reason: str) -> Done:
    return Done(f"left {what}: {reason}", retained=True)


def delete_resource_group(context: StepContext) -> Outcome:
    """Delete the resource group if this fleet created it, it is empty, and no other cluster needs it."""
    record, group = context.record, context.cluster.group
    what = f"the resource group {group.name}"
    if _is_retained(record, Step.DELETE_CLUSTER):
        return _retained(what, f"the cluster {record.name} stays in it")
    if record.ownership.has_rival:
        return _retained(what, f"another installation of this fleet manages the cluster {record.name} too")
    try:
        live = context.azure(GetGroup(group))
    except (Terminal, Refused, Unauthorized, Unauthenticated, Dependency) as error:
        if record.azure.group_requested or record.azure.creation_requested:
            raise
        # Azure may never have let us read the group; then we have created nothing in it either.
        return _retained(what, f"{error.kind}: {error}")
    if live is None:
        return Done() if context.job.step.rechecking else recheck(context, what)
    if not context.owner.created_group(live):
        return _retained(what, "this fleet did not create it")
    if state_of(live) == "Deleting":
        write = None if was_accepted(context, DELETE) else DELETE
        return Wait(context.poll_seconds, f"Azure is deleting {what}", write)
    others = others_in_group(context)
    if others:
        return _retained(what, f"{', '.join(others[:5])} belong in it")
    inside = context.azure(ListResources(group))  # the lease guard checks its age, and so that of later reads
    deleted = _deleted_clusters(context, inside)
    if inside and not deleted:
        return _retained(what, f"it still holds {_names(inside)}")
    if _others(context, deleted) and not context.job.step.rechecking:
        unsure = f"Azure lists in {what} what it does not show: {_names(deleted)}; reading once more"
        return read_once_more(context, unsure)
    delete = next_attempt(context, DELETE)
    if delete is None:
        return still_exists(what)
    written = context.azure(DeleteGroup(group))
    return wait_for(context, f"Azure is deleting {what}", delete, written)


def _deleted_clusters(context: StepContext, inside: Sequence[str]) -> Sequence[str]:
    """Return what is listed in a group, if all of it are clusters that no longer exist, otherwise nothing.

    Azure Resource Manager answers the list from a cache, which has a deleted resource for minutes
    (Azure/azure-rest-api-specs, issues 21221 and 38962). AKS itself says whether a cluster exists.
    """
    clusters = [cluster_id for cluster_id in map(ClusterId.of, inside) if cluster_id is not None]
    if len(clusters) < len(inside) or any(context.azure(GetCluster(cluster)) for cluster in clusters):
        return ()
    return inside


def _others(context: StepContext, deleted: Sequence[str]) -> bool:
    """Return whether there are others than the cluster of the job, which the step before has read twice."""
    own = context.cluster.resource.lower()
    return any(name.lower() != own for name in deleted)


def _names(resources: Sequence[str]) -> str:
    return ", ".join(resource.rsplit("/", 1)[-1] for resource in resources[:5])


def finalize(context: StepContext) -> Outcome:
    """Let the engine remove the record, and report what stays in Azure; the events stay as well."""
    record = context.record
    if record.desired.is_attached:
        released = record.condition(Step.RELEASE.condition)
        return Done("; ".join(["released", *([released.message] if released else [])]))
    context.ports.state.remove_group_member(group_of(record), member_of(record))
    deletes = (Step.DELETE_CLUSTER, Step.DELETE_RESOURCE_GROUP)
    retained = [record.condition(step.condition) for step in deletes if _is_retained(record, step)]
    return Done("; ".join(["deleted", *(condition.message for condition in retained if condition)]))


def _is_retained(record: ClusterRecord, step: Step) -> bool:
    condition = record.condition(step.condition)
    return condition is not None and condition.reason == ConditionReason.RETAINED


# An orphaned record: a new one that the newest plan does not know, saved by a superseded planner.
#
# A planner that was frozen can save its records late. A new version of an existing record makes that save
# fail; a record that does not exist yet has no version. So the first step of a new record checks that the
# newest plan knows its cluster.

RECHECK_SECONDS = 30.0


def orphaned(context: StepContext) -> Wait | None:
    """Return the wait of a record that has to be planned again, None for any other; one small read."""
    record, ports = context.record, context.ports
    begun = record.azure.creation_requested or record.azure.was_tagged
    if record.deleting or begun or record.job.step.name is not STEPS[record.job.recipe][0]:
        return None
    fleet = ports.state.fleet()
    if record.generation > 1:
        return None
    if record.commit in (fleet.commit, fleet.planning):
        return None
    if fleet.planning not in ("", fleet.commit):
        return Wait(RECHECK_SECONDS, f"commit {fleet.planning[:8]} is being planned")
    newest = ports.state.plan(fleet.commit)
    if newest is None or any(item.uid == record.uid for item in newest.plan.items):
        return None
    request = PlanRequest(again=True, reason="a cluster that the plan does not know")
    message_id = f"orphan:{record.name}:{record.uid}:{record.job.sequence}"
    send(request, ports, message_id=message_id)
    return Wait(RECHECK_SECONDS, f"the plan of {fleet.commit[:8]} does not know this cluster; planning again")
