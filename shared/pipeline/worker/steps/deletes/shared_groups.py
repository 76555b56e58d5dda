"""Resource groups that clusters of the fleet share: who lives in one, and who is about to delete it."""

from __future__ import annotations

from shared.jobs.failures.errors import Unreadable
from shared.jobs.listed import Listed
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import GroupMember, State


def others_in_group(context: StepContext) -> list[str]:
    """Return the other clusters that live, or are to live, in the same resource group.

    A cluster whose delete has reached the group does not count: otherwise, of two deletes that reach it at
    the same moment, each would leave the group to the other. One whose record cannot be read counts: nobody
    knows that it lives elsewhere.
    """
    past = (Step.DELETE_RESOURCE_GROUP, Step.FINALIZE)
    group = group_of(context.record)
    found = _clusters_in(group, context.ports.state)
    others = {
        other.name
        for other in found
        if group_of(other) == group and not (other.deleting and other.job.step.name in past)
    }
    return sorted((others | found.unreadable_names) - {context.record.name})


def _clusters_in(group: str, state: State) -> Listed[ClusterRecord]:
    """Return the records of the clusters that may be in a group, in order of their names.

    The members may be more than the records, because the planner saves a cluster as a member before it saves
    its first record. Before the first plan of new tables has ended, the whole fleet is read.
    """
    if not state.fleet().commit:
        return state.clusters()
    return state.clusters_named(sorted({member.cluster for member in state.group_members(group)}))


def group_of(record: ClusterRecord) -> str:
    """Return the key of the resource group in which a cluster lives, or is to live."""
    return record.desired.id.group.key


def cluster_that_deletes_group(context: StepContext) -> str:
    """Return the cluster of the fleet that may be deleting the resource group now, "" when none does.

    A delete saves its intent before it reads the other clusters, and a new cluster has its record before it
    reads the intents. So one of the two sees the other in any order of events.
    """
    state = context.ports.state
    for intent in state.group_delete_intents(group_of(context.record)):
        try:
            other = state.cluster(intent.cluster)
        except Unreadable:  # nobody knows that it is not at its group
            return intent.cluster
        if other is not None and member_of(other) == intent and _at_its_group(other):
            return other.name
    return ""


def _at_its_group(record: ClusterRecord) -> bool:
    return record.deleting and record.job.active and record.job.step.name is Step.DELETE_RESOURCE_GROUP


def member_of(record: ClusterRecord) -> GroupMember:
    """Return a cluster as a member of its group; a later cluster of the same name is another one."""
    return GroupMember(record.name, record.uid)
