"""Refusals about the network of a cluster."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from localcloud.azure.world.refusals.rule import Asked, Rule, outside, same, unless

_NET = "networkProfile"
_LB, _NAT = f"{_NET}.loadBalancerProfile", f"{_NET}.natGatewayProfile"
_OUT = f"{_NET}.outboundType"
LB_KINDS = ("managedOutboundIPs", "outboundIPPrefixes", "outboundIPs")
LB_EGRESS = (*LB_KINDS, "allocatedOutboundPorts", "idleTimeoutInMinutes")
"""The fields about egress; ``backendPoolType`` is about the services of any cluster."""
NAT_OWN, NAT_MANAGED = ("outboundIPs", "outboundIPPrefixes"), "managedOutboundIPProfile"
OUTBOUND_PATHS = {
    False: {("loadBalancer", "managedNATGateway"), ("managedNATGateway", "loadBalancer")},
    True: {
        ("loadBalancer", "userAssignedNATGateway"),
        ("loadBalancer", "userDefinedRouting"),
        ("userAssignedNATGateway", "loadBalancer"),
        ("userAssignedNATGateway", "userDefinedRouting"),
        ("userDefinedRouting", "loadBalancer"),
        ("userDefinedRouting", "userAssignedNATGateway"),
    },
}
"""The changes of outboundType that AKS knows, by whether the nodes are in a network of one's own."""


def own_network(asked: Asked) -> bool:
    """Return whether the nodes are in a network that is not AKS' own."""
    return any(pool.get("vnetSubnetID") for pool in asked.now("agentPoolProfiles") or ())


def _given(asked: Asked, profile: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if asked.says(f"{profile}.{name}") is not None]


def _wrong_outbound_change(asked: Asked) -> bool:
    change = (asked.was(_OUT), asked.says(_OUT))
    return asked.changes(_OUT) and change not in OUTBOUND_PATHS[own_network(asked)]


def _ranges(asked: Asked, name: str) -> list[str]:
    return asked.says(f"{_NET}.{name}s") or [one for one in [asked.says(f"{_NET}.{name}")] if one]


def _families(asked: Asked) -> list[str]:
    return asked.now(f"{_NET}.ipFamilies") or ["IPv4"]


def _network_of(text: str) -> Any:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _not_a_range(asked: Asked) -> bool:
    return any(
        _network_of(text) is None for name in ("podCidr", "serviceCidr") for text in _ranges(asked, name)
    )


def _wrong_families(asked: Asked) -> bool:
    families = _families(asked)
    for name in ("podCidr", "serviceCidr"):
        ranges = [f"IPv{_network_of(text).version}" for text in _ranges(asked, name)]
        if ranges and ranges != families[: len(ranges)]:
            return True
    return False


def _dns_outside(asked: Asked) -> bool:
    address, ranges = asked.now(f"{_NET}.dnsServiceIP"), asked.now(f"{_NET}.serviceCidrs") or []
    if not address or not ranges:
        return False
    try:
        return all(ipaddress.ip_address(address) not in ipaddress.ip_network(text) for text in ranges)
    except ValueError:
        return True


def _pod_range_moves(asked: Asked) -> bool:
    """A range of pods may only grow, and only in an overlay; an update to overlay names a new one."""
    old, new = asked.was(f"{_NET}.podCidr"), asked.now(f"{_NET}.podCidr")
    if asked.before is None or not new or not old or same(new, old) or _turns_to_overlay(asked):
        return False
    grows = asked.was(f"{_NET}.networkPluginMode") == "overlay"
    return not (grows and _network_of(old).subnet_of(_network_of(new)))


def _turns_to_overlay(asked: Asked) -> bool:
    mode = f"{_NET}.networkPluginMode"
    return asked.before is not None and asked.now(mode) == "overlay" and asked.was(mode) != "overlay"


def _turns_to_cilium(asked: Asked) -> bool:
    plane = f"{_NET}.networkDataplane"
    return asked.before is not None and asked.now(plane) == "cilium" and asked.was(plane) != "cilium"


def _policy_in_the_way(asked: Asked) -> bool:
    policy = asked.was(f"{_NET}.networkPolicy")
    return _turns_to_overlay(asked) and policy not in (None, "", "none", "cilium")


def _windows(asked: Asked) -> bool:
    return any(pool.get("osType") == "Windows" for pool in asked.now("agentPoolProfiles") or ())


