"""The profiles of a managed cluster: their rules, what cannot be undone, and how AKS returns them.

AKS returns single addresses as networks, fills in defaults, and adds names of its own to the proxy's
exceptions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world.arm_errors import immutable, invalid
from shared.fleet.json_tree import Json

_ENUMS: Mapping[str, tuple[str, ...]] = {
    "supportPlan": ("KubernetesOfficial", "AKSLongTermSupport"),
    "publicNetworkAccess": ("Enabled", "Disabled"),
    "autoUpgradeProfile.upgradeChannel": ("rapid", "stable", "patch", "node-image", "none"),
    "autoUpgradeProfile.nodeOSUpgradeChannel": ("None", "Unmanaged", "NodeImage", "SecurityPatch"),
    "networkProfile.networkPlugin": ("azure", "kubenet", "none"),
    "networkProfile.networkPluginMode": ("overlay",),
    "networkProfile.networkPolicy": ("none", "calico", "azure", "cilium"),
    "networkProfile.networkDataplane": ("azure", "cilium"),
    "networkProfile.outboundType": (
        *("loadBalancer", "userDefinedRouting", "managedNATGateway", "userAssignedNATGateway", "none"),
    ),
    "networkProfile.loadBalancerSku": ("standard", "basic"),
    "nodeResourceGroupProfile.restrictionLevel": ("Unrestricted", "ReadOnly"),
    "nodeProvisioningProfile.mode": ("Manual", "Auto"),
    "bootstrapProfile.artifactSource": ("Cache", "Direct"),
    "serviceMeshProfile.mode": ("Istio", "Disabled"),
    "autoScalerProfile.expander": ("least-waste", "most-pods", "priority", "random"),
}
_ONE_WAY = ("oidcIssuerProfile.enabled", "aadProfile.managed", "apiServerAccessProfile.enableVnetIntegration")


def at(document: Json, path: str) -> Any:
    """Return the value at a dotted path, None when there is none."""
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def check_profiles(properties: Json, tier: str, before: Json | None) -> None:
    """Refuse properties that AKS would refuse; ``before`` are those of the cluster as it was, if it was."""
    for path, allowed in _ENUMS.items():
        value = at(properties, path)
        if value is not None and str(value).lower() not in {name.lower() for name in allowed}:
            raise invalid(f"The value '{value}' of {path} is none of {', '.join(allowed)}.", path)
    for path in _ONE_WAY:
        if before is not None and at(before, path) and not at(properties, path):
            raise immutable(path)
    for path, needed, met in (
        ("supportPlan", "AKSLongTermSupport", tier.lower() == "premium"),
        ("securityProfile.workloadIdentity.enabled", True, at(properties, "oidcIssuerProfile.enabled")),
        ("disableLocalAccounts", True, at(properties, "aadProfile.managed")),
        ("metricsProfile.costAnalysis.enabled", True, tier.lower() != "free"),
        ("networkProfile.networkPolicy", "cilium", _cilium(properties)),
        (
            "securityProfile.azureKeyVaultKms.enabled",
            True,
            at(properties, "securityProfile.azureKeyVaultKms.keyId"),
        ),
    ):
        if at(properties, path) == needed and not met:
            raise invalid(f"{path} cannot be {needed} here: what it needs is not there.", path)
    access = properties.get("apiServerAccessProfile") or {}
    if access.get("enablePrivateCluster") and access.get("authorizedIPRanges"):
        raise invalid("authorizedIPRanges is not allowed on a private cluster.", "authorizedIPRanges")


def _cilium(properties: Json) -> bool:
    return bool(at(properties, "networkProfile.networkDataplane") == "cilium")


def shown_profiles(resource: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return properties as AKS returns them."""
    shown = {**properties, "networkProfile": _network(dict(properties["networkProfile"]))}
    access = dict(shown.get("apiServerAccessProfile") or {})
    if access.get("authorizedIPRanges"):
        access["authorizedIPRanges"] = [
            str(ipaddress.ip_network(text)) for text in access["authorizedIPRanges"]
        ]
        shown["apiServerAccessProfile"] = access
    proxy = dict(shown.get("httpProxyConfig") or {})
    if proxy.get("noProxy"):
        proxy["noProxy"] = list(dict.fromkeys([*proxy["noProxy"], "localhost", "127.0.0.1", "konnectivity"]))
        shown["httpProxyConfig"] = proxy
    addons = shown.get("addonProfiles") or {}
    if addons:
        shown["addonProfiles"] = {name: _addon(resource, name, dict(addon)) for name, addon in addons.items()}
    return shown


def _network(network: dict[str, Any]) -> dict[str, Any]:
    for one in ("podCidr", "serviceCidr"):
        many = network.get(f"{one}s") or ([network[one]] if network.get(one) else [])
        if many:
            network[f"{one}s"], network[one] = many, many[0]
    if network.get("outboundType") == "loadBalancer":
        profile = dict(network.get("loadBalancerProfile") or {})
        if not profile.keys() & {"outboundIPs", "outboundIPPrefixes"}:
            profile.setdefault("managedOutboundIPs", {"count": 1})
        network["loadBalancerProfile"] = {"backendPoolType": "nodeIPConfiguration", **profile}
    return network


def _addon(resource: str, name: str, addon: dict[str, Any]) -> dict[str, Any]:
    if not addon.get("enabled"):
        return {**addon, "config": addon.get("config")}
    unique = str(uuid5(NAMESPACE_URL, f"{resource}/{name}"))
    return {**addon, "identity": {"clientId": unique, "objectId": unique}}
