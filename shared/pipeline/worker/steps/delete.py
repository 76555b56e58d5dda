"""The steps of a delete. What no longer exists is success; nothing is created after the tombstone."""

from __future__ import annotations

from shared.jobs.errors import Dependency, NotOwned, Terminal, Unauthenticated, Unauthorized
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.jobs.recipes import CONDITIONS, Step
from shared.pipeline.worker.steps.azure_state import (
    BAD,
    etag_of,
    failure,
    foreign_delete,
    group_delete_intent,
    group_of,
    others_in_group,
    recheck,
    state_of,
)
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.repeated_write import asked_for, once_more, still_there
from shared.ports.azure import DeleteCluster, DeleteGroup, GetCluster, GetGroup, ListResources

LEFT = "left"
ASKED = "deleted"
"""The ``wrote`` of the request that asked Azure to delete the cluster, or the group."""


def tombstone(context: StepContext) -> Outcome:
    """Report the tombstone, which is the record itself: saved with this recipe, it lets no other one run."""
    return Done(f"commit {context.record.commit[:8]} removed the cluster")


def delete_cluster(context: StepContext) -> Outcome:
    """Delete the managed cluster, whatever state it is in, if it is ours."""
    record, owner, what = context.record, context.owner, f"the cluster {context.record.name}"
    if not record.begun:  # also where Azure does not even let us read
        return Done(f"{what} was never created")
    asked, existing = asked_for(context, ASKED), context.azure(GetCluster(context.cluster))
    if existing is None:
        return Done(f"{what} no longer exists") if _surely_absent(context) else recheck(what)
    state = state_of(existing)
    if not owner.owns(existing):
        going = state == "Deleting" and record.owned and not asked
        return foreign_delete(context) if going else _left(context, owner.told(existing), asked=asked)
    if state in BAD and asked:
        return failure(context, existing["properties"], f"the deletion of {what}")
    if state == "Deleting":
        return Wait(context.poll_seconds, "Azure is deleting the cluster", "" if asked else ASKED)
    wrote = once_more(context, ASKED)
    if not wrote:
        return still_there(what)
    written = context.azure(DeleteCluster(context.cluster, etag=etag_of(existing)))
    return Wait(context.poll_seconds, "Azure is deleting the cluster", wrote, written.request_id)


def _surely_absent(context: StepContext) -> bool:
    """Tell whether what Azure does not show does not exist: it was asked for the delete, or read twice."""
    return asked_for(context, ASKED) or context.job.looked


def _left(context: StepContext, tags: str, *, asked: bool) -> Outcome:
    """Leave a cluster without our tags: somebody else's, or ours after somebody took the tags off."""
    name = context.record.name
    if not context.record.owned:
        return Done(f"{LEFT} the cluster {name}: it was never this fleet's")
    if asked:
        return Done(f"{LEFT} the cluster {name}: ours is deleted, and somebody else has created this one")
    remedy = "put the tags back, or delete it by hand, then replay"
    return Fail(NotOwned(f"the cluster {name} is not deleted: {tags}; {remedy}"))


def delete_resource_group(context: StepContext) -> Outcome:
    """Delete the resource group if this fleet created it, it is empty, and no other cluster needs it."""
    record, group = context.record, context.cluster.group
    what = f"the resource group {group.name}"
    try:
        existing = context.azure(GetGroup(group))
    except (Terminal, Unauthorized, Unauthenticated, Dependency) as error:
        if record.begun:
            raise
        # Azure may never have let us read the group; then we have created nothing in it either.
        return Done(f"{LEFT} {what}: {error.kind}: {error}")
    if existing is None:
        return Done() if _surely_absent(context) else recheck(what)
    if not context.owner.made_group(existing):
        return Done(f"{LEFT} {what}: this fleet did not create it")
    if state_of(existing) == "Deleting":
        wrote = "" if asked_for(context, ASKED) else ASKED
        return Wait(context.poll_seconds, f"Azure is deleting {what}", wrote)
    context.ports.state.add_group_delete_intent(group_of(record), group_delete_intent(record))
    others = others_in_group(context)
    if others:
        return Done(f"{LEFT} {what}: {', '.join(others[:5])} belong in it")
    inside = context.azure(ListResources(group))  # last: the lease guard checks its age
    if inside:
        names = ", ".join(resource.rsplit("/", 1)[-1] for resource in inside[:5])
        return Done(f"{LEFT} {what}: it still holds {names}")
    wrote = once_more(context, ASKED)
    if not wrote:
        return still_there(what)
    written = context.azure(DeleteGroup(group))
    return Wait(context.poll_seconds, f"Azure is deleting {what}", wrote, written.request_id)


def forget(context: StepContext) -> Outcome:
    """Let the engine remove the record, and report what stays in Azure; the events stay too."""
    record = context.record
    context.ports.state.remove_group_delete_intent(group_of(record), group_delete_intent(record))
    ends = (record.condition(CONDITIONS[step]) for step in (Step.DELETE_CLUSTER, Step.DELETE_RESOURCE_GROUP))
    left = [condition.message for condition in ends if condition and condition.message.startswith(LEFT)]
    return Done("; ".join(["deleted", *left]))
