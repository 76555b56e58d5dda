"""One suite for resource groups and managed clusters: the world in memory, and the adapter over HTTPS."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    Immutable,
    InvalidManifest,
    QuotaExceeded,
    Refused,
    Throttled,
)
from shared.ports.azure import (
    DeleteCluster,
    DeleteGroup,
    GetCluster,
    GetGroup,
    GetKubeconfig,
    ListResources,
    PatchCluster,
    PutCluster,
    PutGroup,
    PutPool,
)
from shared.resource_ids import GroupId
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure, body, pool

pytestmark = pytest.mark.lives


def test_a_group_is_created_seen_and_deleted_with_what_is_in_it(azure: Azure) -> None:
    assert azure.call(GetGroup(GroupId(SUBSCRIPTION, "nowhere"))) is None
    assert azure.call(ListResources(GroupId(SUBSCRIPTION, "nowhere"))) == []
    azure.call(DeleteGroup(GroupId(SUBSCRIPTION, "nowhere")))

    azure.with_cluster()
    name = CLUSTER.resource_group
    azure.call(PutGroup(GroupId(SUBSCRIPTION, name), {"location": "westeurope", "tags": {"team": "shop"}}))
    group = azure.call(GetGroup(GroupId(SUBSCRIPTION, name.upper())))
    assert group is not None
    assert (group["name"], group["location"], group["tags"]) == (name, "westeurope", {"team": "shop"})
    assert azure.call(ListResources(GroupId(SUBSCRIPTION, name))) == [CLUSTER.resource]

    azure.call(DeleteGroup(GroupId(SUBSCRIPTION, name)))
    going = azure.call(GetGroup(GroupId(SUBSCRIPTION, name)))
    assert going is not None
    assert going["properties"]["provisioningState"] == "Deleting"
    assert azure.state() == "Deleting"
    with pytest.raises(Conflict) as refused:
        azure.call(PutGroup(GroupId(SUBSCRIPTION, name), {"location": "westeurope"}))
    assert refused.value.code == "ResourceGroupBeingDeleted"
    azure.clock.advance(4)
    assert azure.call(GetGroup(GroupId(SUBSCRIPTION, name))) is None
    assert azure.call(GetCluster(CLUSTER)) is None
    assert azure.plane.nodes == {}


def test_a_write_over_a_group_reports_that_it_existed(azure: Azure) -> None:
    name, location = CLUSTER.resource_group, {"location": "westeurope"}
    first = azure.call(PutGroup(GroupId(SUBSCRIPTION, name), location))
    again = azure.call(PutGroup(GroupId(SUBSCRIPTION, name.upper()), location))
    assert (first.created, again.created) == (True, False)


def test_a_group_outside_the_regions_of_azure_is_refused(azure: Azure) -> None:
    with pytest.raises(InvalidManifest) as refused:
        azure.call(PutGroup(GroupId(SUBSCRIPTION, "rg"), {"location": "atlantis"}))
    assert refused.value.code == "LocationNotAvailableForResourceGroup"


def test_a_cluster_is_creating_then_ready_with_what_azure_fills_in(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    assert azure.call(GetCluster(CLUSTER)) is None
    azure.call(PutCluster(CLUSTER, body(), etag=None))
    assert azure.state() == "Creating"
    with pytest.raises(InvalidManifest):
        azure.call(GetKubeconfig(CLUSTER))
    azure.clock.advance(4)

    seen = azure.seen()
    properties = seen["properties"]
    assert properties["provisioningState"] == "Succeeded"
    assert properties["currentKubernetesVersion"] == "1.36.3"
    assert properties["nodeResourceGroup"] == "MC_rg-shop-prod_aks-shop-prod_westeurope"
    assert properties["fqdn"].endswith(".hcp.westeurope.azmk8s.io")
    assert properties["networkProfile"]["serviceCidr"] == "10.0.0.0/16"
    assert seen["tags"] == {"roadstead-fleet": "shop"}
    assert seen["identity"]["principalId"]
    system = azure.pool("system")
    assert (system["provisioningState"], system["osType"], system["maxPods"]) == ("Succeeded", "Linux", 250)
    assert yaml.safe_load(azure.call(GetKubeconfig(CLUSTER)))["kind"] == "Config"
    assert [node.pool for node in azure.plane.nodes[CLUSTER]] == ["system", "system"]


def test_a_create_needs_its_resource_group_and_nothing_in_its_place(azure: Azure) -> None:
    with pytest.raises(Dependency) as missing:
        azure.call(PutCluster(CLUSTER, body(), etag=None))
    assert missing.value.code == "ResourceGroupNotFound"
    azure.with_cluster()
    with pytest.raises(Conflict) as second:
        azure.call(PutCluster(CLUSTER, body(), etag=None, only_new=True))
    assert second.value.code == "PreconditionFailed"
    assert [note["accepted"] for note in azure.world.accepted] == ["create-group", "create"]


def test_a_write_with_neither_an_etag_nor_only_new_has_no_condition(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutCluster(CLUSTER, {"location": "westeurope", "tags": {"a": "b"}}, etag=None))
    azure.clock.advance(2)
    assert azure.seen()["tags"] == {"a": "b"}
    azure.call(PutPool(CLUSTER, "system", pool(mode="System", count=3), etag=None))
    azure.clock.advance(2)
    assert azure.pool("system")["count"] == 3


def test_a_second_write_while_one_runs_is_a_conflict(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutCluster(CLUSTER, {**body(), "tags": {"a": "b"}}, etag=azure.seen()["eTag"]))
    assert azure.state() == "Updating"
    with pytest.raises(Conflict) as cluster:
        azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))
    with pytest.raises(Conflict) as agent_pool:
        azure.call(PutPool(CLUSTER, "user", pool(), etag=None))
    assert cluster.value.code == agent_pool.value.code == "OperationNotAllowed"
    assert "in progress" in str(cluster.value)
    azure.clock.advance(2)
    assert azure.state() == "Succeeded"
    assert azure.seen()["tags"] == {"a": "b"}


def test_a_write_over_an_old_version_is_a_conflict(azure: Azure) -> None:
    azure.with_cluster()
    before = azure.seen()["eTag"]
    azure.call(PutCluster(CLUSTER, body(), etag=before))
    azure.clock.advance(2)
    with pytest.raises(Conflict):
        azure.call(PutCluster(CLUSTER, body(), etag=before))
    with pytest.raises(Conflict):
        azure.call(PutPool(CLUSTER, "system", pool(mode="System"), etag=before))


def test_tags_alone_are_replaced_over_the_version_that_was_read_and_no_other(azure: Azure) -> None:
    azure.with_cluster()
    before = azure.seen()
    azure.call(PatchCluster(CLUSTER, {"tags": {"team": "shop"}}, etag=before["eTag"]))
    azure.clock.advance(2)
    after = azure.seen()
    assert after["tags"] == {"team": "shop"}
    assert after["eTag"] != before["eTag"]
    assert after["properties"]["currentKubernetesVersion"] == before["properties"]["currentKubernetesVersion"]
    with pytest.raises(Conflict):
        azure.call(PatchCluster(CLUSTER, {"tags": {}}, etag=before["eTag"]))
    assert azure.seen()["tags"] == {"team": "shop"}


def test_what_is_fixed_at_creation_cannot_be_changed(azure: Azure) -> None:
    azure.with_cluster()
    etag = azure.seen()["eTag"]
    for properties, path in (
        ({"dnsPrefix": "other"}, "dnsPrefix"),
        ({"networkProfile": {"networkPlugin": "kubenet"}}, "networkProfile.networkPlugin"),
        ({"networkProfile": {"serviceCidr": "10.1.0.0/16"}}, "networkProfile.serviceCidr"),
    ):
        with pytest.raises(Immutable) as refused:
            azure.call(PutCluster(CLUSTER, body(**properties), etag=etag))
        assert refused.value.code == "PropertyChangeNotAllowed"
        assert f"'{path}'" in str(refused.value)
    with pytest.raises(Immutable, match=r"properties\.vmSize"):
        azure.call(
            PutPool(CLUSTER, "system", pool(vmSize="Standard_D8s_v5"), etag=azure.pool("system")["eTag"])
        )
    assert azure.seen()["eTag"] == etag


def test_versions_go_one_minor_at_a_time_and_the_control_plane_first(azure: Azure) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    with pytest.raises(InvalidManifest) as unknown:
        azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.21.2"), etag=None))
    assert unknown.value.code == "K8sVersionNotSupported"
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.35"), etag=None))
    azure.clock.advance(4)

    def upgrade(version: str) -> None:
        wanted = {"location": "westeurope", "properties": {"kubernetesVersion": version}}
        azure.call(PutCluster(CLUSTER, wanted, etag=azure.seen()["eTag"]))

    with pytest.raises(InvalidManifest, match="is not allowed"):
        upgrade("1.37")
    newer = pool(mode="System", orchestratorVersion="1.36.3")
    with pytest.raises(InvalidManifest) as too_early:
        azure.call(PutPool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"]))
    assert too_early.value.code == "NodePoolMcVersionIncompatible"
    upgrade("1.36")
    assert (azure.state(), azure.seen()["properties"]["currentKubernetesVersion"]) == ("Upgrading", "1.35.7")
    azure.clock.advance(2)
    assert azure.seen()["properties"]["currentKubernetesVersion"] == "1.36.3"
    assert azure.pool("system")["currentOrchestratorVersion"] == "1.35.7"
    azure.call(PutPool(CLUSTER, "system", newer, etag=azure.pool("system")["eTag"]))
    azure.clock.advance(1)
    assert azure.pool("system")["currentOrchestratorVersion"] == "1.36.3"
    assert {node.version for node in azure.plane.nodes[CLUSTER]} == {"1.36.3"}
    with pytest.raises(InvalidManifest, match="is not allowed"):
        upgrade("1.35")


def test_a_subscription_without_room_is_a_quota_error(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.engine.quotas.limit(SUBSCRIPTION, "westeurope", "cores", 10)
    with pytest.raises(QuotaExceeded) as refused:
        azure.call(PutPool(CLUSTER, "big", pool(), etag=None))
    assert refused.value.code == "ErrCode_InsufficientVCPUQuota"
    azure.world.engine.quotas.limit(SUBSCRIPTION, "westeurope", "cores", 12)
    azure.call(PutPool(CLUSTER, "big", pool(), etag=None))


def test_a_create_that_fails_shows_why_and_can_be_tried_again(azure: Azure) -> None:
    azure.world.interventions.fail_next(CLUSTER.name, "AllocationFailed", "No capacity in the zone.")
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.call(PutCluster(CLUSTER, body(), etag=None))
    azure.clock.advance(4)
    assert azure.state() == "Failed"
    error = azure.seen()["properties"]["status"]["provisioningError"]
    assert error == {"code": "AllocationFailed", "message": "No capacity in the zone."}
    azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))
    azure.clock.advance(4)
    assert azure.state() == "Succeeded"
    assert "status" not in azure.seen()["properties"]
    assert azure.call(GetKubeconfig(CLUSTER))


def test_tags_tier_and_identity_can_be_changed(azure: Azure) -> None:
    azure.with_cluster()
    user = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ids/providers/Microsoft.ManagedIdentity/x"
    changed = {
        "location": "West Europe",
        "tags": {"a": "b"},
        "sku": {"tier": "Standard"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {user: {}}},
    }
    azure.call(PutCluster(CLUSTER, changed, etag=azure.seen()["eTag"]))
    azure.clock.advance(2)
    seen = azure.seen()
    assert (seen["tags"], seen["sku"]) == ({"a": "b"}, {"name": "Base", "tier": "Standard"})
    assert seen["identity"]["type"] == "UserAssigned"
    assert seen["identity"]["userAssignedIdentities"][user]["principalId"]
    assert seen["properties"]["dnsPrefix"] == "shop-prod"


def test_a_delete_is_accepted_at_any_time_and_twice(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    azure.call(DeleteCluster(CLUSTER, etag=None))
    assert azure.state() == "Deleting"
    azure.call(DeleteCluster(CLUSTER, etag=None))
    with pytest.raises(Conflict):
        azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))
    azure.clock.advance(3)
    assert azure.call(GetCluster(CLUSTER)) is None
    azure.call(DeleteCluster(CLUSTER, etag=None))
    with pytest.raises(Dependency):
        azure.call(GetKubeconfig(CLUSTER))
    deletes = [note for note in azure.world.accepted if note["accepted"] == "delete"]
    assert deletes == [{"accepted": "delete", "resource": CLUSTER.resource}]


def test_a_throttled_caller_learns_when_to_retry(azure: Azure) -> None:
    azure.with_cluster()
    azure.clock.advance(60)
    for _ in range(60):
        azure.call(GetCluster(CLUSTER))
    with pytest.raises(Throttled) as refused:
        azure.call(GetCluster(CLUSTER))
    assert (refused.value.retry_after, refused.value.code) == (1.0, "Throttled")
    azure.clock.advance(1)
    assert azure.call(GetCluster(CLUSTER)) is not None


def test_a_stopped_cluster_takes_no_change(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.interventions.stop(CLUSTER)
    assert azure.seen()["properties"]["powerState"] == {"code": "Stopped"}
    assert azure.plane.nodes[CLUSTER] == []
    with pytest.raises(Refused, match="stopped"):
        azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))
    azure.world.interventions.start(CLUSTER)
    azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"agentPoolProfiles": []}, "agentPoolProfiles"),
        ({"agentPoolProfiles": [pool(name="user")["properties"]]}, "system agent pool"),
        ({"agentPoolProfiles": [pool(name="Sys", mode="System")["properties"]]}, "name 'Sys'"),
        ({"agentPoolProfiles": [pool(name="system", mode="System", count=0)["properties"]]}, "count"),
        ({"dnsPrefix": None}, "dnsPrefix"),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused(azure: Azure, change: dict[str, Any], about: str) -> None:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    with pytest.raises(InvalidManifest, match=about):
        azure.call(PutCluster(CLUSTER, body(**change), etag=None))
    assert azure.call(GetCluster(CLUSTER)) is None
