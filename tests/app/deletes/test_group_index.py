"""The clusters of a resource group are found through an index, however large the fleet is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import FleetRecord, GroupMember, Ports
from tests.support import fleet_files
from tests.support.one_cluster import SUBSCRIPTION
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import Around, around


class Counted(MemoryCloud):
    """A cloud that notes the name of each record that the deleter reads."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def deliver(self, queue: str, lock: SessionLock, ports: Ports) -> None:
        state = self.state

        def clusters() -> Sequence[ClusterRecord]:
            self.read += [record.name for record in state.clusters()]
            return state.clusters()

        def cluster(name: str) -> ClusterRecord | None:
            self.read.append(name)
            return state.cluster(name)

        around: Any = Around(state, clusters=clusters, cluster=cluster)
        counted = replace(ports, state=around)
        super().deliver(queue, lock, counted if queue == "deletes" else ports)


def reads_of_deletes(clusters: int, removed: int) -> int:
    """Return how many records the deleter reads for so many deletes in a fleet of so many clusters."""
    names, cloud = [f"c{number:02}" for number in range(clusters)], Counted()
    push(cloud, fleet_files.fleet(*names))
    cloud.run()
    push(cloud, fleet_files.fleet(*names[removed:], budget=clusters))
    cloud.run()
    assert phases(cloud) == dict.fromkeys(names[removed:], Phase.READY)
    return len(cloud.read)


@pytest.mark.lives
def test_a_delete_reads_as_many_records_in_a_large_fleet_as_in_a_small_one() -> None:
    assert 0 < reads_of_deletes(3, 2) == reads_of_deletes(25, 2)


def test_every_cluster_is_a_member_of_its_group_from_before_its_first_record_until_it_is_deleted() -> None:
    cloud = MemoryCloud()
    save, early = cloud.state.save, list[Sequence[GroupMember]]()

    def saved(record: ClusterRecord) -> ClusterRecord:
        if not record.etag:
            early.append(cloud.state.group_members(f"{SUBSCRIPTION}|rg-one"))
        return save(record)

    around(cloud, "state", save=saved)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    (record,) = cloud.state.clusters()
    assert early == [[GroupMember("one", record.uid)]]
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert cloud.state.group_members(f"{SUBSCRIPTION}|rg-one") == []


@pytest.mark.parametrize("planned", [False, True])
def test_the_first_plan_of_a_new_table_puts_the_whole_fleet_into_the_index(
    planned: bool,
) -> None:
    cloud, group = MemoryCloud(), f"{SUBSCRIPTION}|rg-shared"
    push(cloud, fleet_files.in_one_group("one", "two"))
    cloud.run()
    for member in cloud.state.group_members(group):
        cloud.state.remove_group_member(group, member)
    if not planned:
        cloud.state.save_fleet(FleetRecord(etag=cloud.state.fleet().etag))
    cloud.repository.commit({"README.md": b"a note"})
    cloud.run(until=lambda: cloud.state.fleet().commit == cloud.repository.head("main"))
    members = cloud.state.group_members(group)
    assert [member.cluster for member in members] == ([] if planned else ["one", "two"])