def _families_change(asked: Asked) -> bool:
    """A second family may be added to an overlay; nothing else changes."""
    path = f"{_NET}.ipFamilies"
    adds = asked.was(path) == ["IPv4"] and asked.says(path) == ["IPv4", "IPv6"]
    return asked.changes(path) and not (adds and asked.was(f"{_NET}.networkPluginMode") == "overlay")


RULES = (
    Rule(
        "load-balancer-one-kind",
        "Azure/azure-cli-extensions#4205",
        _LB,
        "Load balancer profile must specify exactly one of ManagedOutboundIPs, OutboundIPPrefixes and "
        "OutboundIPs. Please refer to http://aka.ms/slb.",
        lambda asked: len(_given(asked, _LB, LB_KINDS)) > 1,
        code="InvalidLoadBalancerProfile",
    ),
    Rule(
        "user-defined-routing-without-load-balancer",
        "Azure/bicep-registry-modules#5759; hashicorp/terraform-provider-azurerm#28541",
        _LB,
        "UserDefinedRouting and load balancer profile are mutually exclusive. Please refer to "
        "http://aka.ms/aks/outboundtype for more details",
        lambda asked: _given(asked, _LB, LB_EGRESS) and asked.now(_OUT) == "userDefinedRouting",
        code="InvalidUserDefinedRoutingWithLoadBalancerProfile",
    ),
    Rule(
        "load-balancer-profile-of-another-outbound-type",
        "docs egress-outboundtype: the load balancer is the egress of outboundType loadBalancer only",
        _LB,
        "loadBalancerProfile is allowed only with outboundType loadBalancer.",
        lambda asked: (
            _given(asked, _LB, LB_EGRESS) and asked.now(_OUT) not in ("loadBalancer", "userDefinedRouting")
        ),
    ),
    Rule(
        "nat-profile-of-another-outbound-type",
        "docs nat-gateway: the profile belongs to outboundType managedNATGateway",
        _NAT,
        "natGatewayProfile is allowed only with outboundType managedNATGateway.",
        lambda asked: asked.says(_NAT) and asked.now(_OUT) != "managedNATGateway",
    ),
    Rule(
        "nat-managed-or-own-addresses",
        "docs nat-gateway: you cannot use both Azure-managed and customer-defined outbound IPs",
        _NAT,
        "natGatewayProfile must specify either managed outbound IPs or IPs and prefixes of one's own.",
        lambda asked: _given(asked, _NAT, NAT_OWN) and _given(asked, _NAT, (NAT_MANAGED,)),
    ),
    Rule(
        "nat-addresses-change-hands",
        "docs nat-gateway: it can't be updated to switch between customer-defined and managed addresses",
        _NAT,
        "The outbound IPs of a managed NAT gateway cannot change between managed ones and one's own.",
        lambda asked: (
            (_given(asked, _NAT, NAT_OWN) and asked.was(f"{_NAT}.{NAT_MANAGED}"))
            or (_given(asked, _NAT, (NAT_MANAGED,)) and any(asked.was(f"{_NAT}.{own}") for own in NAT_OWN))
        ),
    ),
    Rule(
        "nat-v2-only",
        "models ManagedClusterNATGatewayProfile.outbound_ip_prefixes; docs nat-gateway: IPv6 and prefixes",
        _NAT,
        "outboundIPPrefixes and countIPv6 are allowed only with sku StandardV2.",
        lambda asked: (
            asked.now(f"{_NAT}.sku") == "Standard"
            and (asked.now(f"{_NAT}.outboundIPPrefixes") or asked.now(f"{_NAT}.{NAT_MANAGED}.countIPv6"))
        ),
    ),
    Rule(
        "nat-sku-back",
        "models ManagedClusterNATGatewaySku: V2 addresses do not work with Standard",
        f"{_NAT}.sku",
        "The sku of a managed NAT gateway cannot change from StandardV2 to Standard.",
        lambda asked: asked.was(f"{_NAT}.sku") == "StandardV2" and asked.says(f"{_NAT}.sku") == "Standard",
    ),
    Rule(
        "nat-count",
        "models ManagedClusterManagedOutboundIPProfile.count",
        f"{_NAT}.{NAT_MANAGED}.count",
        "The count of managed outbound IPs of a NAT gateway must be between 1 and 16.",
        outside(f"{_NAT}.{NAT_MANAGED}.count", 1, 16),
    ),
    Rule(
        "nat-count-ipv6",
        "models ManagedClusterManagedOutboundIPProfile.count_ipv6",
        f"{_NAT}.{NAT_MANAGED}.countIPv6",
        "The count of managed IPv6 outbound IPs of a NAT gateway must be between 1 and 16.",
        outside(f"{_NAT}.{NAT_MANAGED}.countIPv6", 1, 16),
    ),
    Rule(
        "nat-idle-timeout",
        "models ManagedClusterNATGatewayProfile.idle_timeout_in_minutes",
        f"{_NAT}.idleTimeoutInMinutes",
        "idleTimeoutInMinutes must be between 4 and 120.",
        outside(f"{_NAT}.idleTimeoutInMinutes", 4, 120),
    ),
    Rule(
        "load-balancer-count",
        "models ManagedClusterLoadBalancerProfileManagedOutboundIPs.count",
        f"{_LB}.managedOutboundIPs.count",
        "The count of managed outbound IPs must be between 1 and 100.",
        outside(f"{_LB}.managedOutboundIPs.count", 1, 100),
    ),
    Rule(
        "load-balancer-count-ipv6",
        "models ManagedClusterLoadBalancerProfileManagedOutboundIPs.count_ipv6",
        f"{_LB}.managedOutboundIPs.countIPv6",
        "The count of managed IPv6 outbound IPs must be between 1 and 100, in a dual-stack cluster only.",
        lambda asked: (
            (count := asked.says(f"{_LB}.managedOutboundIPs.countIPv6"))
            and (not 0 <= count <= 100 or "IPv6" not in _families(asked))
        ),
    ),
    Rule(
        "load-balancer-ports",
        "models ManagedClusterLoadBalancerProfile.allocated_outbound_ports",
        f"{_LB}.allocatedOutboundPorts",
        "allocatedOutboundPorts must be between 0 and 64000.",
        outside(f"{_LB}.allocatedOutboundPorts", 0, 64000),
    ),
    Rule(
        "load-balancer-idle-timeout",
        "models ManagedClusterLoadBalancerProfile.idle_timeout_in_minutes",
        f"{_LB}.idleTimeoutInMinutes",
        "idleTimeoutInMinutes must be between 4 and 120.",
        outside(f"{_LB}.idleTimeoutInMinutes", 4, 120),
    ),
    Rule(
        "outbound-type-paths",
        "docs egress-outboundtype: the tables of supported migration paths",
        _OUT,
        "Changing outboundType that way is not supported.",
        _wrong_outbound_change,
    ),
    Rule(
        "managed-nat-in-own-network",
        "docs nat-gateway: managed NAT gateway is incompatible with custom virtual networks",
        _OUT,
        "outboundType managedNATGateway is not allowed with a virtual network of one's own.",
        lambda asked: asked.says(_OUT) == "managedNATGateway" and own_network(asked),
    ),
    Rule(
        "own-egress-needs-own-network",
        "docs egress-outboundtype: the cluster must be in an existing virtual network",
        _OUT,
        "outboundType userDefinedRouting and userAssignedNATGateway need vnetSubnetID.",
        lambda asked: (
            asked.before is None
            and asked.says(_OUT) in ("userDefinedRouting", "userAssignedNATGateway")
            and not own_network(asked)
        ),
    ),
    Rule(
        "basic-load-balancer-retired",
        "docs upgrade-basic-load-balancer-on-aks: retired on 30 September 2025; no way back",
        f"{_NET}.loadBalancerSku",
        "The basic load balancer is retired. Use loadBalancerSku standard.",
        lambda asked: (
            asked.says(f"{_NET}.loadBalancerSku") == "basic"
            and asked.was(f"{_NET}.loadBalancerSku") != "basic"
        ),
    ),
    Rule(
        "ranges-are-ranges",
        "models ContainerServiceNetworkProfile.pod_cidrs, service_cidrs: CIDR notation",
        _NET,
        "podCidrs and serviceCidrs must be IP ranges in CIDR notation.",
        _not_a_range,
    ),
    Rule(
        "families-are-one-or-both",
        "docs configure-dual-stack: only ipv4 or ipv4,ipv6 are supported",
        f"{_NET}.ipFamilies",
        "ipFamilies must be [IPv4] or [IPv4, IPv6].",
        lambda asked: _families(asked) not in (["IPv4"], ["IPv4", "IPv6"]),
    ),
    Rule(
        "ranges-match-families",
        "docs configure-dual-stack: count and order of the ranges match the IP families",
        f"{_NET}.ipFamilies",
        "The ranges of pods and services must match ipFamilies in count and order.",
        _wrong_families,
    ),
    Rule(
        "families-change",
        "docs azure-cni-overlay: an overlay cluster can be updated to dual-stack",
        f"{_NET}.ipFamilies",
        "ipFamilies can only change from IPv4 to dual-stack, in an overlay.",
        _families_change,
    ),
    Rule(
        "dual-stack-needs-overlay",
        "docs configure-dual-stack: Azure CNI Overlay is required",
        f"{_NET}.ipFamilies",
        "Dual-stack needs networkPlugin azure with networkPluginMode overlay.",
        lambda asked: "IPv6" in _families(asked) and asked.now(f"{_NET}.networkPluginMode") != "overlay",
    ),
    Rule(
        "dns-inside-services",
        "models ContainerServiceNetworkProfile.dns_service_ip",
        f"{_NET}.dnsServiceIP",
        "dnsServiceIP must be within serviceCidr.",
        _dns_outside,
    ),
    Rule(
        "overlay-is-azure",
        "docs azure-cni-overlay: a mode of the azure plugin",
        f"{_NET}.networkPluginMode",
        "networkPluginMode overlay needs networkPlugin azure.",
        unless(f"{_NET}.networkPluginMode", f"{_NET}.networkPlugin", "azure"),
    ),
    Rule(
        "cilium-is-azure",
        "docs update-azure-cni: Cilium on any mode of Azure CNI, not on kubenet",
        f"{_NET}.networkDataplane",
        "networkDataplane cilium needs networkPlugin azure.",
        lambda asked: (
            asked.now(f"{_NET}.networkDataplane") == "cilium"
            and asked.now(f"{_NET}.networkPlugin") != "azure"
        ),
    ),
    Rule(
        "cilium-policy-needs-cilium",
        "docs azure-cni-powered-by-cilium: networkPolicy cilium comes with the data plane",
        f"{_NET}.networkPolicy",
        "networkPolicy cilium needs networkDataplane cilium.",
        lambda asked: (
            asked.now(f"{_NET}.networkPolicy") == "cilium"
            and asked.now(f"{_NET}.networkDataplane") != "cilium"
        ),
    ),
    Rule(
        "overlay-and-cilium-are-two-writes",
        "docs update-azure-cni: the IPAM mode and the data plane can't be updated in a single operation",
        f"{_NET}.networkDataplane",
        "Updating the network plugin mode and the network data plane in one operation is not supported.",
        lambda asked: _turns_to_overlay(asked) and _turns_to_cilium(asked),
    ),
    Rule(
        "overlay-needs-a-range",
        "docs update-azure-cni: --pod-cidr is required when updating from Azure CNI",
        f"{_NET}.podCidr",
        "podCidr is required to update to networkPluginMode overlay.",
        lambda asked: (
            _turns_to_overlay(asked)
            and asked.was(f"{_NET}.networkPlugin") == "azure"
            and not _ranges(asked, "podCidr")
        ),
    ),
    Rule(
        "overlay-without-policy",
        "docs update-azure-cni: doesn't have network policies enabled",
        f"{_NET}.networkPolicy",
        "A cluster with a network policy engine cannot be updated to networkPluginMode overlay.",
        _policy_in_the_way,
    ),
    Rule(
        "kubenet-to-azure-is-overlay",
        "docs update-azure-cni: a kubenet cluster migrates to Azure CNI Overlay only",
        f"{_NET}.networkPlugin",
        "Changing networkPlugin from kubenet to azure needs networkPluginMode overlay.",
        lambda asked: (
            asked.was(f"{_NET}.networkPlugin") == "kubenet"
            and asked.now(f"{_NET}.networkPlugin") == "azure"
            and asked.now(f"{_NET}.networkPluginMode") != "overlay"
        ),
    ),
    Rule(
        "cilium-without-windows",
        "docs update-azure-cni: not supported on clusters with Windows node pools",
        f"{_NET}.networkDataplane",
        "networkDataplane cilium is not supported with Windows node pools.",
        lambda asked: asked.now(f"{_NET}.networkDataplane") == "cilium" and _windows(asked),
    ),
    Rule(
        "pod-range-grows",
        "docs azure-cni-overlay-pod-expand: an overlay's range can grow",
        f"{_NET}.podCidr",
        "Changing property 'networkProfile.podCidr' is not allowed.",
        _pod_range_moves,
        code="PropertyChangeNotAllowed",
    ),
    Rule(
        "network-security-needs-cilium",
        "models AdvancedNetworkingSecurity.enabled: only on cilium based clusters",
        f"{_NET}.advancedNetworking.security",
        "advancedNetworking.security needs networkDataplane cilium.",
        unless(f"{_NET}.advancedNetworking.security.enabled", f"{_NET}.networkDataplane", "cilium"),
    ),
)
