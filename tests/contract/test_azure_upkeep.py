"""What clusters that live on need of Azure, in both implementations; and what goes wrong there."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from shared.jobs.errors import Conflict, Dependency, InvalidManifest
from tests.contract.azures import CLUSTER, SUBSCRIPTION, Azure, body, pool


def test_every_write_returns_the_id_of_its_request(azure: Azure) -> None:
    group, location = CLUSTER.resource_group, {"location": "westeurope"}
    ids = [
        azure.groups.put(SUBSCRIPTION, group, location).request_id,
        azure.clusters.put(CLUSTER, body(), etag=None),
    ]
    azure.clock.advance(4)
    ids.append(azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(2)
    azure.world.set_node_image(CLUSTER, "web", NODE_IMAGES[0])
    ids.append(azure.clusters.upgrade_node_image(CLUSTER, "web"))
    azure.clock.advance(1)
    ids.append(azure.clusters.delete_pool(CLUSTER, "web", etag=None))
    ids.append(azure.clusters.put_maintenance(CLUSTER, "default", window()))
    ids.append(azure.clusters.delete(CLUSTER, etag=None))
    ids.append(azure.groups.delete(SUBSCRIPTION, group))
    assert all(ids)
    assert len(set(ids)) == len(ids)
    azure.clock.advance(4)
    assert azure.groups.delete(SUBSCRIPTION, group) == ""
    assert azure.clusters.delete(CLUSTER, etag=None) == ""


def test_a_delete_over_a_version_that_is_gone_is_a_conflict(azure: Azure) -> None:
    azure.with_cluster()
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    cluster, web = azure.seen()["eTag"], azure.pool("web")["eTag"]
    azure.clock.advance(2)
    with pytest.raises(Conflict) as refused:
        azure.clusters.delete_pool(CLUSTER, "web", etag=web)
    assert refused.value.code == "PreconditionFailed"
    azure.clusters.delete_pool(CLUSTER, "web", etag=azure.pool("web")["eTag"])
    azure.clock.advance(1)
    azure.clusters.put(CLUSTER, body(), etag=cluster)
    with pytest.raises(Conflict):
        azure.clusters.delete(CLUSTER, etag=cluster)
    assert azure.state() == "Updating"
    azure.clusters.delete(CLUSTER, etag=azure.seen()["eTag"])
    assert azure.state() == "Deleting"


def test_a_region_offers_versions_with_their_patches_and_ways_on(azure: Azure) -> None:
    values = {
        value["version"]: value for value in azure.clusters.versions(SUBSCRIPTION, "West Europe")["values"]
    }
    assert list(values) == ["1.30", "1.31", "1.32", "1.33", "1.34"]
    assert [name for name, value in values.items() if value.get("isDefault")] == ["1.33"]
    assert values["1.32"]["patchVersions"] == {
        "1.32.8": {"upgrades": ["1.32.9", "1.33.4", "1.33.5"]},
        "1.32.9": {"upgrades": ["1.33.4", "1.33.5"]},
    }
    with pytest.raises(InvalidManifest, match="atlantis"):
        azure.clusters.versions(SUBSCRIPTION, "atlantis")


def test_the_upgrade_profile_shows_the_ways_from_what_runs_now(azure: Azure) -> None:
    with pytest.raises(Dependency):
        azure.clusters.upgrade_profile(CLUSTER)
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.32"), etag=None)
    azure.clock.advance(4)

    def offered(profile: Any) -> list[str]:
        return [upgrade["kubernetesVersion"] for upgrade in profile.get("upgrades") or ()]

    def profiles() -> tuple[Any, Any]:
        properties = azure.clusters.upgrade_profile(CLUSTER)["properties"]
        (only,) = properties["agentPoolProfiles"]
        return properties["controlPlaneProfile"], only

    control_plane, system = profiles()
    assert (control_plane["kubernetesVersion"], offered(control_plane)) == ("1.32.9", ["1.33.4", "1.33.5"])
    assert (system["name"], system["kubernetesVersion"], offered(system)) == ("system", "1.32.9", [])
    newer = {"location": "westeurope", "properties": {"kubernetesVersion": "1.33.4"}}
    azure.clusters.put(CLUSTER, newer, etag=azure.seen()["eTag"])
    azure.clock.advance(2)
    control_plane, system = profiles()
    assert offered(control_plane) == ["1.33.5", "1.34.0", "1.34.1"]
    assert offered(system) == ["1.33.4"]


def test_a_pool_may_be_three_minors_behind_its_control_plane_and_no_more(azure: Azure) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.30"), etag=None)
    azure.clock.advance(4)

    def upgrade(version: str) -> None:
        wanted = {"location": "westeurope", "properties": {"kubernetesVersion": version}}
        azure.clusters.put(CLUSTER, wanted, etag=azure.seen()["eTag"])
        azure.clock.advance(2)

    for version in ("1.31", "1.32", "1.33"):
        upgrade(version)
    with pytest.raises(InvalidManifest, match="3 minor versions behind") as refused:
        upgrade("1.34")
    assert refused.value.code == "NodePoolMcVersionIncompatible"
    system = pool(mode="System", count=2, orchestratorVersion="1.31.13")
    azure.clusters.put_pool(CLUSTER, "system", system, etag=azure.pool("system")["eTag"])
    azure.clock.advance(1)
    upgrade("1.34")
    assert azure.seen()["properties"]["currentKubernetesVersion"] == "1.34.1"
    with pytest.raises(InvalidManifest, match="behind"):
        azure.clusters.put_pool(CLUSTER, "old", pool(orchestratorVersion="1.30.14"), etag=None)


def test_a_pool_gets_the_newest_node_image_and_nothing_happens_when_it_has_it(azure: Azure) -> None:
    azure.with_cluster()
    assert azure.pool("system")["nodeImageVersion"] == NODE_IMAGES[-1]
    assert azure.clusters.upgrade_node_image(CLUSTER, "system") == ""
    assert azure.state() == "Succeeded"
    azure.world.set_node_image(CLUSTER, "system", NODE_IMAGES[0])
    azure.clusters.upgrade_node_image(CLUSTER, "system")
    assert azure.pool("system")["provisioningState"] == "UpgradingNodeImageVersion"
    with pytest.raises(Conflict) as busy:
        azure.clusters.upgrade_node_image(CLUSTER, "system")
    assert busy.value.code == "OperationNotAllowed"
    azure.clock.advance(1)
    system = azure.pool("system")
    assert (system["provisioningState"], system["nodeImageVersion"]) == ("Succeeded", NODE_IMAGES[-1])
    images = {node.labels["kubernetes.azure.com/node-image-version"] for node in azure.plane.nodes[CLUSTER]}
    assert images == {NODE_IMAGES[-1]}
    with pytest.raises(Dependency):
        azure.clusters.upgrade_node_image(CLUSTER, "nothing")


def test_a_pool_that_goes_to_another_version_gets_the_newest_node_image(azure: Azure) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.33.4"), etag=None)
    azure.clock.advance(4)
    azure.world.set_node_image(CLUSTER, "system", NODE_IMAGES[0])
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.33.5"), etag=azure.seen()["eTag"])
    azure.clock.advance(2)
    assert azure.pool("system")["nodeImageVersion"] == NODE_IMAGES[0]
    newer = pool(mode="System", count=2, orchestratorVersion="1.33.5")
    azure.clusters.put_pool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"])
    azure.clock.advance(1)
    assert azure.pool("system")["nodeImageVersion"] == NODE_IMAGES[-1]


def window(**changes: Any) -> dict[str, Any]:
    """Return the body of a PUT of a maintenance configuration."""
    weekly = {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}}
    whole = {"schedule": weekly, "durationHours": 4, "startTime": "01:00", **changes}
    return {"properties": {"maintenanceWindow": whole}}


def test_maintenance_configurations_come_and_go_with_their_cluster(azure: Azure) -> None:
    with pytest.raises(Dependency):
        azure.clusters.maintenance(CLUSTER)
    azure.with_cluster()
    assert azure.clusters.maintenance(CLUSTER) == {}
    azure.clusters.put_maintenance(CLUSTER, "aksManagedAutoUpgradeSchedule", window())
    slots = {"properties": {"timeInWeek": [{"day": "Monday", "hourSlots": [1, 2]}]}}
    azure.clusters.put_maintenance(CLUSTER, "default", slots)
    found = azure.clusters.maintenance(CLUSTER)
    assert set(found) == {"aksManagedAutoUpgradeSchedule", "default"}
    kept = found["aksManagedAutoUpgradeSchedule"]["properties"]["maintenanceWindow"]
    assert kept["schedule"] == {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}}
    assert (kept["utcOffset"], kept["startDate"]) == ("+00:00", "2026-01-01")
    azure.clusters.put_maintenance(CLUSTER, "aksManagedAutoUpgradeSchedule", window(durationHours=8))
    changed = azure.clusters.maintenance(CLUSTER)["aksManagedAutoUpgradeSchedule"]["properties"][
        "maintenanceWindow"
    ]
    assert changed["durationHours"] == 8
    azure.clusters.delete(CLUSTER, etag=None)
    azure.clock.advance(3)
    azure.clusters.put(CLUSTER, body(), etag=None)
    assert azure.clusters.maintenance(CLUSTER) == {}


@pytest.mark.parametrize(
    ("name", "wanted", "about"),
    [
        ("weekends", window(), "weekends"),
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
        azure.clusters.put_maintenance(CLUSTER, name, wanted)
    assert azure.clusters.maintenance(CLUSTER) == {}


def test_a_create_that_fails_leaves_the_cluster_and_its_pools_behind(azure: Azure) -> None:
    azure.world.fail_next(CLUSTER.name, "AllocationFailed", "No capacity in the zone.")
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.clusters.put(CLUSTER, body(), etag=None)
    azure.clock.advance(4)
    assert (azure.state(), azure.pool("system")["provisioningState"]) == ("Failed", "Failed")
    assert azure.groups.resources(SUBSCRIPTION, CLUSTER.resource_group) == [CLUSTER.resource]
    azure.clusters.delete(CLUSTER, etag=azure.seen()["eTag"])
    azure.clock.advance(3)
    assert azure.clusters.get(CLUSTER) is None


def test_an_operation_that_sticks_ends_only_when_it_is_aborted_or_all_is_deleted(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.stick_next(CLUSTER.name)
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    azure.clock.advance(86400)
    assert azure.pool("web")["provisioningState"] == "Creating"
    with pytest.raises(Conflict):
        azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])
    azure.world.abort(CLUSTER)
    assert azure.pool("web")["provisioningState"] == "Canceled"
    azure.world.stick_next(CLUSTER.name)
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=azure.pool("web")["eTag"])
    azure.clusters.delete(CLUSTER, etag=None)
    azure.clock.advance(3)
    assert azure.clusters.get(CLUSTER) is None


def test_what_vanishes_was_accepted_and_is_gone_as_if_it_had_never_been(azure: Azure) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.world.vanish_next(CLUSTER.name)
    azure.clusters.put(CLUSTER, body(), etag=None)
    assert azure.state() == "Creating"
    azure.clock.advance(4)
    assert azure.clusters.get(CLUSTER) is None
    azure.with_cluster()
    azure.world.vanish_next(CLUSTER.name)
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    azure.clock.advance(2)
    assert [p["name"] for p in azure.seen()["properties"]["agentPoolProfiles"]] == ["system"]
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    azure.clock.advance(2)
    azure.world.vanish_next(CLUSTER.name)
    azure.clusters.put_pool(CLUSTER, "system", pool(mode="System"), etag=azure.pool("system")["eTag"])
    azure.clock.advance(2)
    assert azure.pool("system")["provisioningState"] == "Succeeded", "AKS lets the last System pool not go"


def test_an_upgrade_may_succeed_while_its_nodes_stay_behind(azure: Azure) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.33.4"), etag=None)
    azure.clock.advance(4)
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.33.5"), etag=azure.seen()["eTag"])
    azure.clock.advance(2)
    newer = pool(mode="System", count=2, orchestratorVersion="1.33.5")
    azure.world.lag_next(CLUSTER.name, "system")
    for kubelet in ("1.33.4", "1.33.5"):
        azure.clusters.put_pool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"])
        azure.clock.advance(1)
        system = azure.pool("system")
        assert (system["provisioningState"], system["currentOrchestratorVersion"]) == ("Succeeded", "1.33.5")
        assert {node.version for node in azure.plane.nodes[CLUSTER]} == {kubelet}
