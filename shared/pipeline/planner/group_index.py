"""The index of resource groups: a delete finds the clusters of its group without reading the whole fleet."""

from __future__ import annotations

from collections.abc import Iterator

from shared.fleet.planning.plan import Item, Plan
from shared.pipeline.repository.commit_reader import PlanInputs
from shared.ports import FleetRecord, GroupMember, Ports


def index_groups(plan: Plan, inputs: PlanInputs, fleet: FleetRecord, ports: Ports) -> None:
    """Save the clusters of a plan as members of their groups, before the first record of a new one is saved.

    The first plan of new tables saves all of them, any other one those on which it acts.
    """
    items = (item for item in plan.items if item.acts or not fleet.commit)
    ports.state.add_group_members([member for item in items for member in _member(item, inputs)])


def _member(item: Item, inputs: PlanInputs) -> Iterator[tuple[str, GroupMember]]:
    """Yield the membership of an item's cluster; none of a cluster that does not exist and does not begin."""
    record = inputs.records.get(item.cluster)
    cluster = record.desired if record else inputs.desired.clusters.get(item.cluster)
    uid = record.uid if record else item.uid
    if cluster is not None and uid and not cluster.is_existing:
        yield cluster.id.group.key, GroupMember(item.cluster, uid)
