"""One suite for resource groups and managed clusters: the world in memory, and the adapter over HTTPS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from azure.core.credentials import AccessToken

from localcloud.servers.arm import ArmServer
from localcloud.servers.tls import Authority
from localcloud.world.azure import AzureWorld
from localcloud.world.azure_catalog import NODE_IMAGES
from localcloud.world.azure_ports import WorldManagedClusters, WorldResourceGroups
from localcloud.world.clock import ManualClock
from localcloud.world.plane import NullPlane
from shared.adapters.arm import ArmManagedClusters, ArmResourceGroups
from shared.fleet.ids import ClusterId
from shared.jobs.errors import (
    Conflict,
    Dependency,
    Immutable,
    InvalidManifest,
    QuotaExceeded,
    Throttled,
)
from shared.ports import ManagedClusters, ResourceGroups

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
CLUSTER = ClusterId(SUBSCRIPTION, "rg-shop-prod", "aks-shop-prod")


class StaticCredential:
    """A credential that always has the same token."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        return AccessToken("a-token", int(time.time()) + 3600)


@dataclass
class Azure:
    """One implementation under test, and the clock and the world behind it."""

    groups: ResourceGroups
    clusters: ManagedClusters
    world: AzureWorld
    plane: NullPlane
    clock: ManualClock

    def seen(self) -> dict[str, Any]:
        document = self.clusters.get(CLUSTER)
        assert document is not None
        return dict(document)

    def state(self) -> str:
        return str(self.seen()["properties"]["provisioningState"])

    def pool(self, name: str) -> dict[str, Any]:
        pools = {pool["name"]: pool for pool in self.seen()["properties"]["agentPoolProfiles"]}
        return dict(pools[name])

    def with_cluster(self) -> Azure:
        """Go on from a cluster that is ready."""
        self.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope", "tags": {}})
        self.clusters.put(CLUSTER, body(), etag=None)
        self.clock.advance(4)
        assert self.state() == "Succeeded"
        return self


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path]:
    made, path = Authority(), tmp_path_factory.mktemp("tls") / "ca.pem"
    made.write(path)
    return made, path


@pytest.fixture(params=["world", "adapter"])
def azure(
    request: pytest.FixtureRequest, authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Azure]:
    clock, plane = ManualClock(), NullPlane()
    world = AzureWorld(clock, plane=plane)
    if request.param == "world":
        yield Azure(WorldResourceGroups(world), WorldManagedClusters(world), world, plane, clock)
        return
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    with ArmServer(world, authority[0], accepts=lambda token: token == "a-token") as server:
        groups = ArmResourceGroups(StaticCredential(), base_url=server.url)
        clusters = ArmManagedClusters(StaticCredential(), base_url=server.url)
        yield Azure(groups, clusters, world, plane, clock)
        groups.close()
        clusters.close()


def body(**properties: Any) -> dict[str, Any]:
    """Return the body of a PUT that creates a cluster."""
    return {
        "location": "westeurope",
        "tags": {"roadstead-fleet": "shop"},
        "identity": {"type": "SystemAssigned"},
        "properties": {
            "dnsPrefix": "shop-prod",
            "kubernetesVersion": "1.33",
            "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
            "agentPoolProfiles": [pool(name="system", mode="System", count=2)["properties"]],
            **properties,
        },
    }


def pool(**properties: Any) -> dict[str, Any]:
    """Return the body of a PUT of an agent pool."""
    return {"properties": {"vmSize": "Standard_D4s_v5", "count": 1, "mode": "User", **properties}}


def test_a_group_is_created_seen_and_deleted_with_what_is_in_it(azure: Azure) -> None:
    assert azure.groups.get(SUBSCRIPTION, "nowhere") is None
    assert azure.groups.resources(SUBSCRIPTION, "nowhere") == []
    azure.groups.delete(SUBSCRIPTION, "nowhere")

    azure.with_cluster()
    name = CLUSTER.resource_group
    azure.groups.put(SUBSCRIPTION, name, {"location": "westeurope", "tags": {"team": "shop"}})
    group = azure.groups.get(SUBSCRIPTION, name.upper())
    assert group is not None
    assert (group["name"], group["location"], group["tags"]) == (name, "westeurope", {"team": "shop"})
    assert azure.groups.resources(SUBSCRIPTION, name) == [CLUSTER.resource]

    azure.groups.delete(SUBSCRIPTION, name)
    going = azure.groups.get(SUBSCRIPTION, name)
    assert going is not None
    assert going["properties"]["provisioningState"] == "Deleting"
    assert azure.state() == "Deleting"
    with pytest.raises(Conflict) as refused:
        azure.groups.put(SUBSCRIPTION, name, {"location": "westeurope"})
    assert refused.value.code == "ResourceGroupBeingDeleted"
    azure.clock.advance(4)
    assert azure.groups.get(SUBSCRIPTION, name) is None
    assert azure.clusters.get(CLUSTER) is None
    assert azure.plane.nodes == {}


