"""Refusals about the egress of a cluster: load balancer, NAT gateway, outbound type."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, outside

_NET = "networkProfile"
_LB, _NAT = f"{_NET}.loadBalancerProfile", f"{_NET}.natGatewayProfile"
_OUT = f"{_NET}.outboundType"
LB_KINDS = ("managedOutboundIPs", "outboundIPPrefixes", "outboundIPs")
LB_EGRESS = (*LB_KINDS, "allocatedOutboundPorts", "idleTimeoutInMinutes")
"""The fields about egress; ``backendPoolType`` is about the services of any cluster."""
NAT_OWN, NAT_MANAGED = ("outboundIPs", "outboundIPPrefixes"), "managedOutboundIPProfile"
OUTBOUND_PATHS = {
    False: set(permutations(("loadBalancer", "managedNATGateway", "none"), 2)),
    True: set(permutations(("loadBalancer", "userAssignedNATGateway", "userDefinedRouting", "none"), 2)),
}
"""The changes of outboundType that AKS knows, by whether the nodes are in a network of one's own.

That from managedNATGateway to loadBalancer is in the page until March 2026, and no longer since: it is taken.
"""


def own_network(asked: RequestedWrite) -> bool:
    """Return whether the nodes are in a network that is not AKS' own."""
    return any(pool.get("vnetSubnetID") for pool in asked.now("agentPoolProfiles") or ())


def _given(asked: RequestedWrite, profile: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if asked.says(f"{profile}.{name}") is not None]


def _wrong_outbound_change(asked: RequestedWrite) -> bool:
    change = (asked.was(_OUT), asked.says(_OUT))
    return asked.changes(_OUT) and change not in OUTBOUND_PATHS[own_network(asked)]


def families(asked: RequestedWrite) -> list[str]:
    """Return the IP families of the cluster."""
    return asked.now(f"{_NET}.ipFamilies") or ["IPv4"]


