"""Creations in one virtual network come one after the other, whatever commit, replay or worker wants them."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.cluster.record_parts import Phase
from shared.ports.azure import PutCluster, WriteResponse
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import on_azure

pytestmark = pytest.mark.lives

TURN = timedelta(seconds=14)
"""A step may run a second early."""
SUBNET = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg-net/providers\
/Microsoft.Network/virtualNetworks/{}/subnets/nodes"


def fleet(network: str, *names: str) -> dict[str, bytes]:
    """Return a fleet whose clusters are in subnets of a network."""
    files = fleet_files.fleet(*names)
    for name in names:
        path, subnet = f"clusters/{name}/cluster.yaml", SUBNET.format(network)
        files[path] = files[path].replace(b"count: 1", f"count: 1\n      vnetSubnetID: {subnet}".encode())
    return files


def creations(cloud: MemoryCloud) -> list[datetime]:
    """Return the list to which the time of each creation is added."""
    times, azure = list[datetime](), cloud.ports.azure

    def put(write: PutCluster) -> WriteResponse:
        written = azure.call(write)
        times.append(cloud.clock())
        return written

    on_azure(cloud, PutCluster, put)
    return times


def apart(times: list[datetime]) -> bool:
    return all(after - before >= TURN for before, after in pairwise(times))


@pytest.mark.parametrize("throttle", [True, False])
def test_the_clusters_of_a_commit_are_created_one_after_the_other(throttle: bool) -> None:
    cloud = MemoryCloud(throttle=throttle)
    times = creations(cloud)
    push(cloud, fleet("hub", "one", "two", "three", "four"))
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    assert len(times) == 4
    assert apart(times)
    assert times[-1] - times[0] < timedelta(seconds=90)


def test_the_clusters_of_two_commits_are_created_one_after_the_other() -> None:
    cloud = MemoryCloud(throttle=False)
    times = creations(cloud)
    push(cloud, fleet("hub", "one", "two"))
    cloud.run(until=lambda: len(times) == 1)
    push(cloud, fleet("hub", "one", "two", "three"))
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    assert len(times) == 3
    assert apart(times)


def test_the_clusters_that_operators_replay_are_created_one_after_the_other() -> None:
    cloud = MemoryCloud(throttle=False)
    for name in ("one", "two", "three"):
        cloud.azure.interventions.fail_next(name, "AvailabilityZoneNotSupported")
    push(cloud, fleet("hub", "one", "two", "three"))
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.FAILED}
    times = creations(cloud)
    for name in ("one", "two", "three"):
        assert replay(name, "ada", cloud.ports).status == 202
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    assert len(times) == 3
    assert apart(times)


def test_a_cluster_in_another_network_waits_for_nobody() -> None:
    cloud = MemoryCloud(throttle=False)
    times = creations(cloud)
    push(
        cloud,
        fleet("hub", "one")
        | {"clusters/two/cluster.yaml": fleet("spoke", "two")["clusters/two/cluster.yaml"]},
    )
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    assert times[1] - times[0] < TURN
