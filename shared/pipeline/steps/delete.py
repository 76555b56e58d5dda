"""Taking a cluster away. What is gone already is success at every step; nothing is created after it began."""

from __future__ import annotations

from shared.jobs.errors import Dependency, NotOwned, Terminal, Unauthenticated, Unauthorized
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.jobs.recipes import CONDITIONS, Step
from shared.jobs.row import ClusterRow
from shared.pipeline.steps.kept import asked_for, once_more, still_there
from shared.pipeline.steps.looks import (
    BAD,
    etag_of,
    failure,
    group_of,
    leaver_of,
    look_again,
    others_go,
    others_in_group,
    owner_of,
    poll,
    state_of,
)
from shared.ports import Ports

LEFT = "left"
ASKED = "deleted"
"""What the job notes of the write that asked Azure to delete the cluster, or the group."""


def tombstone(row: ClusterRow, ports: Ports) -> Outcome:
    """The row itself is the tombstone: saved with this recipe, it lets no other step run again."""
    return Done(f"commit {row.commit[:8]} removed the cluster")


def delete_cluster(row: ClusterRow, ports: Ports) -> Outcome:
    """Delete the managed cluster, whatever state it is in, if it is ours."""
    if not row.begun:  # also where Azure would not even let us look
        return Done(f"the cluster {row.name} was never created")
    cluster, asked, what = row.desired.id, asked_for(ASKED, row), f"the cluster {row.name}"
    existing = ports.aks.get(cluster)
    if existing is None:
        return Done(f"{what} is gone") if _sure(row) else look_again(what)
    owner = owner_of(row, ports)
    if not owner.owns(existing):
        gone = state_of(existing) == "Deleting" and row.owned and not asked
        return others_go(row, ports) if gone else _not_deleted(owner.told(existing), row, asked=asked)
    state = state_of(existing)
    if state in BAD and asked:
        return failure(existing["properties"], f"the deletion of the cluster {row.name}", row)
    if state == "Deleting":
        return Wait(poll(ports), "Azure is deleting the cluster", "" if asked else ASKED)
    wrote = once_more(ASKED, row)
    if not wrote:
        return still_there(what)
    request = ports.aks.delete(cluster, etag=etag_of(existing))
    return Wait(poll(ports), "Azure is deleting the cluster", wrote, request)


def _sure(row: ClusterRow) -> bool:
    """Tell whether what is not shown is gone: Azure was asked to delete it, or did not show it before."""
    return asked_for(ASKED, row) or row.job.looked


def _not_deleted(told: str, row: ClusterRow, *, asked: bool) -> Outcome:
    """Leave a cluster without our tags: somebody else's, or ours after somebody took the tags off."""
    if not row.owned:
        return Done(f"{LEFT} the cluster {row.name}: it was never this fleet's")
    if asked:
        return Done(f"{LEFT} the cluster {row.name}: ours is gone, and somebody else has made this one")
    way_out = "put the tags back, or delete it by hand, then replay"
    return Fail(NotOwned(f"the cluster {row.name} is not deleted: {told}; {way_out}"))


def delete_resource_group(row: ClusterRow, ports: Ports) -> Outcome:
    """Delete the resource group if this fleet made it, nothing is in it, and no other cluster needs it."""
    place = row.desired.id  # not the spec: it may be one that the rules of today refuse
    name = place.resource_group
    try:
        group = ports.groups.get(place.subscription, name)
    except (Terminal, Unauthorized, Unauthenticated, Dependency) as error:
        if row.begun:
            raise
        # Azure may never have let us look there; then we have made nothing there either.
        return Done(f"{LEFT} the resource group {name}: {error.kind}: {error}")
    if group is None:
        return Done() if _sure(row) else look_again(f"the resource group {name}")
    if not owner_of(row, ports).made_group(group):
        return Done(f"{LEFT} the resource group {name}: this fleet did not make it")
    if state_of(group) == "Deleting":
        wrote = "" if asked_for(ASKED, row) else ASKED
        return Wait(poll(ports), f"Azure is deleting the resource group {name}", wrote)
    ports.state.note_leaving(group_of(row), leaver_of(row))
    others = others_in_group(row, ports)
    if others:
        return Done(f"{LEFT} the resource group {name}: {', '.join(others[:5])} belong in it")
    inside = ports.groups.resources(place.subscription, name)  # last, see the fence
    if inside:
        names = ", ".join(resource.rsplit("/", 1)[-1] for resource in inside[:5])
        return Done(f"{LEFT} the resource group {name}: it still holds {names}")
    wrote = once_more(ASKED, row)
    if not wrote:
        return still_there(f"the resource group {name}")
    request = ports.groups.delete(place.subscription, name)
    return Wait(poll(ports), f"Azure is deleting the resource group {name}", wrote, request)


def forget(row: ClusterRow, ports: Ports) -> Outcome:
    """Let the engine remove the row, and say what stays behind; the events stay too."""
    ports.state.forget_leaving(group_of(row), leaver_of(row))
    told = (row.condition(CONDITIONS[step]) for step in (Step.DELETE_CLUSTER, Step.DELETE_RESOURCE_GROUP))
    left = [condition.message for condition in told if condition and condition.message.startswith(LEFT)]
    return Done("; ".join(["deleted", *left]))