def test_a_group_outside_the_regions_of_azure_is_refused(azure: Azure) -> None:
    with pytest.raises(InvalidManifest) as refused:
        azure.groups.put(SUBSCRIPTION, "rg", {"location": "atlantis"})
    assert refused.value.code == "LocationNotAvailableForResourceGroup"


def test_a_cluster_is_creating_then_ready_with_what_azure_fills_in(azure: Azure) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    assert azure.clusters.get(CLUSTER) is None
    azure.clusters.put(CLUSTER, body(), etag=None)
    assert azure.state() == "Creating"
    with pytest.raises(InvalidManifest):
        azure.clusters.kubeconfig(CLUSTER)
    azure.clock.advance(4)

    seen = azure.seen()
    properties = seen["properties"]
    assert properties["provisioningState"] == "Succeeded"
    assert properties["currentKubernetesVersion"] == "1.33.5"
    assert properties["nodeResourceGroup"] == "MC_rg-shop-prod_aks-shop-prod_westeurope"
    assert properties["fqdn"].endswith(".hcp.westeurope.azmk8s.io")
    assert properties["networkProfile"]["serviceCidr"] == "10.0.0.0/16"
    assert seen["tags"] == {"roadstead-fleet": "shop"}
    assert seen["identity"]["principalId"]
    system = azure.pool("system")
    assert (system["provisioningState"], system["osType"], system["maxPods"]) == ("Succeeded", "Linux", 250)
    assert yaml.safe_load(azure.clusters.kubeconfig(CLUSTER))["kind"] == "Config"
    assert [node.pool for node in azure.plane.nodes[CLUSTER]] == ["system", "system"]


def test_a_create_needs_its_resource_group_and_nothing_in_its_place(azure: Azure) -> None:
    with pytest.raises(Dependency) as missing:
        azure.clusters.put(CLUSTER, body(), etag=None)
    assert missing.value.code == "ResourceGroupNotFound"
    azure.with_cluster()
    with pytest.raises(Conflict) as second:
        azure.clusters.put(CLUSTER, body(), etag=None)
    assert second.value.code == "PreconditionFailed"
    assert [note["accepted"] for note in azure.world.accepted] == ["create-group", "create"]


def test_a_second_write_while_one_runs_is_a_conflict(azure: Azure) -> None:
    azure.with_cluster()
    azure.clusters.put(CLUSTER, {**body(), "tags": {"a": "b"}}, etag=azure.seen()["eTag"])
    assert azure.state() == "Updating"
    with pytest.raises(Conflict) as cluster:
        azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])
    with pytest.raises(Conflict) as agent_pool:
        azure.clusters.put_pool(CLUSTER, "user", pool(), etag=None)
    assert cluster.value.code == agent_pool.value.code == "OperationNotAllowed"
    assert "in progress" in str(cluster.value)
    azure.clock.advance(2)
    assert azure.state() == "Succeeded"
    assert azure.seen()["tags"] == {"a": "b"}


def test_a_write_over_a_version_that_is_gone_is_a_conflict(azure: Azure) -> None:
    azure.with_cluster()
    before = azure.seen()["eTag"]
    azure.clusters.put(CLUSTER, body(), etag=before)
    azure.clock.advance(2)
    with pytest.raises(Conflict):
        azure.clusters.put(CLUSTER, body(), etag=before)
    with pytest.raises(Conflict):
        azure.clusters.put_pool(CLUSTER, "system", pool(mode="System"), etag=before)


