"""The clusters of a resource group are found through an index, however large the fleet is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.jobs.errors import Throttled
from shared.jobs.record import ClusterRecord, Phase
from shared.ports import GroupMember, Ports
from shared.ports.azure import PutCluster, Written
from tests.support import fleet_files
from tests.support.one_cluster import SUBSCRIPTION
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import Around, around, on_azure


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

        counted = replace(ports, state=Around(state, clusters=clusters, cluster=cluster))
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


def without_index(cloud: MemoryCloud) -> None:
    """Let the planner of the version before plan from now on: it saves no members, and knows of no index."""
    save = cloud.state.save_fleet
    unknown = partial(replace, groups_indexed=False)
    around(cloud, "state", add_group_members=lambda _: None, save_fleet=lambda fleet: save(unknown(fleet)))


def test_without_an_index_a_group_that_another_cluster_will_use_is_not_deleted() -> None:
    cloud = MemoryCloud()
    without_index(cloud)
    push(cloud, fleet_files.in_one_group("one"))
    cloud.run()
    azure, refusals = cloud.ports.azure, iter(range(20))

    def slow(write: PutCluster) -> Written:
        if write.target.name == "two" and next(refusals, None) is not None:
            raise Throttled("slow down", retry_after=5)
        return azure.call(write)

    on_azure(cloud, PutCluster, slow)
    two = fleet_files.cluster("two", count=2).replace(b"rg-two", b"rg-shared")  # no rename of the other one
    push(cloud, fleet_files.fleet() | {"clusters/two/cluster.yaml": two})
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}
    assert not any(kind == "delete-group" for kind, _ in accepted(cloud))


@pytest.mark.parametrize("indexed", [False, True])
def test_the_first_plan_with_an_index_has_the_clusters_of_the_whole_fleet_in_it(indexed: bool) -> None:
    cloud = MemoryCloud()
    without_index(cloud)
    push(cloud, fleet_files.in_one_group("one", "two"))
    cloud.run()
    cloud.with_ports(lambda ports: replace(ports, state=cloud.state))
    cloud.state.save_fleet(replace(cloud.state.fleet(), groups_indexed=indexed))
    cloud.repository.commit({"README.md": b"a note"})
    cloud.run(until=lambda: cloud.state.fleet().commit == cloud.repository.head("main"))
    members = cloud.state.group_members(f"{SUBSCRIPTION}|rg-shared")
    assert [member.cluster for member in members] == ([] if indexed else ["one", "two"])
    assert cloud.state.fleet().groups_indexed
