"""Resource groups that clusters of the fleet share: who lives in one, and who is about to delete it."""

from __future__ import annotations

from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import GroupDeleteIntent


def others_in_group(context: StepContext) -> list[str]:
    """Return the other clusters that live, or are to live, in the same resource group.

    A cluster whose delete has reached the group does not count: otherwise, of two deletes that reach it at
    the same moment, each would leave the group to the other.
    """
    mine, past = group_of(context.record), (Step.DELETE_RESOURCE_GROUP, Step.FINALIZE)
    return [
        other.name
        for other in context.ports.state.clusters()
        if other.name != context.record.name
        and group_of(other) == mine
        and not (other.deleting and other.job.step.name in past)
    ]


def group_of(record: ClusterRecord) -> str:
    """Return the key of the resource group in which a cluster lives, or is to live."""
    place = record.desired.id
    return f"{place.subscription}|{place.resource_group}".lower()


def cluster_that_deletes_group(context: StepContext) -> str:
    """Return the cluster of the fleet that may be deleting the resource group now, "" when none does.

    A delete saves its intent before it reads the other clusters, and a new cluster has its record before it
    reads the intents. So one of the two sees the other in any order of events.
    """
    state = context.ports.state
    for intent in state.group_delete_intents(group_of(context.record)):
        other = state.cluster(intent.cluster)
        if other is not None and intent_of(other) == intent and _at_its_group(other):
            return other.name
    return ""


def _at_its_group(record: ClusterRecord) -> bool:
    return record.deleting and record.job.active and record.job.step.name is Step.DELETE_RESOURCE_GROUP


def intent_of(record: ClusterRecord) -> GroupDeleteIntent:
    """Return the intent of a cluster to delete its group; a later cluster of the same name has another."""
    return GroupDeleteIntent(record.name, record.uid)