def test_pools_are_added_changed_and_removed_without_touching_the_clusters_etag(azure: Azure) -> None:
    azure.with_cluster()
    etag = azure.seen()["eTag"]
    wanted = pool(nodeLabels={"tier": "web"}, nodeTaints=["web=yes:NoSchedule"], availabilityZones=["1"])
    azure.clusters.put_pool(CLUSTER, "web", wanted, etag=None)
    assert azure.pool("web")["provisioningState"] == "Creating"
    azure.clock.advance(2)
    assert azure.pool("web")["provisioningState"] == "Succeeded"
    node = azure.plane.nodes[CLUSTER][-1]
    assert node.labels["tier"] == "web"
    assert node.labels["topology.kubernetes.io/zone"] == "westeurope-1"
    assert node.taints == ({"key": "web", "value": "yes", "effect": "NoSchedule"},)

    grown = {"properties": {"enableAutoScaling": True, "minCount": 1, "maxCount": 5, "count": 3}}
    azure.clusters.put_pool(CLUSTER, "web", grown, etag=azure.pool("web")["eTag"])
    azure.clock.advance(1)
    assert (azure.pool("web")["count"], azure.pool("web")["nodeLabels"]) == (3, {"tier": "web"})
    with pytest.raises(Conflict):
        azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)

    azure.clusters.delete_pool(CLUSTER, "web", etag=None)
    assert azure.pool("web")["provisioningState"] == "Deleting"
    azure.clock.advance(1)
    azure.clusters.delete_pool(CLUSTER, "web", etag=None)
    assert [p["name"] for p in azure.seen()["properties"]["agentPoolProfiles"]] == ["system"]
    assert azure.seen()["eTag"] == etag
    with pytest.raises(InvalidManifest, match="system"):
        azure.clusters.delete_pool(CLUSTER, "system", etag=None)


def test_what_is_fixed_at_creation_cannot_be_changed(azure: Azure) -> None:
    azure.with_cluster()
    etag = azure.seen()["eTag"]
    for properties, path in (
        ({"dnsPrefix": "other"}, "dnsPrefix"),
        ({"networkProfile": {"networkPlugin": "kubenet"}}, "networkProfile.networkPlugin"),
        ({"networkProfile": {"serviceCidr": "10.1.0.0/16"}}, "networkProfile.serviceCidr"),
    ):
        with pytest.raises(Immutable) as refused:
            azure.clusters.put(CLUSTER, body(**properties), etag=etag)
        assert refused.value.code == "PropertyChangeNotAllowed"
        assert f"'{path}'" in str(refused.value)
    with pytest.raises(Immutable, match=r"properties\.vmSize"):
        azure.clusters.put_pool(
            CLUSTER, "system", pool(vmSize="Standard_D8s_v5"), etag=azure.pool("system")["eTag"]
        )
    assert azure.seen()["eTag"] == etag


def test_versions_go_one_minor_at_a_time_and_the_control_plane_first(azure: Azure) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    with pytest.raises(InvalidManifest) as unknown:
        azure.clusters.put(CLUSTER, body(kubernetesVersion="1.21.2"), etag=None)
    assert unknown.value.code == "K8sVersionNotSupported"
    azure.clusters.put(CLUSTER, body(kubernetesVersion="1.32"), etag=None)
    azure.clock.advance(4)

    def upgrade(version: str) -> None:
        wanted = {"location": "westeurope", "properties": {"kubernetesVersion": version}}
        azure.clusters.put(CLUSTER, wanted, etag=azure.seen()["eTag"])

    with pytest.raises(InvalidManifest, match="is not allowed"):
        upgrade("1.34")
    newer = pool(mode="System", orchestratorVersion="1.33.5")
    with pytest.raises(InvalidManifest) as too_early:
        azure.clusters.put_pool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"])
    assert too_early.value.code == "NodePoolMcVersionIncompatible"
    upgrade("1.33")
    assert (azure.state(), azure.seen()["properties"]["currentKubernetesVersion"]) == ("Upgrading", "1.32.9")
    azure.clock.advance(2)
    assert azure.seen()["properties"]["currentKubernetesVersion"] == "1.33.5"
    assert azure.pool("system")["currentOrchestratorVersion"] == "1.32.9"
    azure.clusters.put_pool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"])
    azure.clock.advance(1)
    assert azure.pool("system")["currentOrchestratorVersion"] == "1.33.5"
    assert {node.version for node in azure.plane.nodes[CLUSTER]} == {"1.33.5"}
    with pytest.raises(InvalidManifest, match="is not allowed"):
        upgrade("1.32")