RULES = (
    RefusalRule(
        "load-balancer-one-kind",
        "Azure/azure-cli-extensions#4205",
        _LB,
        "Load balancer profile must specify exactly one of ManagedOutboundIPs, OutboundIPPrefixes and "
        "OutboundIPs. Please refer to http://aka.ms/slb.",
        lambda asked: len(_given(asked, _LB, LB_KINDS)) > 1,
        code="InvalidLoadBalancerProfile",
    ),
    RefusalRule(
        "user-defined-routing-without-load-balancer",
        "Azure/bicep-registry-modules#5759; hashicorp/terraform-provider-azurerm#28541",
        _LB,
        "UserDefinedRouting and load balancer profile are mutually exclusive. Please refer to "
        "http://aka.ms/aks/outboundtype for more details",
        lambda asked: _given(asked, _LB, LB_EGRESS) and asked.now(_OUT) == "userDefinedRouting",
        code="InvalidUserDefinedRoutingWithLoadBalancerProfile",
    ),
    RefusalRule(
        "load-balancer-profile-of-another-outbound-type",
        "docs egress-outboundtype: the load balancer is the egress of outboundType loadBalancer only",
        _LB,
        "loadBalancerProfile is allowed only with outboundType loadBalancer.",
        lambda asked: (
            _given(asked, _LB, LB_EGRESS) and asked.now(_OUT) not in ("loadBalancer", "userDefinedRouting")
        ),
    ),
    RefusalRule(
        "nat-profile-of-another-outbound-type",
        "docs nat-gateway: the profile belongs to outboundType managedNATGateway",
        _NAT,
        "natGatewayProfile is allowed only with outboundType managedNATGateway.",
        lambda asked: asked.says(_NAT) and asked.now(_OUT) != "managedNATGateway",
    ),
    RefusalRule(
        "nat-managed-or-own-addresses",
        "docs nat-gateway: you cannot use both Azure-managed and customer-defined outbound IPs",
        _NAT,
        "natGatewayProfile must specify either managed outbound IPs or IPs and prefixes of one's own.",
        lambda asked: _given(asked, _NAT, NAT_OWN) and _given(asked, _NAT, (NAT_MANAGED,)),
    ),
    RefusalRule(
        "nat-addresses-change-hands",
        "docs nat-gateway: it can't be updated to switch between customer-defined and managed addresses",
        _NAT,
        "The outbound IPs of a managed NAT gateway cannot change between managed ones and one's own.",
        lambda asked: (
            (_given(asked, _NAT, NAT_OWN) and asked.was(f"{_NAT}.{NAT_MANAGED}"))
            or (_given(asked, _NAT, (NAT_MANAGED,)) and any(asked.was(f"{_NAT}.{own}") for own in NAT_OWN))
        ),
    ),
    RefusalRule(
        "nat-v2-only",
        "models ManagedClusterNATGatewayProfile.outbound_ip_prefixes; docs nat-gateway: IPv6 and prefixes",
        _NAT,
        "outboundIPPrefixes and countIPv6 are allowed only with sku StandardV2.",
        lambda asked: (
            asked.now(f"{_NAT}.sku") == "Standard"
            and (asked.now(f"{_NAT}.outboundIPPrefixes") or asked.now(f"{_NAT}.{NAT_MANAGED}.countIPv6"))
        ),
    ),
    RefusalRule(
        "nat-sku-back",
        "models ManagedClusterNATGatewaySku: V2 addresses do not work with Standard",
        f"{_NAT}.sku",
        "The sku of a managed NAT gateway cannot change from StandardV2 to Standard.",
        lambda asked: asked.was(f"{_NAT}.sku") == "StandardV2" and asked.says(f"{_NAT}.sku") == "Standard",
    ),
    RefusalRule(
        "nat-count",
        "models ManagedClusterManagedOutboundIPProfile.count",
        f"{_NAT}.{NAT_MANAGED}.count",
        "The count of managed outbound IPs of a NAT gateway must be between 1 and 16.",
        outside(f"{_NAT}.{NAT_MANAGED}.count", 1, 16),
    ),
    RefusalRule(
        "nat-count-ipv6",
        "models ManagedClusterManagedOutboundIPProfile.count_ipv6",
        f"{_NAT}.{NAT_MANAGED}.countIPv6",
        "The count of managed IPv6 outbound IPs of a NAT gateway must be between 1 and 16.",
        outside(f"{_NAT}.{NAT_MANAGED}.countIPv6", 1, 16),
    ),
    RefusalRule(
        "nat-idle-timeout",
        "models ManagedClusterNATGatewayProfile.idle_timeout_in_minutes",
        f"{_NAT}.idleTimeoutInMinutes",
        "idleTimeoutInMinutes must be between 4 and 120.",
        outside(f"{_NAT}.idleTimeoutInMinutes", 4, 120),
    ),
    RefusalRule(
        "load-balancer-count",
        "models ManagedClusterLoadBalancerProfileManagedOutboundIPs.count",
        f"{_LB}.managedOutboundIPs.count",
        "The count of managed outbound IPs must be between 1 and 100.",
        outside(f"{_LB}.managedOutboundIPs.count", 1, 100),
    ),
    RefusalRule(
        "load-balancer-count-ipv6",
        "models ManagedClusterLoadBalancerProfileManagedOutboundIPs.count_ipv6",
        f"{_LB}.managedOutboundIPs.countIPv6",
        "The count of managed IPv6 outbound IPs must be between 1 and 100, in a dual-stack cluster only.",
        lambda asked: (
            (count := asked.says(f"{_LB}.managedOutboundIPs.countIPv6"))
            and (not 0 <= count <= 100 or "IPv6" not in families(asked))
        ),
    ),
    RefusalRule(
        "load-balancer-ports",
        "models ManagedClusterLoadBalancerProfile.allocated_outbound_ports",
        f"{_LB}.allocatedOutboundPorts",
        "allocatedOutboundPorts must be between 0 and 64000.",
        outside(f"{_LB}.allocatedOutboundPorts", 0, 64000),
    ),
    RefusalRule(
        "load-balancer-idle-timeout",
        "models ManagedClusterLoadBalancerProfile.idle_timeout_in_minutes",
        f"{_LB}.idleTimeoutInMinutes",
        "idleTimeoutInMinutes must be between 4 and 120.",
        outside(f"{_LB}.idleTimeoutInMinutes", 4, 120),
    ),
    RefusalRule(
        "outbound-type-paths",
        "docs egress-outboundtype: the tables of supported migration paths",
        _OUT,
        "Changing outboundType that way is not supported.",
        _wrong_outbound_change,
    ),
    RefusalRule(
        "managed-nat-in-own-network",
        "docs nat-gateway: managed NAT gateway is incompatible with custom virtual networks",
        _OUT,
        "outboundType managedNATGateway is not allowed with a virtual network of one's own.",
        lambda asked: asked.says(_OUT) == "managedNATGateway" and own_network(asked),
    ),
    RefusalRule(
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
    RefusalRule(
        "basic-load-balancer-retired",
        "docs upgrade-basic-load-balancer-on-aks: retired on 30 September 2025; no way back",
        f"{_NET}.loadBalancerSku",
        "The basic load balancer is retired. Use loadBalancerSku standard.",
        lambda asked: (
            asked.says(f"{_NET}.loadBalancerSku") == "basic"
            and asked.was(f"{_NET}.loadBalancerSku") != "basic"
        ),
    ),
)
