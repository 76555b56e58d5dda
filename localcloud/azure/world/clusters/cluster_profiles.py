"""The profiles of a managed cluster: what replaces what in a PUT, and how AKS returns them.

AKS returns single addresses as networks, fills in defaults, and adds names of its own to the proxy's
exceptions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world.refusals.egress_rules import LB_KINDS, NAT_MANAGED, NAT_OWN
from shared.json_tree import Json


def merged_properties(old: Json, given: Json) -> dict[str, Any]:
    """Return properties after a PUT: objects are merged, anything else is replaced.

    What excludes another takes its place: the kind of outbound address, the key of a service that is switched
    off, the profile of an outbound type that is left, one range next to a list of them.
    """
    merged = _merge(old, given)
    network, asked = dict(merged["networkProfile"]), given.get("networkProfile") or {}
    for name, kinds in (("loadBalancerProfile", LB_KINDS), ("natGatewayProfile", (*NAT_OWN, NAT_MANAGED))):
        named = [kind for kind in kinds if (asked.get(name) or {}).get(kind) is not None]
        if named and network.get(name):
            network[name] = {k: v for k, v in network[name].items() if k not in kinds or k in named}
    if network.get("outboundType") != "loadBalancer" and "loadBalancerProfile" in network:
        left = {k: v for k, v in network.pop("loadBalancerProfile").items() if k == "backendPoolType"}
        network |= {"loadBalancerProfile": left} if asked.get("loadBalancerProfile") else {}
    if network.get("outboundType") != "managedNATGateway":
        network.pop("natGatewayProfile", None)
    for single in ("podCidr", "serviceCidr"):
        if asked.get(single) and not asked.get(f"{single}s"):
            network[f"{single}s"] = [asked[single], *(network.get(f"{single}s") or ())[1:]]
    security = merged.get("securityProfile") or {}
    if security.get("azureKeyVaultKms") and not security["azureKeyVaultKms"].get("enabled"):
        merged["securityProfile"] = {**security, "azureKeyVaultKms": {"enabled": False}}
    return {**merged, "networkProfile": network}


def shown_profiles(resource: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return properties as AKS returns them."""
    shown = {**properties, "networkProfile": _network(resource, dict(properties["networkProfile"]))}
    access = dict(shown.get("apiServerAccessProfile") or {})
    if access.get("authorizedIPRanges"):
        access["authorizedIPRanges"] = [_range(text) for text in access["authorizedIPRanges"]]
        shown["apiServerAccessProfile"] = access
    proxy = dict(shown.get("httpProxyConfig") or {})
    if proxy.get("noProxy"):
        proxy["noProxy"] = list(dict.fromkeys([*proxy["noProxy"], "localhost", "127.0.0.1", "konnectivity"]))
        shown["httpProxyConfig"] = proxy
    addons = shown.get("addonProfiles") or {}
    if addons:
        shown["addonProfiles"] = {name: _addon(resource, name, dict(addon)) for name, addon in addons.items()}
    return shown


def _merge(old: Json, new: Json) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        merged[key] = (
            _merge(before, value) if isinstance(value, Mapping) and isinstance(before, Mapping) else value
        )
    return merged


def _range(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        return text


def _network(resource: str, network: dict[str, Any]) -> dict[str, Any]:
    for single in ("podCidr", "serviceCidr"):
        many = network.get(f"{single}s") or ([network[single]] if network.get(single) else [])
        if many:
            network[f"{single}s"], network[single] = many, many[0]
    if network.get("outboundType") == "loadBalancer":
        profile = dict(network.get("loadBalancerProfile") or {})
        if not profile.keys() & {"outboundIPs", "outboundIPPrefixes"}:
            profile.setdefault("managedOutboundIPs", {"count": 1})
        profile["effectiveOutboundIPs"] = _addresses(resource, profile)
        network["loadBalancerProfile"] = {"backendPoolType": "nodeIPConfiguration", **profile}
    return network


def _addresses(resource: str, profile: Json) -> list[dict[str, str]]:
    """Return the addresses in use; only Azure writes them."""
    own = (profile.get("outboundIPs") or {}).get("publicIPs")
    if own:
        return [{"id": str(address.get("id"))} for address in own]
    group = resource.partition("/providers/")[0]
    count = (profile.get("managedOutboundIPs") or {}).get("count") or 1
    ids = [uuid5(NAMESPACE_URL, f"{resource}/{number}") for number in range(count)]
    return [
        {"id": f"{group}/providers/Microsoft.Network/publicIPAddresses/{identifier}"} for identifier in ids
    ]


def _addon(resource: str, name: str, addon: dict[str, Any]) -> dict[str, Any]:
    if not addon.get("enabled"):
        return {**addon, "config": addon.get("config")}
    unique = str(uuid5(NAMESPACE_URL, f"{resource}/{name}"))
    return {**addon, "identity": {"clientId": unique, "objectId": unique}}