def test_a_subscription_without_room_is_a_quota_error(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.limit_vcpus(SUBSCRIPTION, "westeurope", 10)
    with pytest.raises(QuotaExceeded) as refused:
        azure.clusters.put_pool(CLUSTER, "big", pool(), etag=None)
    assert refused.value.code == "ErrCode_InsufficientVCPUQuota"
    azure.world.limit_vcpus(SUBSCRIPTION, "westeurope", 12)
    azure.clusters.put_pool(CLUSTER, "big", pool(), etag=None)


def test_a_create_that_fails_shows_why_and_can_be_tried_again(azure: Azure) -> None:
    azure.world.fail_next(CLUSTER.name, "AllocationFailed", "No capacity in the zone.")
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    azure.clusters.put(CLUSTER, body(), etag=None)
    azure.clock.advance(4)
    assert azure.state() == "Failed"
    error = azure.seen()["properties"]["status"]["provisioningError"]
    assert error == {"code": "AllocationFailed", "message": "No capacity in the zone."}
    azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])
    azure.clock.advance(4)
    assert azure.state() == "Succeeded"
    assert "status" not in azure.seen()["properties"]
    assert azure.clusters.kubeconfig(CLUSTER)


def test_a_pool_that_fails_shows_why_and_has_no_nodes(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.fail_next(CLUSTER.name, "SkuNotAvailable", "No such size in the zone.")
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    azure.clock.advance(2)
    assert azure.pool("web")["provisioningState"] == "Failed"
    assert azure.pool("web")["status"]["provisioningError"]["code"] == "SkuNotAvailable"
    assert azure.state() == "Succeeded"
    azure.world.scale(CLUSTER, "system", 3)
    assert [node.pool for node in azure.plane.nodes[CLUSTER]] == ["system"] * 3
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=azure.pool("web")["eTag"])
    azure.clock.advance(1)
    assert azure.pool("web")["provisioningState"] == "Succeeded"
    assert [node.pool for node in azure.plane.nodes[CLUSTER]] == ["system", "system", "system", "web"]


def test_tags_tier_and_identity_can_be_changed(azure: Azure) -> None:
    azure.with_cluster()
    user = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ids/providers/Microsoft.ManagedIdentity/x"
    changed = {
        "location": "West Europe",
        "tags": {"a": "b"},
        "sku": {"tier": "Standard"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {user: {}}},
    }
    azure.clusters.put(CLUSTER, changed, etag=azure.seen()["eTag"])
    azure.clock.advance(2)
    seen = azure.seen()
    assert (seen["tags"], seen["sku"]) == ({"a": "b"}, {"name": "Base", "tier": "Standard"})
    assert seen["identity"]["type"] == "UserAssigned"
    assert seen["identity"]["userAssignedIdentities"][user]["principalId"]
    assert seen["properties"]["dnsPrefix"] == "shop-prod"


def test_a_delete_goes_through_at_any_time_and_twice(azure: Azure) -> None:
    azure.with_cluster()
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    azure.clusters.delete(CLUSTER, etag=None)
    assert azure.state() == "Deleting"
    azure.clusters.delete(CLUSTER, etag=None)
    with pytest.raises(Conflict):
        azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])
    azure.clock.advance(3)
    assert azure.clusters.get(CLUSTER) is None
    azure.clusters.delete(CLUSTER, etag=None)
    with pytest.raises(Dependency):
        azure.clusters.kubeconfig(CLUSTER)
    deletes = [note for note in azure.world.accepted if note["accepted"] == "delete"]
    assert deletes == [{"accepted": "delete", "resource": CLUSTER.resource}]


def test_a_caller_that_asks_too_often_is_told_when_to_come_back(azure: Azure) -> None:
    azure.with_cluster()
    azure.clock.advance(60)
    for _ in range(60):
        azure.clusters.get(CLUSTER)
    with pytest.raises(Throttled) as refused:
        azure.clusters.get(CLUSTER)
    assert (refused.value.retry_after, refused.value.code) == (1.0, "Throttled")
    azure.clock.advance(1)
    assert azure.clusters.get(CLUSTER) is not None


def test_a_stopped_cluster_takes_no_change(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.stop(CLUSTER)
    assert azure.seen()["properties"]["powerState"] == {"code": "Stopped"}
    assert azure.plane.nodes[CLUSTER] == []
    with pytest.raises(InvalidManifest, match="stopped"):
        azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])
    azure.world.start(CLUSTER)
    azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])


