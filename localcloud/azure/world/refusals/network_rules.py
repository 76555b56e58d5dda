"""Refusals about the network of a cluster: addresses, plugin and data plane, and those of its egress."""

from __future__ import annotations

import ipaddress
from typing import Any

from localcloud.azure.world.refusals import egress_rules
from localcloud.azure.world.refusals.egress_rules import families
from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, same, unless

_NET = "networkProfile"
_OF_PLATFORM = ipaddress.IPv4Network("168.63.129.16/32")
_OF_AKS = [
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")
]


def _ranges(asked: RequestedWrite, name: str) -> list[str]:
    return asked.says(f"{_NET}.{name}s") or [
        document for document in [asked.says(f"{_NET}.{name}")] if document
    ]


def _network_of(text: str) -> Any:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _not_a_range(asked: RequestedWrite) -> bool:
    return any(
        _network_of(text) is None for name in ("podCidr", "serviceCidr") for text in _ranges(asked, name)
    )


def _wrong_families(asked: RequestedWrite) -> bool:
    wanted = families(asked)
    for name in ("podCidr", "serviceCidr"):
        ranges = [f"IPv{_network_of(text).version}" for text in _ranges(asked, name)]
        if ranges and ranges != wanted[: len(ranges)]:
            return True
    return False


def _dns_outside(asked: RequestedWrite) -> bool:
    address, ranges = asked.now(f"{_NET}.dnsServiceIP"), asked.now(f"{_NET}.serviceCidrs") or []
    if not address or not ranges:
        return False
    try:
        return all(ipaddress.ip_address(address) not in ipaddress.ip_network(text) for text in ranges)
    except ValueError:
        return True


def _pod_range_moves(asked: RequestedWrite) -> bool:
    """A range of pods may only grow, and only in an overlay; an update to overlay names a new one."""
    old, new = asked.was(f"{_NET}.podCidr"), asked.now(f"{_NET}.podCidr")
    if asked.before is None or not new or not old or same(new, old) or _turns_to_overlay(asked):
        return False
    grows = asked.was(f"{_NET}.networkPluginMode") == "overlay"
    return not (grows and _network_of(old).subnet_of(_network_of(new)))


def _turns_to_overlay(asked: RequestedWrite) -> bool:
    mode = f"{_NET}.networkPluginMode"
    return asked.before is not None and asked.now(mode) == "overlay" and asked.was(mode) != "overlay"


def _turns_to_cilium(asked: RequestedWrite) -> bool:
    plane = f"{_NET}.networkDataplane"
    return asked.before is not None and asked.now(plane) == "cilium" and asked.was(plane) != "cilium"


def _policy_in_the_way(asked: RequestedWrite) -> bool:
    policy = asked.was(f"{_NET}.networkPolicy")
    return _turns_to_overlay(asked) and policy not in (None, "", "none", "cilium")


def _windows(asked: RequestedWrite) -> bool:
    return any(pool.get("osType") == "Windows" for pool in asked.now("agentPoolProfiles") or ())


def _families_change(asked: RequestedWrite) -> bool:
    """A second family may be added to an overlay; nothing else changes."""
    path = f"{_NET}.ipFamilies"
    adds = asked.was(path) == ["IPv4"] and asked.says(path) == ["IPv4", "IPv6"]
    return asked.changes(path) and not (adds and asked.was(f"{_NET}.networkPluginMode") == "overlay")


def _all_ranges(asked: RequestedWrite, name: str) -> list[Any]:
    texts = asked.now(f"{_NET}.{name}s") or [asked.now(f"{_NET}.{name}")]
    return [found for text in texts if text and (found := _network_of(text)) is not None]


def _ranges_meet(asked: RequestedWrite) -> bool:
    return any(
        pods.version == services.version and pods.overlaps(services)
        for pods in _all_ranges(asked, "podCidr")
        for services in _all_ranges(asked, "serviceCidr")
    )


def _reserved(asked: RequestedWrite) -> bool:
    ranges = [*_all_ranges(asked, "podCidr"), *_all_ranges(asked, "serviceCidr")]
    return any(found.version == 4 and found.overlaps(kept) for found in ranges for kept in _OF_AKS)


def _dns_is_first(asked: RequestedWrite) -> bool:
    """The first address of the services is that of the API, and the one before it that of the network."""
    address = asked.now(f"{_NET}.dnsServiceIP")
    return any(
        address and ipaddress.ip_address(address) in [network.network_address, network.network_address + 1]
        for network in _all_ranges(asked, "serviceCidr")
    )


