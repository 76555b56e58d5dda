"""Taking a cluster away. What is gone already is success at every step; nothing is created after it began."""

from __future__ import annotations

from shared.jobs.errors import Dependency, NotOwned, Terminal, Unauthenticated, Unauthorized
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.jobs.recipes import CONDITIONS, Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.azure_state import (
    BAD,
    etag_of,
    failure,
    group_delete_intent,
    group_of,
    look_again,
    others_go,
    others_in_group,
    owner_of,
    poll,
    state_of,
)
from shared.pipeline.worker.steps.repeated_write import asked_for, once_more, still_there
from shared.ports import Ports

LEFT = "left"
ASKED = "deleted"
"""What the job notes of the write that asked Azure to delete the cluster, or the group."""


def tombstone(record: ClusterRecord, ports: Ports) -> Outcome:
    """The row itself is the tombstone: saved with this recipe, it lets no other step run again."""
    return Done(f"commit {record.commit[:8]} removed the cluster")


def delete_cluster(record: ClusterRecord, ports: Ports) -> Outcome:
    """Delete the managed cluster, whatever state it is in, if it is ours."""
    if not record.begun:  # also where Azure would not even let us look
        return Done(f"the cluster {record.name} was never created")
    cluster, asked, what = record.desired.id, asked_for(ASKED, record), f"the cluster {record.name}"
    existing = ports.aks.get(cluster)
    if existing is None:
        return Done(f"{what} is gone") if _sure(record) else look_again(what)
    owner = owner_of(record, ports)
    if not owner.owns(existing):
        gone = state_of(existing) == "Deleting" and record.owned and not asked
        return (
            others_go(record, ports)
            if gone
            else _not_deleted(owner.describe_tags(existing), record, asked=asked)
        )
    state = state_of(existing)
    if state in BAD and asked:
        return failure(existing["properties"], f"the deletion of the cluster {record.name}", record)
    if state == "Deleting":
        return Wait(poll(ports), "Azure is deleting the cluster", "" if asked else ASKED)
    wrote = once_more(ASKED, record)
    if not wrote:
        return still_there(what)
    request = ports.aks.delete(cluster, etag=etag_of(existing))
    return Wait(poll(ports), "Azure is deleting the cluster", wrote, request)


def _sure(record: ClusterRecord) -> bool:
    """Tell whether what is not shown is gone: Azure was asked to delete it, or did not show it before."""
    return asked_for(ASKED, record) or record.job.looked


def _not_deleted(told: str, record: ClusterRecord, *, asked: bool) -> Outcome:
    """Leave a cluster without our tags: somebody else's, or ours after somebody took the tags off."""
    if not record.owned:
        return Done(f"{LEFT} the cluster {record.name}: it was never this fleet's")
    if asked:
        return Done(f"{LEFT} the cluster {record.name}: ours is gone, and somebody else has made this one")
    way_out = "put the tags back, or delete it by hand, then replay"
    return Fail(NotOwned(f"the cluster {record.name} is not deleted: {told}; {way_out}"))


def delete_resource_group(record: ClusterRecord, ports: Ports) -> Outcome:
    """Delete the resource group if this fleet made it, nothing is in it, and no other cluster needs it."""
    place = record.desired.id  # not the spec: it may be one that the rules of today refuse
    name = place.resource_group
    try:
        group = ports.groups.get(place.subscription, name)
    except (Terminal, Unauthorized, Unauthenticated, Dependency) as error:
        if record.begun:
            raise
        # Azure may never have let us look there; then we have made nothing there either.
        return Done(f"{LEFT} the resource group {name}: {error.kind}: {error}")
    if group is None:
        return Done() if _sure(record) else look_again(f"the resource group {name}")
    if not owner_of(record, ports).made_group(group):
        return Done(f"{LEFT} the resource group {name}: this fleet did not make it")
    if state_of(group) == "Deleting":
        wrote = "" if asked_for(ASKED, record) else ASKED
        return Wait(poll(ports), f"Azure is deleting the resource group {name}", wrote)
    ports.state.add_group_delete_intent(group_of(record), group_delete_intent(record))
    others = others_in_group(record, ports)
    if others:
        return Done(f"{LEFT} the resource group {name}: {', '.join(others[:5])} belong in it")
    inside = ports.groups.resources(place.subscription, name)  # last, see the fence
    if inside:
        names = ", ".join(resource.rsplit("/", 1)[-1] for resource in inside[:5])
        return Done(f"{LEFT} the resource group {name}: it still holds {names}")
    wrote = once_more(ASKED, record)
    if not wrote:
        return still_there(f"the resource group {name}")
    request = ports.groups.delete(place.subscription, name)
    return Wait(poll(ports), f"Azure is deleting the resource group {name}", wrote, request)


def forget(record: ClusterRecord, ports: Ports) -> Outcome:
    """Let the engine remove the row, and say what stays behind; the events stay too."""
    ports.state.remove_group_delete_intent(group_of(record), group_delete_intent(record))
    told = (record.condition(CONDITIONS[step]) for step in (Step.DELETE_CLUSTER, Step.DELETE_RESOURCE_GROUP))
    left = [condition.message for condition in told if condition and condition.message.startswith(LEFT)]
    return Done("; ".join(["deleted", *left]))