def test_the_node_count_belongs_to_the_autoscaler_once_it_is_on(azure: Azure) -> None:
    azure.with_cluster()
    bounds = {"enableAutoScaling": True, "minCount": 1, "maxCount": 5}
    azure.clusters.put_pool(CLUSTER, "web", pool(**bounds), etag=None)
    azure.clock.advance(2)
    azure.world.scale(CLUSTER, "web", 4)
    assert azure.pool("web")["count"] == 4
    azure.clusters.put_pool(CLUSTER, "web", pool(count=1, **bounds), etag=azure.pool("web")["eTag"])
    azure.clock.advance(1)
    assert azure.pool("web")["count"] == 4
    azure.clusters.put_pool(
        CLUSTER, "web", pool(enableAutoScaling=False, count=2), etag=azure.pool("web")["eTag"]
    )
    azure.clock.advance(1)
    assert azure.pool("web")["count"] == 2
    assert "minCount" not in azure.pool("web")


def test_pools_come_and_go_only_through_pool_operations(azure: Azure) -> None:
    azure.with_cluster()
    azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None)
    azure.clock.advance(2)
    with pytest.raises(InvalidManifest, match="Removing agent pools"):
        azure.clusters.put(CLUSTER, body(), etag=azure.seen()["eTag"])
    seen = azure.seen()
    profiles = seen["properties"]["agentPoolProfiles"]
    fewer = {**body(), "properties": {"agentPoolProfiles": [*profiles, pool(name="new")["properties"]]}}
    with pytest.raises(InvalidManifest, match="Adding agent pools"):
        azure.clusters.put(CLUSTER, fewer, etag=seen["eTag"])
    azure.clusters.put(CLUSTER, seen, etag=seen["eTag"])
    azure.clock.advance(2)
    assert [p["name"] for p in azure.seen()["properties"]["agentPoolProfiles"]] == ["system", "web"]


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"agentPoolProfiles": []}, "agentPoolProfiles"),
        ({"agentPoolProfiles": [pool(name="user")["properties"]]}, "system agent pool"),
        ({"agentPoolProfiles": [pool(name="Sys", mode="System")["properties"]]}, "name 'Sys'"),
        ({"agentPoolProfiles": [{"name": "system", "mode": "System"}]}, "vmSize"),
        ({"agentPoolProfiles": [pool(name="system", mode="System", count=0)["properties"]]}, "count"),
        ({"dnsPrefix": None}, "dnsPrefix"),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused(azure: Azure, change: dict[str, Any], about: str) -> None:
    azure.groups.put(SUBSCRIPTION, CLUSTER.resource_group, {"location": "westeurope"})
    with pytest.raises(InvalidManifest, match=about):
        azure.clusters.put(CLUSTER, body(**change), etag=None)
    assert azure.clusters.get(CLUSTER) is None


def test_every_write_returns_the_id_of_its_request(azure: Azure) -> None:
    group, location = CLUSTER.resource_group, {"location": "westeurope"}
    ids = [azure.groups.put(SUBSCRIPTION, group, location), azure.clusters.put(CLUSTER, body(), etag=None)]
    azure.clock.advance(4)
    ids.append(azure.clusters.put_pool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(2)
    azure.world.set_node_image(CLUSTER, "web", NODE_IMAGES[0])
    ids.append(azure.clusters.upgrade_node_image(CLUSTER, "web"))
    azure.clock.advance(1)
    ids.append(azure.clusters.delete_pool(CLUSTER, "web", etag=None))
    ids.append(azure.clusters.put_maintenance(CLUSTER, "default", window()))
    ids.append(azure.clusters.delete_maintenance(CLUSTER, "default"))
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
    azure.clusters.delete_maintenance(CLUSTER, "default")
    azure.clusters.delete_maintenance(CLUSTER, "default")
    left = azure.clusters.maintenance(CLUSTER)
    assert list(left) == ["aksManagedAutoUpgradeSchedule"]
    changed = left["aksManagedAutoUpgradeSchedule"]["properties"]["maintenanceWindow"]
    assert changed["durationHours"] == 8
    azure.clusters.delete(CLUSTER, etag=None)
    azure.clock.advance(3)
    assert azure.clusters.delete_maintenance(CLUSTER, "aksManagedAutoUpgradeSchedule") == ""
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
