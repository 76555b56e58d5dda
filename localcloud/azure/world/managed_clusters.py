"""Managed clusters in AKS: the rules, the defaults that Azure fills in, and what a change may touch.

A cluster here is its ARM JSON without agent pools. A property that a PUT omits retains its value; JSON
objects under ``properties`` are merged, anything else is replaced. ``tags`` are replaced as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world.agent_pools import same
from localcloud.azure.world.arm_errors import ArmError, immutable, invalid, missing
from localcloud.azure.world.catalog import DEFAULT_VERSION, REGIONS, cluster_version, region
from localcloud.azure.world.cluster_profiles import at, check_profiles, shown_profiles
from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId

READ_ONLY = (
    *("provisioningState", "powerState", "currentKubernetesVersion", "maxAgentPools", "fqdn", "privateFQDN"),
    *("azurePortalFQDN", "status", "resourceUID", "agentPoolProfiles"),
)
IMMUTABLE = (
    *("dnsPrefix", "fqdnSubdomain", "nodeResourceGroup", "enableRBAC", "diskEncryptionSetID"),
    *("networkProfile.networkPlugin", "networkProfile.networkPluginMode", "networkProfile.networkPolicy"),
    *("networkProfile.networkDataplane", "networkProfile.podCidr", "networkProfile.podCidrs"),
    *("networkProfile.serviceCidr", "networkProfile.serviceCidrs", "networkProfile.dnsServiceIP"),
    *("networkProfile.loadBalancerSku", "networkProfile.ipFamilies", "networkProfile.networkMode"),
    *("apiServerAccessProfile.enablePrivateCluster", "apiServerAccessProfile.privateDNSZone"),
    *("apiServerAccessProfile.subnetId", "linuxProfile.adminUsername", "windowsProfile.adminUsername"),
)
WAYS = {
    ("networkProfile.networkPlugin", "kubenet", "azure"),
    ("networkProfile.networkPluginMode", "", "overlay"),
    ("networkProfile.networkDataplane", "azure", "cilium"),
    *(("networkProfile.networkPolicy", "none", policy) for policy in ("azure", "calico", "cilium")),
    *(("networkProfile.networkPolicy", policy, "none") for policy in ("azure", "calico")),
    *(("networkProfile.networkPolicy", policy, "cilium") for policy in ("azure", "calico")),
}
"""Changes of otherwise fixed properties that AKS knows a migration for."""
TENANT = "00000000-0000-0000-0000-0000000000ff"
_NAME = re.compile(r"[a-zA-Z0-9]|[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]")
_PREFIX = re.compile(r"[a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]{0,52}[a-zA-Z0-9]")


def created_cluster(cluster: ClusterId, body: Json) -> dict[str, Any]:
    """Return the document of a cluster that is being created, or refuse."""
    if not _NAME.fullmatch(cluster.name):
        raise invalid(
            f"The cluster name '{cluster.name}' is invalid: 1 to 63 letters, digits, '-' and '_', "
            "with a letter or digit first and last.",
            "resourceName",
        )
    location = _location(body)
    given = _settable(body)
    if "dnsPrefix" not in given and "fqdnSubdomain" not in given:
        raise missing("dnsPrefix")
    if not _PREFIX.fullmatch(str(given.get("dnsPrefix", given.get("fqdnSubdomain")))):
        raise invalid("dnsPrefix must be 1 to 54 letters, digits and hyphens.", "dnsPrefix")
    if "identity" not in body and "servicePrincipalProfile" not in given:
        raise missing("servicePrincipalProfile")
    given.setdefault("kubernetesVersion", DEFAULT_VERSION)
    cluster_version(cluster.name, given["kubernetesVersion"])
    sku = {"name": "Base", "tier": "Free", **(body.get("sku") or {})}
    properties = shown_profiles(cluster.resource, _merge(_defaults(cluster, location, given), given))
    check_profiles(properties, sku["tier"], None)
    return {
        "id": cluster.resource,
        "name": cluster.name,
        "type": "Microsoft.ContainerService/ManagedClusters",
        "location": location,
        "tags": dict(body.get("tags") or {}),
        "sku": sku,
        "identity": _identity(cluster.resource, body.get("identity")),
        "properties": properties,
    }


def updated_cluster(existing: Json, body: Json) -> dict[str, Any]:
    """Return the document of a cluster after a PUT over ``existing``, or refuse."""
    properties, given = existing["properties"], _settable(body)
    if "location" in body and region(body["location"]) != existing["location"]:
        raise immutable("location")
    for path in IMMUTABLE:
        wanted, now = at(given, path), at(properties, path)
        if wanted is None or same(wanted, now) or (path, now or "", wanted) in WAYS:
            continue
        if path == "apiServerAccessProfile.subnetId" and now is None:
            continue  # integration with a network can be switched on later
        if isinstance(wanted, Mapping) and isinstance(now, Mapping) and same_leaves(wanted, now):
            continue
        raise immutable(path)
    merged = shown_profiles(existing["id"], _merge(properties, given))
    tier = (body.get("sku") or {}).get("tier") or existing["sku"]["tier"]
    check_profiles(merged, tier, properties)
    cluster_version(existing["name"], merged["kubernetesVersion"], properties["currentKubernetesVersion"])
    document = {**existing, "properties": merged}
    if body.get("tags") is not None:
        document["tags"] = dict(body["tags"])
    if body.get("sku"):
        document["sku"] = {**existing["sku"], **body["sku"]}
    if body.get("identity"):
        document["identity"] = _identity(existing["id"], body["identity"])
    return document


def same_leaves(wanted: Json, now: Json) -> bool:
    """Return whether an object asks for nothing that is not so already."""
    return all(
        same_leaves(value, now[key])
        if isinstance(value, Mapping) and isinstance(now.get(key), Mapping)
        else same(value, now.get(key))
        for key, value in wanted.items()
    )


def default_max_pods(document: Json) -> int:
    """Return the default maxPods of a pool, which depends on the network."""
    network = document["properties"]["networkProfile"]
    if network["networkPlugin"] == "azure":
        return 250 if network.get("networkPluginMode") == "overlay" else 30
    return 110


def _location(body: Json) -> str:
    location = region(body.get("location") or "")
    if location in REGIONS:
        return location
    raise ArmError(
        400,
        "LocationNotAvailableForResourceType",
        f"The provided location '{body.get('location')}' is not available for resource type "
        "'Microsoft.ContainerService/managedClusters'.",
    )


def _settable(body: Json) -> dict[str, Any]:
    return {k: v for k, v in (body.get("properties") or {}).items() if k not in READ_ONLY and v is not None}


def _merge(old: Json, new: Json) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = _merge(before, value)
        else:
            merged[key] = value
    return merged


def _identity(resource: str, given: Json | None) -> dict[str, Any]:
    if not given:
        return {}
    principal = str(uuid5(NAMESPACE_URL, resource))
    if given.get("type") == "SystemAssigned":
        return {**given, "principalId": principal, "tenantId": TENANT}
    users = {
        name: {"clientId": str(uuid5(NAMESPACE_URL, name + "#client")), "principalId": principal}
        for name in given.get("userAssignedIdentities") or {}
    }
    return {**given, "userAssignedIdentities": users} if users else dict(given)


def _kubelet_identity(cluster: ClusterId, location: str) -> str:
    group = f"MC_{cluster.resource_group}_{cluster.name}_{location}"[:80]
    return (
        f"/subscriptions/{cluster.subscription}/resourceGroups/{group}"
        f"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{cluster.name}-agentpool"
    )


def _defaults(cluster: ClusterId, location: str, given: Json) -> dict[str, Any]:
    unique = uuid5(NAMESPACE_URL, cluster.resource)
    prefix = given.get("dnsPrefix", given.get("fqdnSubdomain"))
    network = given.get("networkProfile") or {}
    azure = network.get("networkPlugin", "kubenet") == "azure"
    overlay = not azure or network.get("networkPluginMode") == "overlay"
    host = f"{prefix}-{unique.hex[:8]}"
    properties: dict[str, Any] = {
        "powerState": {"code": "Running"},
        "fqdn": f"{host}.hcp.{location}.azmk8s.io",
        "azurePortalFQDN": f"{host}.portal.hcp.{location}.azmk8s.io",
        "nodeResourceGroup": f"MC_{cluster.resource_group}_{cluster.name}_{location}"[:80],
        "enableRBAC": True,
        "supportPlan": "KubernetesOfficial",
        "maxAgentPools": 100,
        "resourceUID": unique.hex[:24],
        "disableLocalAccounts": False,
        "identityProfile": {"kubeletidentity": {"resourceId": _kubelet_identity(cluster, location)}},
        "autoUpgradeProfile": {"nodeOSUpgradeChannel": "NodeImage"},
        "servicePrincipalProfile": {"clientId": "msi"},
        "storageProfile": {
            "diskCSIDriver": {"enabled": True},
            "fileCSIDriver": {"enabled": True},
            "snapshotController": {"enabled": True},
        },
        "networkProfile": {
            "networkPlugin": "kubenet",
            "networkPolicy": "none",
            "networkDataplane": "azure",
            "loadBalancerSku": "standard",
            "outboundType": "loadBalancer",
            "serviceCidr": "10.0.0.0/16",
            "dnsServiceIP": "10.0.0.10",
            "ipFamilies": ["IPv4"],
            **({"podCidr": "10.244.0.0/16"} if overlay else {}),
        },
    }
    if (given.get("oidcIssuerProfile") or {}).get("enabled"):
        issuer = f"https://{location}.oic.prod-aks.azure.com/{TENANT}/{unique}/"
        properties["oidcIssuerProfile"] = {"issuerURL": issuer}
    return properties
