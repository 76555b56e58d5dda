"""What clusters that live on need of Azure, in both implementations; and what goes wrong there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from shared.azure.node_pools.body import power_write
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest, ReconcileError
from shared.language.model.node_pool import NodePool
from shared.ports.azure import (
    DeleteCluster,
    DeleteGroup,
    DeletePool,
    GetCluster,
    GetUpgradeProfile,
    ListMaintenance,
    ListResources,
    PutCluster,
    PutGroup,
    PutMaintenance,
    PutPool,
    StartCluster,
    StopCluster,
    UpgradeNodeImage,
    WriteResponse,
)
from shared.resource_ids import GroupId
from tests.support.arm_bodies import window
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure, body, pool

pytestmark = pytest.mark.lives


def test_every_write_returns_the_id_of_its_request(azure: Azure) -> None:
    group, location = CLUSTER.resource_group, {"location": "westeurope"}
    ids = [
        azure.call(PutGroup(GroupId(SUBSCRIPTION, group), location)).request_id,
        azure.call(PutCluster(CLUSTER, body(), etag=None)),
    ]
    azure.clock.advance(4)
    ids.append(azure.call(PutPool(CLUSTER, "web", pool(), etag=None)))
    azure.clock.advance(2)
    azure.world.interventions.set_node_image(CLUSTER, "web", NODE_IMAGES[0])
    ids.append(azure.call(UpgradeNodeImage(CLUSTER, "web")))
    azure.clock.advance(1)
    ids.append(azure.call(DeletePool(CLUSTER, "web", etag=None)))
    ids.append(azure.call(PutMaintenance(CLUSTER, "default", window())))
    ids.append(azure.call(DeleteCluster(CLUSTER, etag=None)))
    ids.append(azure.call(DeleteGroup(GroupId(SUBSCRIPTION, group))))
    assert all(ids)
    assert len(set(ids)) == len(ids)
    azure.clock.advance(4)
    assert azure.call(DeleteGroup(CLUSTER.group)) == WriteResponse()
    assert azure.call(DeleteCluster(CLUSTER, etag=None)) == WriteResponse()


def test_a_delete_over_an_old_version_is_a_conflict(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    cluster, web = azure.seen()["eTag"], azure.pool("web")["eTag"]
    azure.clock.advance(2)
    with pytest.raises(Conflict) as refused:
        azure.call(DeletePool(CLUSTER, "web", etag=web))
    assert refused.value.code == "PreconditionFailed"
    azure.call(DeletePool(CLUSTER, "web", etag=azure.pool("web")["eTag"]))
    azure.clock.advance(1)
    azure.call(PutCluster(CLUSTER, body(), etag=cluster))
    with pytest.raises(Conflict):
        azure.call(DeleteCluster(CLUSTER, etag=cluster))
    assert azure.state() == "Updating"
    azure.call(DeleteCluster(CLUSTER, etag=azure.seen()["eTag"]))
    assert azure.state() == "Deleting"


def test_the_upgrade_profile_shows_the_ways_from_what_runs_now(azure: Azure) -> None:
    with pytest.raises(Dependency):
        azure.call(GetUpgradeProfile(CLUSTER))
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.35"), etag=None))
    azure.clock.advance(4)

    def offered(profile: Any) -> list[str]:
        return [upgrade["kubernetesVersion"] for upgrade in profile.get("upgrades") or ()]

    def profiles() -> tuple[Any, Any]:
        properties = azure.call(GetUpgradeProfile(CLUSTER))["properties"]
        (only,) = properties["agentPoolProfiles"]
        return properties["controlPlaneProfile"], only

    control_plane, system = profiles()
    assert (control_plane["kubernetesVersion"], offered(control_plane)) == ("1.35.7", ["1.36.2", "1.36.3"])
    assert (system["name"], system["kubernetesVersion"], offered(system)) == ("system", "1.35.7", [])
    newer = {"location": "westeurope", "properties": {"kubernetesVersion": "1.36.2"}}
    azure.call(PutCluster(CLUSTER, newer, etag=azure.seen()["eTag"]))
    azure.clock.advance(2)
    control_plane, system = profiles()
    assert offered(control_plane) == ["1.36.3", "1.37.0", "1.37.1"]
    assert offered(system) == ["1.36.2"]


def test_a_pool_may_be_three_minors_behind_its_control_plane_and_no_more(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    long_term = body(kubernetesVersion="1.33", supportPlan="AKSLongTermSupport")
    azure.call(PutCluster(CLUSTER, long_term | {"sku": {"name": "Base", "tier": "Premium"}}, etag=None))
    azure.clock.advance(4)

    def upgrade(version: str) -> None:
        wanted = {"location": "westeurope", "properties": {"kubernetesVersion": version}}
        azure.call(PutCluster(CLUSTER, wanted, etag=azure.seen()["eTag"]))
        azure.clock.advance(2)

    for version in ("1.34", "1.35", "1.36"):
        upgrade(version)
    with pytest.raises(InvalidManifest, match="3 minor versions behind") as refused:
        upgrade("1.37")
    assert refused.value.code == "NodePoolMcVersionIncompatible"
    system = pool(mode="System", count=2, orchestratorVersion="1.34.10")
    azure.call(PutPool(CLUSTER, "system", system, etag=azure.pool("system")["eTag"]))
    azure.clock.advance(1)
    upgrade("1.37")
    assert azure.seen()["properties"]["currentKubernetesVersion"] == "1.37.1"
    with pytest.raises(InvalidManifest, match="behind"):
        azure.call(PutPool(CLUSTER, "old", pool(orchestratorVersion="1.33.13"), etag=None))


def test_a_stopped_cluster_is_started_with_its_pools(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.interventions.stop(CLUSTER)
    assert azure.seen()["properties"]["powerState"] == {"code": "Stopped"}
    assert azure.call(StartCluster(CLUSTER)).request_id
    assert azure.state() == "Starting"
    with pytest.raises(Conflict) as busy:
        azure.call(StartCluster(CLUSTER))
    assert busy.value.code == "OperationNotAllowed"
    azure.clock.advance(2)
    assert (azure.state(), azure.seen()["properties"]["powerState"]) == ("Succeeded", {"code": "Running"})
    with pytest.raises(Dependency):
        azure.call(StartCluster(replace(CLUSTER, name="nothing")))


def test_a_cluster_that_runs_is_stopped_with_its_pools(azure: Azure) -> None:
    azure.with_cluster()
    assert azure.call(StopCluster(CLUSTER)).request_id
    assert azure.state() == "Stopping"
    with pytest.raises(Conflict):
        azure.call(StopCluster(CLUSTER))
    azure.clock.advance(2)
    assert (azure.state(), azure.seen()["properties"]["powerState"]) == ("Succeeded", {"code": "Stopped"})


SPOT = {"scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Delete"}


@pytest.mark.parametrize(
    "kind",
    [
        {"count": 3},
        {"count": 3, **SPOT},
        {"count": 3, "enableAutoScaling": True, "minCount": 2, "maxCount": 5},
    ],
)
def test_a_user_pool_stops_and_starts_by_the_body_of_a_sleep_with_what_it_had(
    azure: Azure, kind: dict[str, Any]
) -> None:
    azure.with_cluster()
    azure.call(PutPool(CLUSTER, "apps", pool(**kind), etag=None))
    azure.clock.advance(2)
    before = azure.pool("apps")
    sizes = {name: value for name, value in kind.items() if name in ("count", "minCount", "maxCount")}
    given = sizes if "maxCount" not in sizes else {k: v for k, v in sizes.items() if k != "count"}
    wanted = NodePool.model_validate({"name": "apps", "vmSize": before["vmSize"], **given})
    for code, count in (("Stopped", 0), ("Running", 3)):
        live = azure.pool("apps")
        body = power_write(wanted, live, code).body
        azure.call(PutPool(CLUSTER, "apps", body, etag=live["eTag"]))
        azure.clock.advance(2)
        after = azure.pool("apps")
        assert (after["powerState"], after["provisioningState"], after["count"]) == (
            {"code": code},
            "Succeeded",
            count,
        )
    assert {**after, "eTag": ""} == {**before, "eTag": ""}
    with pytest.raises(ReconcileError, match="A System agent pool cannot be stopped"):
        azure.call(PutPool(CLUSTER, "system", {"properties": {"powerState": {"code": "Stopped"}}}, etag=None))


def test_a_cluster_with_node_auto_provisioning_is_not_stopped(azure: Azure) -> None:
    azure.with_cluster()
    with azure.world.engine.lock:
        azure.world.engine.cluster(CLUSTER).properties["nodeProvisioningProfile"] = {"mode": "Auto"}
    with pytest.raises(ReconcileError, match="Unable to perform 'stopping' operation") as refused:
        azure.call(StopCluster(CLUSTER))
    assert refused.value.code == "OperationNotAllowed"
    assert azure.state() == "Succeeded"


def test_a_pool_gets_the_newest_node_image_and_nothing_happens_when_it_has_it(azure: Azure) -> None:
    azure.with_cluster()
    assert azure.pool("system")["nodeImageVersion"] == NODE_IMAGES[-1]
    assert azure.call(UpgradeNodeImage(CLUSTER, "system")) == WriteResponse()
    assert azure.state() == "Succeeded"
    azure.world.interventions.set_node_image(CLUSTER, "system", NODE_IMAGES[0])
    azure.call(UpgradeNodeImage(CLUSTER, "system"))
    assert azure.pool("system")["provisioningState"] == "UpgradingNodeImageVersion"
    with pytest.raises(Conflict) as busy:
        azure.call(UpgradeNodeImage(CLUSTER, "system"))
    assert busy.value.code == "OperationNotAllowed"
    azure.clock.advance(1)
    system = azure.pool("system")
    assert (system["provisioningState"], system["nodeImageVersion"]) == ("Succeeded", NODE_IMAGES[-1])
    images = {node.labels["kubernetes.azure.com/node-image-version"] for node in azure.plane.nodes[CLUSTER]}
    assert images == {NODE_IMAGES[-1]}
    with pytest.raises(Dependency):
        azure.call(UpgradeNodeImage(CLUSTER, "nothing"))


def test_a_pool_that_changes_its_version_gets_the_newest_node_image(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.2"), etag=None))
    azure.clock.advance(4)
    azure.world.interventions.set_node_image(CLUSTER, "system", NODE_IMAGES[0])
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.3"), etag=azure.seen()["eTag"]))
    azure.clock.advance(2)
    assert azure.pool("system")["nodeImageVersion"] == NODE_IMAGES[0]
    newer = pool(mode="System", count=2, orchestratorVersion="1.36.3")
    azure.call(PutPool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"]))
    azure.clock.advance(1)
    assert azure.pool("system")["nodeImageVersion"] == NODE_IMAGES[-1]


def test_maintenance_configurations_come_and_go_with_their_cluster(azure: Azure) -> None:
    with pytest.raises(Dependency):
        azure.call(ListMaintenance(CLUSTER))
    azure.with_cluster()
    assert azure.call(ListMaintenance(CLUSTER)) == {}
    azure.call(PutMaintenance(CLUSTER, "aksManagedAutoUpgradeSchedule", window()))
    slots = {"properties": {"timeInWeek": [{"day": "Monday", "hourSlots": [1, 2]}]}}
    azure.call(PutMaintenance(CLUSTER, "default", slots))
    found = azure.call(ListMaintenance(CLUSTER))
    assert set(found) == {"aksManagedAutoUpgradeSchedule", "default"}
    stored = found["aksManagedAutoUpgradeSchedule"]["properties"]["maintenanceWindow"]
    assert stored["schedule"] == {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}}
    assert (stored["utcOffset"], stored["startDate"]) == ("+00:00", "2026-01-01")
    azure.call(PutMaintenance(CLUSTER, "aksManagedAutoUpgradeSchedule", window(durationHours=8)))
    changed = azure.call(ListMaintenance(CLUSTER))["aksManagedAutoUpgradeSchedule"]["properties"][
        "maintenanceWindow"
    ]
    assert changed["durationHours"] == 8
    azure.call(DeleteCluster(CLUSTER, etag=None))
    azure.clock.advance(3)
    azure.call(PutCluster(CLUSTER, body(), etag=None))
    assert azure.call(ListMaintenance(CLUSTER)) == {}


@pytest.mark.parametrize(
    ("name", "wanted", "about"),
    [
        ("weekends", window(), "are allowed configNames"),
        ("aksManagedNodeOSUpgradeSchedule", {"properties": {}}, "maintenanceWindow"),
        ("aksManagedNodeOSUpgradeSchedule", {"properties": {"timeInWeek": []}}, "timeInWeek"),
        ("aksManagedNodeOSUpgradeSchedule", window(durationHours=2), "durationHours"),
        ("aksManagedNodeOSUpgradeSchedule", window(startTime="25:00"), "startTime"),
        ("aksManagedNodeOSUpgradeSchedule", window(utcOffset="1"), "utcOffset"),
        ("aksManagedNodeOSUpgradeSchedule", window(schedule={}), "schedule"),
    ],
)
def test_a_maintenance_configuration_that_breaks_a_rule_is_refused(
    azure: Azure, name: str, wanted: dict[str, Any], about: str
) -> None:
    azure.with_cluster()
    with pytest.raises(InvalidManifest, match=about):
        azure.call(PutMaintenance(CLUSTER, name, wanted))
    assert azure.call(ListMaintenance(CLUSTER)) == {}


def test_a_create_that_fails_leaves_the_cluster_and_its_pools_behind(azure: Azure) -> None:
    azure.world.interventions.fail_next(CLUSTER.name, "AllocationFailed", "No capacity in the zone.")
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.call(PutCluster(CLUSTER, body(), etag=None))
    azure.clock.advance(4)
    assert (azure.state(), azure.pool("system")["provisioningState"]) == ("Failed", "Failed")
    assert azure.call(ListResources(CLUSTER.group)) == [CLUSTER.resource]
    azure.call(DeleteCluster(CLUSTER, etag=azure.seen()["eTag"]))
    azure.clock.advance(3)
    assert azure.call(GetCluster(CLUSTER)) is None


def test_the_list_of_a_group_has_a_deleted_cluster_for_a_while(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(DeleteCluster(CLUSTER, etag=azure.seen()["eTag"]))
    azure.clock.advance(3)
    assert azure.call(GetCluster(CLUSTER)) is None
    assert azure.call(ListResources(CLUSTER.group)) == [CLUSTER.resource]
    azure.clock.advance(30)
    assert azure.call(ListResources(CLUSTER.group)) == []


def test_an_operation_that_sticks_ends_only_when_it_is_aborted_or_all_is_deleted(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.interventions.stick_next(CLUSTER.name)
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(86400)
    assert azure.pool("web")["provisioningState"] == "Creating"
    with pytest.raises(Conflict):
        azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))
    azure.world.interventions.abort(CLUSTER)
    assert azure.pool("web")["provisioningState"] == "Canceled"
    azure.world.interventions.stick_next(CLUSTER.name)
    azure.call(PutPool(CLUSTER, "web", pool(), etag=azure.pool("web")["eTag"]))
    azure.call(DeleteCluster(CLUSTER, etag=None))
    azure.clock.advance(3)
    assert azure.call(GetCluster(CLUSTER)) is None


def test_an_operation_that_vanishes_was_accepted_and_leaves_nothing(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.world.interventions.vanish_next(CLUSTER.name)
    azure.call(PutCluster(CLUSTER, body(), etag=None))
    assert azure.state() == "Creating"
    azure.clock.advance(4)
    assert azure.call(GetCluster(CLUSTER)) is None
    azure.with_cluster()
    azure.world.interventions.vanish_next(CLUSTER.name)
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(2)
    assert [p["name"] for p in azure.seen()["properties"]["agentPoolProfiles"]] == ["system"]
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(2)
    azure.world.interventions.vanish_next(CLUSTER.name)
    azure.call(PutPool(CLUSTER, "system", pool(mode="System"), etag=azure.pool("system")["eTag"]))
    azure.clock.advance(2)
    assert azure.pool("system")["provisioningState"] == "Succeeded", "AKS lets the last System pool not go"


def test_an_upgrade_may_succeed_while_its_nodes_stay_behind(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.2"), etag=None))
    azure.clock.advance(4)
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.3"), etag=azure.seen()["eTag"]))
    azure.clock.advance(2)
    newer = pool(mode="System", count=2, orchestratorVersion="1.36.3")
    azure.world.interventions.lag_next(CLUSTER.name, "system")
    for kubelet in ("1.36.2", "1.36.3"):
        azure.call(PutPool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"]))
        azure.clock.advance(1)
        system = azure.pool("system")
        assert (system["provisioningState"], system["currentOrchestratorVersion"]) == ("Succeeded", "1.36.3")
        assert {node.version for node in azure.plane.nodes[CLUSTER]} == {kubelet}
