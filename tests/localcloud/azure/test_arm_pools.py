"""The local Azure changes clusters and keeps node pools as AKS does: stops, images, machines, labels."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.arm_resources import WriteCondition
from localcloud.azure.world.pools.aks_nodes import group_label
from tests.support.azure_cloud import CLUSTER, Cloud, rule
from tests.support.refused_writes import (
    ADDRESS,
    FLAT,
    GROUP,
    MANAGED,
    ON,
    OVERLAY,
    OWN_IDENTITY,
    STOPPED,
    SUBNET,
    WINDOWS,
    access,
    kms,
    lb,
    nat,
    net,
)


def test_windows_server_2022_becomes_2025_in_place_together_with_fips() -> None:
    cloud = Cloud().create({}).put_pool(WINDOWS)
    with pytest.raises(AksError) as refused:
        cloud.put_pool({"osSKU": "Windows2025"})
    assert refused.value.rule == "windows-2025-is-fips"
    cloud.put_pool({"osSKU": "Windows2025", "enableFIPS": True})
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["osSKU"] == "Windows2025"


def test_a_pool_may_be_moved_to_a_snapshot() -> None:
    snapshot = {"sourceResourceId": f"{GROUP}/Microsoft.ContainerService/snapshots/s"}
    cloud = Cloud().create({}).put_pool({}).put_pool({"creationData": snapshot})
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["creationData"] == snapshot


def test_an_unknown_pool_or_maintenance_configuration_is_refused_with_the_code_of_aks() -> None:
    cloud = Cloud().create({})
    with pytest.raises(AksError, match="NotFound") as absent:
        cloud.world.get_pool(CLUSTER, "none")
    assert (absent.value.status, absent.value.code) == (404, "NotFound")
    with pytest.raises(AksError, match="InvalidParameter: Only 'default', "):
        cloud.world.put_maintenance(CLUSTER, "weekly", {"properties": {}})


def test_a_pool_stops_and_starts_while_it_is_ready_only() -> None:
    cloud = Cloud().create({}).put_pool({"count": 2})
    stopping = cloud.shown_by_put({"count": 2, **STOPPED})
    shown = (stopping["provisioningState"], stopping["count"], stopping["powerState"])
    assert shown == ("Stopping", 0, {"code": "Stopped"})
    cloud.clock.advance(10)
    assert cloud.pool("web")["provisioningState"] == "Succeeded"
    assert cloud.nodes() == {"system": 1}
    started = {"count": 0, "powerState": {"code": "Running"}}
    starting = cloud.shown_by_put(started)
    assert (starting["provisioningState"], starting["count"]) == ("Starting", 2)
    cloud.clock.advance(10)
    assert cloud.nodes() == {"system": 1, "web": 2}
    cloud.world.interventions.fail_next("one", "AllocationFailed", "none left")
    cloud.put_pool({"nodeLabels": {"a": "b"}})
    with pytest.raises(AksError) as refused:
        cloud.put_pool(STOPPED)
    assert refused.value.rule == "stops-when-ready"


def test_a_stopped_pool_is_upgraded_and_stays_stopped_through_a_stop_of_its_cluster() -> None:
    cloud = (
        Cloud().create({"kubernetesVersion": "1.36"}).put_pool({"orchestratorVersion": "1.35", "count": 2})
    )
    cloud.put_pool({**STOPPED, "count": 2})
    cloud.put_pool({"orchestratorVersion": "1.36", "count": 0})
    assert cloud.pool("web")["currentOrchestratorVersion"].startswith("1.36.")
    assert (cloud.pool("web")["count"], cloud.nodes()) == (0, {"system": 1})
    cloud.world.interventions.stop(CLUSTER)
    cloud.world.interventions.start(CLUSTER)
    assert cloud.nodes() == {"system": 1}
    cloud.put_pool({"powerState": {"code": "Running"}, "count": 0})
    assert cloud.nodes() == {"system": 1, "web": 2}


def test_a_system_pool_is_not_stopped() -> None:
    cloud = Cloud().create({})
    with pytest.raises(AksError) as refused:
        cloud.put_pool({"name": "system", **STOPPED})
    assert rule(refused.value) == "system-pools-run"


def test_no_pool_is_stopped_while_nodes_are_provisioned_automatically() -> None:
    cloud = Cloud().create({"nodeProvisioningProfile": {"mode": "Auto"}, **net(**OVERLAY)}).put_pool({})
    with pytest.raises(AksError) as refused:
        cloud.put_pool(STOPPED)
    assert rule(refused.value) == "no-stop-with-auto-provisioning"


@pytest.mark.parametrize("name", ["securityProfile", "artifactStreamingProfile"])
def test_the_first_pools_of_a_cluster_take_fewer_fields_than_a_pool_of_its_own(name: str) -> None:
    field = {name: {"enableVTPM": True} if name == "securityProfile" else ON}
    with pytest.raises(AksError, match=f'unknown field "{name}"') as refused:
        Cloud().create({"pool": field})
    assert refused.value.code == "UnmarshalError"
    cloud = Cloud().create({}).put_pool(field)
    read = cloud.world.get_cluster(CLUSTER)
    cloud.world.put_cluster(CLUSTER, read)
    assert cloud.world.get_pool(CLUSTER, "web")["properties"][name] == field[name]


def test_fips_of_a_linux_pool_changes_in_place() -> None:
    cloud = Cloud().create({}).put_pool({}).put_pool({"enableFIPS": True})
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["enableFIPS"] is True


def test_a_pool_of_single_machines_has_the_count_of_its_scale_profile() -> None:
    scale = {"manual": [{"size": "Standard_D2s_v5", "count": 2}, {"size": "Standard_D4s_v5", "count": 1}]}
    machines = {"type": "VirtualMachines", "virtualMachinesProfile": {"scale": scale}}
    cloud = Cloud().create({}).put_pool(machines)
    assert cloud.world.get_pool(CLUSTER, "web")["properties"]["count"] == 3


def test_labels_that_the_kubelet_may_set_and_those_of_a_spot_pool_are_accepted() -> None:
    labels = (
        "node.kubernetes.io/a",
        "x.kubelet.kubernetes.io/b",
        "node-role.kubernetes.io/c",
        "e.org/d",
        "f",
    )
    spot = {"kubernetes.azure.com/scalesetpriority": "spot"}
    Cloud().create({}).put_pool({"nodeLabels": dict.fromkeys(labels, "") | spot})


@pytest.mark.parametrize("key", ["kubernetes.io/os", "k8s.io/x", "a.k8s.io/x", "node.x.kubernetes.io/x"])
def test_other_labels_of_kubernetes_own_domains_are_refused_with_the_code_of_aks(key: str) -> None:
    with pytest.raises(AksError) as refused:
        Cloud().create({}).put_pool({"nodeLabels": {key: "y"}})
    assert (refused.value.rule, refused.value.code) == ("labels-of-kubernetes", "BadRequest")


ALLOWED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (net(**FLAT), net(**OVERLAY, podCidr="10.1.0.0/16")),
    (net(networkPlugin="kubenet"), net(**OVERLAY)),
    (net(**OVERLAY), net(networkDataplane="cilium")),
    (net(**OVERLAY, podCidr="10.1.0.0/17"), net(podCidr="10.1.0.0/16")),
    (net(**OVERLAY), net(ipFamilies=["IPv4", "IPv6"], serviceCidrs=["10.0.0.0/16", "fd00::/108"])),
    ({}, nat(**MANAGED)),
    (nat(**MANAGED), net(outboundType="loadBalancer", loadBalancerProfile={"outboundIPs": ADDRESS})),
    (lb(managedOutboundIPs={"count": 2}), lb(outboundIPs=ADDRESS)),
    (nat(sku="Standard"), nat(sku="StandardV2")),
    ({"pool": {"vnetSubnetID": SUBNET}}, net(outboundType="userDefinedRouting")),
    (access(enableVnetIntegration=True), access(enablePrivateCluster=True)),
    (access(enablePrivateCluster=True, privateDNSZone="system"), access(privateDNSZone="none")),
    (kms(enabled=True, keyId="k") | OWN_IDENTITY, kms(enabled=False)),
]


def test_a_cluster_with_windows_nodes_does_not_turn_to_cilium() -> None:
    cloud = Cloud().create(net(**OVERLAY)).put_pool(WINDOWS)
    with pytest.raises(AksError) as refused:
        cloud.update(net(networkDataplane="cilium"))
    assert refused.value.rule == "cilium-without-windows"


@pytest.mark.parametrize(("before", "update"), ALLOWED, ids=str)
def test_a_change_that_aks_knows_a_way_for_is_accepted_and_leaves_nothing_behind(
    before: dict[str, Any], update: dict[str, Any]
) -> None:
    cloud = Cloud().create(before)
    cloud.update(update)
    document = dict(cloud.world.get_cluster(CLUSTER))
    network = document["properties"]["networkProfile"]
    assert ("loadBalancerProfile" in network) is (network["outboundType"] == "loadBalancer")
    kinds = {"managedOutboundIPs", "outboundIPs", "outboundIPPrefixes"}
    assert len(kinds & network.get("loadBalancerProfile", {}).keys()) <= 1
    cloud.world.put_cluster(CLUSTER, document, WriteCondition(if_match=document["eTag"]))


@pytest.mark.parametrize(
    ("group", "label"),
    [
        ("MC_rg_one_westeurope", "MC_rg_one_westeurope"),
        ("MC_rg(a)_one", "MC_rg-a-_one"),
        ("g" * 80, "g" * 63),
        ("g" * 62 + "-rest", "g" * 62 + "z"),
        ("MC_rg_one_", "MC_rg_one_z"),
    ],
)
def test_the_name_of_a_resource_group_is_made_a_valid_label(group: str, label: str) -> None:
    assert group_label(group) == label
