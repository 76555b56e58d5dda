"""Changes that take several writes to Azure, and what somebody else does between them."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unavailable
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import ListMaintenance, PutCluster, PutMaintenance, PutPool, WriteResponse
from tests.support import fleet_files
from tests.support.one_cluster import ONE, WINDOW, cluster, files, pool, pools, ready, record
from tests.support.pipeline_runs import accepted, cloud_with, phases, push
from tests.support.replaced_ports import frozen_before, on_azure, overtake
from tests.support.sweeps import tag_by_hand

pytestmark = pytest.mark.lives

TWO_WINDOWS = WINDOW + WINDOW.partition("\n")[2].replace("AutoUpgrade", "NodeOSUpgrade")


def test_a_write_before_one_that_a_newer_commit_prevents_is_an_event() -> None:
    cloud = MemoryCloud(throttle=False)
    azure, ids = cloud.ports.azure, list[str]()

    def overtaken(write: PutMaintenance) -> WriteResponse:
        written = azure.call(write)
        ids.append(written.request_id)
        if len(ids) == 1:
            overtake(cloud, fleet_files.fleet() | files(f"{TWO_WINDOWS}  tags: {{a: b}}\n"))
        return written

    on_azure(cloud, PutMaintenance, overtaken)
    push(cloud, files(TWO_WINDOWS))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    (event,) = [event for event in cloud.state.events("one", 100) if ids[0] in event.request_ids]
    assert (event.generation, event.step, event.reason) == (1, "maintenance-windows", "Superseded")


def test_a_pool_that_somebody_scales_during_a_write_to_its_cluster_keeps_its_count() -> None:
    cloud = ready(pool())

    def scaled() -> None:
        azure = cloud.azure.interventions
        azure.scale(ONE, "apps", 5)

    frozen_before(cloud, PutCluster, scaled)
    push(cloud, files(pool() + "  tags: {a: b}\n"))
    cloud.run(until=lambda: cluster(cloud)["tags"].get("a") == "b")
    assert pools(cloud)["apps"]["count"] == 5


def test_what_aks_does_not_take_in_a_creation_follows_through_the_pools() -> None:
    cloud = MemoryCloud(throttle=False)
    writes, azure = list[tuple[str, list[str]]](), cloud.ports.azure

    def noted(write: PutCluster | PutPool) -> WriteResponse:
        pools = write.body["properties"].get("agentPoolProfiles")
        names = [profile["name"] for profile in pools] if pools is not None else [str(write.arguments[0])]
        writes.append((write.name, names))
        return azure.call(write)

    on_azure(cloud, PutCluster, noted)
    on_azure(cloud, PutPool, noted)
    push(cloud, files(pool(securityProfile="{sshAccess: Disabled}") + pool().replace("apps", "more")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert writes == [("put_cluster", ["system", "more"]), ("put_pool", ["apps"])]
    assert pools(cloud)["apps"]["securityProfile"] == {"sshAccess": "Disabled"}


def on_network(network: str) -> dict[str, bytes]:
    """Return a fleet of one cluster whose defaults have this network."""
    fleet = files()
    start, _, rest = fleet["fleet.yaml"].decode().partition("      networkPluginMode: overlay\n")
    end = rest[rest.index("      podCidr:") :]
    return fleet | {"fleet.yaml": (start.replace("networkPlugin: azure", network) + end).encode()}


KUBENET = "networkPlugin: kubenet"
CILIUM = "networkPlugin: azure\n      networkPluginMode: overlay\n      networkDataplane: cilium"


def test_overlay_and_cilium_in_one_commit_are_two_writes_each_awaited() -> None:
    cloud = cloud_with(on_network(KUBENET), throttle=False)
    assert phases(cloud) == {"one": Phase.READY}
    writes, azure = list[Any](), cloud.ports.azure

    def noted(write: PutCluster) -> WriteResponse:
        before, after = cluster(cloud)["properties"], write.body["properties"]["networkProfile"]
        writes.append((before["provisioningState"], after["networkPluginMode"], after["networkDataplane"]))
        return azure.call(write)

    on_azure(cloud, PutCluster, noted)
    push(cloud, on_network(CILIUM))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert writes == [("Succeeded", "overlay", "azure"), ("Succeeded", "overlay", "cilium")]
    network = cluster(cloud)["properties"]["networkProfile"]
    assert (network["networkPlugin"], network["networkDataplane"]) == ("azure", "cilium")


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("crash", [1, 2])
def test_a_crash_around_either_write_continues_with_the_stage_that_azure_shows(
    crash: int, before: bool
) -> None:
    cloud = cloud_with(on_network(KUBENET), throttle=False)
    writes, azure = list[str](), cloud.ports.azure

    def crashing(write: PutCluster) -> WriteResponse:
        writes.append(write.body["properties"]["networkProfile"]["networkDataplane"])
        dies = len(writes) == crash
        if dies and before:
            raise Crash
        written = azure.call(write)
        if dies:
            raise Crash
        return written

    on_azure(cloud, PutCluster, crashing)
    push(cloud, on_network(CILIUM))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    again = [writes[crash - 1]] if before else []
    assert writes == sorted(["azure", "cilium", *again])
    assert accepted(cloud)["update", "one"] == 2


def test_a_commit_gives_a_maintenance_window_another_kind_of_schedule() -> None:
    cloud = ready(WINDOW)
    daily = WINDOW.replace("weekly: {intervalWeeks: 1, dayOfWeek: Sunday}", "daily: {intervalDays: 2}")
    push(cloud, files(daily))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    found = cloud.ports.azure.call(ListMaintenance(ONE))["aksManagedAutoUpgradeSchedule"]
    assert found["properties"]["maintenanceWindow"]["schedule"] == {"daily": {"intervalDays": 2}}


def test_maintenance_windows_are_not_written_to_a_cluster_that_has_become_another_fleets() -> None:
    cloud = ready()
    azure = cloud.ports.azure

    def away(_: ListMaintenance) -> Json:
        raise Unavailable("no answer", retry_after=60)

    on_azure(cloud, ListMaintenance, away)
    push(cloud, files(WINDOW))
    cloud.run(seconds=30, until=lambda: False)
    assert record(cloud).job.step.name is Step.MAINTENANCE
    tag_by_hand(cloud, ONE, **{"roadstead-fleet": "another"})
    on_azure(cloud, ListMaintenance, azure.call)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert record(cloud).job.reason.startswith("NotOwned: ")
    assert accepted(cloud)["put-maintenance", "aksManagedAutoUpgradeSchedule"] == 0
