"""Refusals about all agent pools of a cluster together: subnets, outbound ports, addresses of pods.

AKS counts what the pools may become, maxCount and the surge of an upgrade included.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from typing import Any

from localcloud.azure.world.refusals import isolation_rules
from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite
from shared.json_tree import Json

_NET = "networkProfile"
_PORTS = f"{_NET}.loadBalancerProfile.allocatedOutboundPorts"
_PORTS_OF_AN_ADDRESS, _PODS_OF_A_NODE, _LONGEST_LABEL = 64000, 2**8, 63
_OWN_SUBNET, _OTHER_NETWORK = (
    "Cannot use a custom subnet because agent pool {pool} is using a managed subnet. Please omit the "
    "vnetSubnetID parameter from the request.",
    "All agent pools must use subnets of the same virtual network.",
)


def pools_of(asked: RequestedWrite) -> list[Json]:
    """Return the agent pools of the result."""
    return asked.now("agentPoolProfiles") or []


def _largest(pool: Json) -> int:
    if (pool.get("powerState") or {}).get("code") == "Stopped":
        return 0
    scale = (pool.get("virtualMachinesProfile") or {}).get("scale") or {}
    sizes = [*(scale.get("manual") or ()), *(scale.get("autoscale") or ())]
    if sizes:
        return sum(size.get("maxCount", size.get("count")) or 0 for size in sizes)
    return int((pool.get("maxCount") if pool.get("enableAutoScaling") else None) or pool.get("count") or 0)


def _surge(pool: Json) -> int:
    settings = pool.get("upgradeSettings") or {}
    text, largest = settings.get("maxSurge"), _largest(pool)
    if pool.get("scaleSetPriority") == "Spot" or not largest:
        return 0
    if not text:
        return 0 if settings.get("maxUnavailable") else 1
    return math.ceil(largest * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def _too_many_ports(asked: RequestedWrite) -> bool | Mapping[str, Any]:
    ports, balancer = asked.now(_PORTS), asked.now(f"{_NET}.loadBalancerProfile") or {}
    several = balancer.get("enableMultipleStandardLoadBalancers")
    if not ports or asked.now(f"{_NET}.outboundType") != "loadBalancer" or several:
        return False
    if balancer.get("outboundIPPrefixes"):
        return False  # how many addresses a prefix has is not in the request
    own, managed = balancer.get("outboundIPs"), balancer.get("managedOutboundIPs") or {}
    addresses = (
        len(own["publicIPs"]) if own else (managed.get("count") or 1) + (managed.get("countIPv6") or 0)
    )
    behind = [pool for pool in pools_of(asked) if pool.get("mode") != "Gateway"]
    nodes = sum(_largest(pool) + _surge(pool) for pool in behind)
    needed, available = nodes * ports, addresses * _PORTS_OF_AN_ADDRESS
    numbers = {
        **{"ports": ports, "nodes": nodes, "needed": needed},
        **{"available": available, "addresses": addresses},
    }
    return numbers if needed > available else False


def _too_many_nodes(asked: RequestedWrite, *, kubenet: bool) -> bool | Mapping[str, Any]:
    is_kubenet = asked.now(f"{_NET}.networkPlugin") == "kubenet"
    if is_kubenet is not kubenet or not (kubenet or asked.now(f"{_NET}.networkPluginMode") == "overlay"):
        return False
    ranges = asked.now(f"{_NET}.podCidrs") or [asked.now(f"{_NET}.podCidr")]
    pods = next(
        (network for text in ranges if text and (network := ipaddress.ip_network(text)).version == 4), None
    )
    nodes = sum(_largest(pool) + (0 if kubenet else _surge(pool)) for pool in pools_of(asked))
    if pods is None or nodes * _PODS_OF_A_NODE <= pods.num_addresses:
        return False
    return {"wanted": nodes * _PODS_OF_A_NODE, "available": pods.num_addresses, "range": str(pods)}


def _mixed(asked: RequestedWrite) -> bool | Mapping[str, Any]:
    managed = [str(pool["name"]) for pool in pools_of(asked) if not pool.get("vnetSubnetID")]
    hosted = (asked.now("hostedSystemProfile") or {}).get("nodeSubnetID")
    mixed = managed and len(managed) < len(pools_of(asked)) and not hosted
    return {"pool": managed[0]} if mixed else False


def _several_networks(asked: RequestedWrite) -> bool:
    subnets = [pool.get(key) for pool in pools_of(asked) for key in ("vnetSubnetID", "podSubnetID")]
    return len({str(subnet).lower().split("/subnets/")[0] for subnet in subnets if subnet}) > 1


def _pods_elsewhere(asked: RequestedWrite) -> bool:
    flat = asked.now(f"{_NET}.networkPlugin") == "azure" and not asked.now(f"{_NET}.networkPluginMode")
    return not flat and any(pool.get("podSubnetID") for pool in pools_of(asked))


def _nodes_in_a_delegated_subnet(asked: RequestedWrite) -> bool:
    own = {str(pool["vnetSubnetID"]).lower() for pool in pools_of(asked) if pool.get("vnetSubnetID")}
    subnets = [pool.get("podSubnetID") for pool in pools_of(asked)]
    subnets.append((asked.now("apiServerAccessProfile") or {}).get("subnetId"))
    return any(str(subnet).lower() in own for subnet in subnets if subnet)


def _no_label(asked: RequestedWrite) -> bool:
    overlay = asked.now(f"{_NET}.networkPluginMode") == "overlay"
    ids = [str(pool.get("vnetSubnetID") or "") for pool in pools_of(asked)]
    return overlay and any(len(name) > _LONGEST_LABEL for text in ids for name in text.split("/"))


RULES = (
    *isolation_rules.OF_POOLS,
    RefusalRule(
        "pods-of-a-subnet",
        "docs concepts-network-cni-overview: the options for addresses; configure-kubenet",
        "agentPoolProfile.podSubnetID",
        "podSubnetID is allowed only with networkPlugin azure without networkPluginMode.",
        _pods_elsewhere,
    ),
    RefusalRule(
        "nodes-in-no-delegated-subnet",
        "docs concepts-network-cni-overview: the subnet of a pool can't be a delegated subnet",
        "agentPoolProfile.vnetSubnetID",
        "The subnet of the nodes is delegated to Microsoft.ContainerService/managedClusters.",
        _nodes_in_a_delegated_subnet,
        code="SubnetIsDelegated",
    ),
    RefusalRule(
        "labels-of-the-network",
        "docs concepts-network-azure-cni-overlay: names of 63 characters or fewer",
        "agentPoolProfile.vnetSubnetID",
        "The names of the subnet, its network and its resource group must have 63 characters or fewer.",
        _no_label,
    ),
    RefusalRule(
        "routes-of-kubenet",
        "docs configure-kubenet: a maximum of 400 routes in a UDR",
        "agentPoolProfile.count",
        "A cluster with networkPlugin kubenet cannot have more than 400 nodes.",
        lambda asked: (
            asked.now(f"{_NET}.networkPlugin") == "kubenet" and sum(map(_largest, pools_of(asked))) > 400
        ),
    ),
    RefusalRule(
        "own-and-managed-subnets",
        "MicrosoftDocs/azure-docs#116169; Azure/AKS#2927",
        "agentPoolProfile.vnetSubnetID",
        _OWN_SUBNET,
        _mixed,
    ),
    RefusalRule(
        "machines-need-user-identity",
        "docs virtual-machines-node-pools: custom virtual network requirement",
        "agentPoolProfile.type",
        "Agent pools of type VirtualMachines in a custom virtual network need identity type UserAssigned.",
        lambda asked: (
            asked.now("identity.type") == "SystemAssigned"
            and any(
                pool.get("type") == "VirtualMachines" and pool.get("vnetSubnetID") for pool in pools_of(asked)
            )
        ),
    ),
    RefusalRule(
        "one-virtual-network",
        "docs create-node-pools: all node pools must reside in the same virtual network",
        "agentPoolProfile.vnetSubnetID",
        _OTHER_NETWORK,
        _several_networks,
    ),
    RefusalRule(
        "load-balancer-ports-of-all-nodes",
        "Azure/azure-cli#22374; jenkins-infra/azure#580, #581: the sum of maxCount, and the surge of each "
        "pool",
        _PORTS,
        "Load balancer profile allocated ports {ports} is not in an allowable range given the number of "
        "nodes and IPs provisioned. Total node count {nodes} requires {needed} ports but only {available} "
        "ports are available given {addresses} outbound public IPs. Refer to https://aka.ms/aks/slb-ports "
        "for more details.",
        _too_many_ports,
        code="InvalidLoadBalancerProfileAllocatedOutboundPorts",
    ),
    RefusalRule(
        "pod-range-of-all-nodes",
        "Azure/AKS-Construction#701; Azure/AKS#4467: the sum of maxCount, and the surge of each pool",
        f"{_NET}.podCIDR",
        "Pre-allocated IPs {wanted} exceeds IPs available {available} in Subnet Cidr {range}, Subnet Name "
        "networkProfile.podCIDR. If Autoscaler is enabled, the max-count from each nodepool is counted "
        "towards this total (which means that pre-allocated IPs count represents a theoretical max value, "
        "not the actual number of IPs requested). http://aka.ms/aks/insufficientsubnetsize",
        lambda asked: _too_many_nodes(asked, kubenet=False),
        code="InsufficientSubnetSize",
    ),
    RefusalRule(
        "pod-range-of-kubenet",
        "Azure/AKS-Construction#357: a /24 for each node",
        "agentPoolProfile.count",
        "Pre-allocated IPs {wanted} exceeds IPs available {available} in Pod Cidr {range}",
        lambda asked: _too_many_nodes(asked, kubenet=True),
        code="InsufficientPodCidr",
    ),
)