RULES = (
    *egress_rules.RULES,
    RefusalRule(
        "ranges-are-ranges",
        "models ContainerServiceNetworkProfile.pod_cidrs, service_cidrs: CIDR notation",
        _NET,
        "podCidrs and serviceCidrs must be IP ranges in CIDR notation.",
        _not_a_range,
    ),
    RefusalRule(
        "families-are-one-or-both",
        "docs configure-dual-stack: only ipv4 or ipv4,ipv6 are supported",
        f"{_NET}.ipFamilies",
        "ipFamilies must be [IPv4] or [IPv4, IPv6].",
        lambda asked: families(asked) not in (["IPv4"], ["IPv4", "IPv6"]),
    ),
    RefusalRule(
        "ranges-match-families",
        "docs configure-dual-stack: count and order of the ranges match the IP families",
        f"{_NET}.ipFamilies",
        "The ranges of pods and services must match ipFamilies in count and order.",
        _wrong_families,
    ),
    RefusalRule(
        "families-change",
        "docs azure-cni-overlay: an overlay cluster can be updated to dual-stack",
        f"{_NET}.ipFamilies",
        "ipFamilies can only change from IPv4 to dual-stack, in an overlay.",
        _families_change,
    ),
    RefusalRule(
        "dual-stack-needs-overlay",
        "docs configure-dual-stack: Azure CNI Overlay is required",
        f"{_NET}.ipFamilies",
        "Dual-stack needs networkPlugin azure with networkPluginMode overlay.",
        lambda asked: "IPv6" in families(asked) and asked.now(f"{_NET}.networkPluginMode") != "overlay",
    ),
    RefusalRule(
        "dual-stack-without-older-policies",
        "docs azure-cni-overlay: not supported with dual-stack networking",
        f"{_NET}.networkPolicy",
        "networkPolicy azure and calico are not supported with dual-stack networking.",
        lambda asked: "IPv6" in families(asked) and asked.now(f"{_NET}.networkPolicy") in ("azure", "calico"),
        code="UnsupportedDualStackNetworkPolicy",
    ),
    RefusalRule(
        "dns-inside-services",
        "models ContainerServiceNetworkProfile.dns_service_ip",
        f"{_NET}.dnsServiceIP",
        "dnsServiceIP must be within serviceCidr.",
        _dns_outside,
    ),
    RefusalRule(
        "dns-is-not-the-first",
        "docs configure-kubenet: not the first address of the range; Azure/AKS#2579",
        f"{_NET}.dnsServiceIP",
        "dnsServiceIP must not be the first address of serviceCidr.",
        _dns_is_first,
    ),
    RefusalRule(
        "dns-is-not-the-broadcast",
        "the code DnsBroadcastAddressConflicting of the resource provider, with its sentence",
        f"{_NET}.dnsServiceIP",
        "dnsServiceIP must not be the broadcast address of serviceCidr.",
        lambda asked: (
            str(asked.now(f"{_NET}.dnsServiceIP"))
            in [
                str(found.broadcast_address)
                for found in _all_ranges(asked, "serviceCidr")
                if found.version == 4
            ]
        ),
        code="DnsBroadcastAddressConflicting",
    ),
    RefusalRule(
        "services-are-of-a-network",
        "release notes of AKS, 2023-10-01; docs of virtual networks, virtual-networks-faq",
        f"{_NET}.serviceCidr",
        "serviceCidr must not be in an address range that a virtual network cannot have.",
        lambda asked: any(
            found.version == 4 and (found.is_multicast or found.is_loopback or _OF_PLATFORM.subnet_of(found))
            for found in _all_ranges(asked, "serviceCidr")
        ),
    ),
    RefusalRule(
        "services-fit",
        "docs concepts-network-ip-address-planning: smaller than /12",
        f"{_NET}.serviceCidr",
        "serviceCidr must not be larger than /12.",
        lambda asked: any(
            found.prefixlen < (12 if found.version == 4 else 108)
            for found in _all_ranges(asked, "serviceCidr")
        ),
    ),
    RefusalRule(
        "ranges-of-aks",
        "docs concepts-network-ip-address-planning; Azure/AKS#2234",
        _NET,
        "The ranges of pods and services must not overlap 169.254.0.0/16, 172.30.0.0/16, 172.31.0.0/16 and "
        "192.0.2.0/24.",
        _reserved,
    ),
    RefusalRule(
        "pods-and-services-are-apart",
        "docs concepts-network-azure-cni-overlay: must not overlap",
        f"{_NET}.podCidr",
        "podCidr and serviceCidr must not overlap.",
        _ranges_meet,
    ),
    RefusalRule(
        "pod-range-of-a-flat-network",
        "azure-cli get_network_plugin; azurerm cluster: pod_cidr with the plugin azure needs overlay",
        f"{_NET}.podCidr",
        "podCidr is not allowed with networkPlugin azure without networkPluginMode overlay.",
        lambda asked: (
            _ranges(asked, "podCidr")
            and asked.now(f"{_NET}.networkPlugin") == "azure"
            and asked.now(f"{_NET}.networkPluginMode") != "overlay"
        ),
    ),
    RefusalRule(
        "azure-policy-is-azure",
        "docs use-network-policies: Azure NPM is for Azure CNI; azurerm cluster: network_policy",
        f"{_NET}.networkPolicy",
        "networkPolicy azure needs networkPlugin azure.",
        lambda asked: (
            asked.now(f"{_NET}.networkPolicy") == "azure" and asked.now(f"{_NET}.networkPlugin") == "kubenet"
        ),
    ),
    RefusalRule(
        "cilium-has-its-policy",
        "Azure/bicep-registry-modules#3361, Azure/AKS-Construction#535",
        f"{_NET}.networkPolicy",
        "Cilium dataplane requires network policy cilium.",
        lambda asked: (
            asked.says(f"{_NET}.networkPolicy") in ("azure", "calico")
            and asked.now(f"{_NET}.networkDataplane") == "cilium"
        ),
        code="BadRequest",
    ),
    RefusalRule(
        "overlay-is-azure",
        "docs azure-cni-overlay: a mode of the azure plugin",
        f"{_NET}.networkPluginMode",
        "networkPluginMode overlay needs networkPlugin azure.",
        unless(f"{_NET}.networkPluginMode", f"{_NET}.networkPlugin", "azure"),
    ),
    RefusalRule(
        "cilium-is-azure",
        "docs update-azure-cni: Cilium on any mode of Azure CNI, not on kubenet",
        f"{_NET}.networkDataplane",
        "networkDataplane cilium needs networkPlugin azure.",
        lambda asked: (
            asked.now(f"{_NET}.networkDataplane") == "cilium"
            and asked.now(f"{_NET}.networkPlugin") != "azure"
        ),
    ),
    RefusalRule(
        "cilium-policy-needs-cilium",
        "docs azure-cni-powered-by-cilium: networkPolicy cilium comes with the data plane",
        f"{_NET}.networkPolicy",
        "networkPolicy cilium needs networkDataplane cilium.",
        lambda asked: (
            asked.now(f"{_NET}.networkPolicy") == "cilium"
            and asked.now(f"{_NET}.networkDataplane") != "cilium"
        ),
    ),
    RefusalRule(
        "overlay-and-cilium-are-two-writes",
        "docs update-azure-cni: the IPAM mode and the data plane can't be updated in a single operation",
        f"{_NET}.networkDataplane",
        "Updating the network plugin mode and the network data plane in one operation is not supported.",
        lambda asked: _turns_to_overlay(asked) and _turns_to_cilium(asked),
    ),
    RefusalRule(
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
    RefusalRule(
        "overlay-without-policy",
        "docs update-azure-cni: doesn't have network policies enabled",
        f"{_NET}.networkPolicy",
        "A cluster with a network policy engine cannot be updated to networkPluginMode overlay.",
        _policy_in_the_way,
    ),
    RefusalRule(
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
    RefusalRule(
        "cilium-without-windows",
        "docs update-azure-cni: not supported on clusters with Windows node pools",
        f"{_NET}.networkDataplane",
        "networkDataplane cilium is not supported with Windows node pools.",
        lambda asked: asked.now(f"{_NET}.networkDataplane") == "cilium" and _windows(asked),
    ),
    RefusalRule(
        "pod-range-grows",
        "docs azure-cni-overlay-pod-expand: an overlay's range can grow",
        f"{_NET}.podCidr",
        "Changing property 'networkProfile.podCidr' is not allowed.",
        _pod_range_moves,
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "network-security-needs-cilium",
        "models AdvancedNetworkingSecurity.enabled: only on cilium based clusters",
        f"{_NET}.advancedNetworking.security",
        "advancedNetworking.security needs networkDataplane cilium.",
        unless(f"{_NET}.advancedNetworking.security.enabled", f"{_NET}.networkDataplane", "cilium"),
    ),
)
