"""Changes of a cluster that AKS knows a way for, and a change that its nodes forbid."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.arm_resources import Condition
from tests.support.azure_cloud import CLUSTER, Cloud
from tests.support.refused_writes import (
    ADDRESS,
    FLAT,
    MANAGED,
    OVERLAY,
    SUBNET,
    WINDOWS,
    access,
    kms,
    lb,
    nat,
    net,
)

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
    (kms(enabled=True, keyId="k"), kms(enabled=False)),
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
    cloud.world.put_cluster(CLUSTER, document, Condition(if_match=document["eTag"]))
