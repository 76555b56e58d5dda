"""Managed clusters in AKS: the defaults that Azure fills in, and the document after a PUT.

A cluster here is its ARM JSON without agent pools, a body what ``body_shapes`` has read. A property that a
PUT omits retains its value; ``tags`` are replaced as a whole. ``check_cluster`` has the rules about the
result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world.arm_errors import ArmError, immutable, invalid, missing
from localcloud.azure.world.body_shapes import unknown_field
from localcloud.azure.world.catalog import (
    DEFAULT_VERSION,
    OFFICIAL,
    REGIONS,
    TENANT,
    check_support,
    cluster_version,
    region,
)
from localcloud.azure.world.clusters.cluster_profiles import merged_properties, shown_profiles
from localcloud.azure.world.refusals import capacity_rules, cluster_rules, fixed, network_rules
from localcloud.azure.world.refusals.rule import RequestedWrite, check
from shared.json_tree import Json
from shared.resource_ids import ClusterId

_NAME = re.compile(r"[a-zA-Z0-9]|[a-zA-Z0-9][-_a-zA-Z0-9]{0,61}[a-zA-Z0-9]")
_PREFIX = re.compile(r"[a-zA-Z0-9]|[a-zA-Z0-9][-a-zA-Z0-9]{0,52}[a-zA-Z0-9]")
_LONGEST_GROUP = 80
"""Characters in the name of a node resource group (github.com/rancher/rancher/issues/21264)."""


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
    check_support(cluster.name, given["kubernetesVersion"], given.get("supportPlan") or OFFICIAL)
    sku = {"name": "Base", "tier": "Free", **(body.get("sku") or {})}
    group = given.get("nodeResourceGroup") or f"MC_{cluster.resource_group}_{cluster.name}_{location}"
    if len(group) > _LONGEST_GROUP:
        raise invalid(
            "The length of the node resource group name is too long. The maximum length is "
            f"{_LONGEST_GROUP} and the length of the value provided is {len(group)}. Please see "
            "https://aka.ms/aks-naming-rules for more details.",
            "name",
        )
    properties = shown_profiles(
        cluster.resource, merged_properties(_defaults(cluster, location, group, given), given)
    )
    return {
        "id": cluster.resource,
        "name": cluster.name,
        "type": "Microsoft.ContainerService/ManagedClusters",
        "location": location,
        "tags": dict(body.get("tags") or {}),
        "sku": sku,
        **{key: body[key] for key in ("extendedLocation", "kind") if body.get(key)},
        "identity": _identity(cluster.resource, body.get("identity")),
        "properties": properties,
    }


def updated_cluster(existing: Json, body: Json) -> dict[str, Any]:
    """Return the document of a cluster after a PUT over ``existing``, or refuse."""
    properties, given = existing["properties"], _settable(body)
    if "location" in body and region(body["location"]) != existing["location"]:
        raise immutable("location")
    switched_on = _issuer(existing["id"], existing["location"], given)
    merged = shown_profiles(existing["id"], merged_properties({**properties, **switched_on}, given))
    wanted, current = merged["kubernetesVersion"], properties["currentKubernetesVersion"]
    cluster_version(existing["name"], wanted, current)
    check_support(existing["name"], wanted, merged["supportPlan"], current)
    document = {**existing, "properties": merged}
    if body.get("tags") is not None:
        document["tags"] = dict(body["tags"])
    if body.get("sku"):
        document["sku"] = {**existing["sku"], **body["sku"]}
    document |= {key: body[key] for key in ("extendedLocation", "kind") if body.get(key)}
    if body.get("identity"):
        document["identity"] = _identity(existing["id"], body["identity"])
    return document


def check_cluster(body: Json, after: Json, pools: Sequence[Json], before: Json | None) -> None:
    """Refuse what AKS refuses of a cluster with its pools; ``before`` is its view as it was, if it was."""
    asked = RequestedWrite(
        given=_whole(body, body.get("properties") or {}),
        after=_whole(after, after["properties"]) | {"agentPoolProfiles": pools},
        before=_whole(before, before["properties"]) if before is not None else None,
    )
    fixed.check_fixed(fixed.CLUSTER, asked)
    check(network_rules.RULES, asked)
    check(cluster_rules.RULES, asked)
    check(capacity_rules.RULES, asked)


def check_pools(document: Json, pools: Sequence[Json]) -> None:
    """Refuse what AKS refuses of all pools together, when one of them is put."""
    after = _whole(document, document["properties"]) | {"agentPoolProfiles": pools}
    check(capacity_rules.RULES, RequestedWrite(given={}, after=after))


def refuse_fields_of_pools_only(body: Json) -> None:
    """Refuse what the live service rejects in the first pools of a cluster, against its own specification.

    Source: Azure/terraform-azurerm-avm-res-containerservice-managedcluster#196, at API version 2026-03-01.
    The update of an existing cluster takes them back as they were read, as azure-cli sends them.
    """
    for profile in (body.get("properties") or {}).get("agentPoolProfiles") or ():
        for name in ("securityProfile", "artifactStreamingProfile"):
            if profile.get(name):
                raise unknown_field(name)


def _whole(document: Json, properties: Json) -> dict[str, Any]:
    top = {
        "location": document.get("location"),
        **{key: document.get(key) or {} for key in ("sku", "identity")},
    }
    return {**properties, **top}


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
    """Return the properties of the cluster alone; nobody but Azure writes its status."""
    return {
        k: v for k, v in (body.get("properties") or {}).items() if k not in ("agentPoolProfiles", "status")
    }


def _identity(resource: str, given: Json | None) -> dict[str, Any]:
    if not given:
        return {}
    principal = str(uuid5(NAMESPACE_URL, resource))
    if given.get("type") == "SystemAssigned":
        return {**given, "principalId": principal, "tenantId": TENANT}
    users = {
        name: {
            "clientId": str(uuid5(NAMESPACE_URL, f"{name.lower()}#client")),
            "principalId": str(uuid5(NAMESPACE_URL, name.lower())),
        }
        for name in given.get("userAssignedIdentities") or {}
    }
    return {**given, "userAssignedIdentities": users} if users else dict(given)


def _kubelet_identity(cluster: ClusterId, group: str) -> str:
    return (
        f"/subscriptions/{cluster.subscription}/resourceGroups/{group}"
        f"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{cluster.name}-agentpool"
    )


def resource_uid(operation: str) -> str:
    """Return the resourceUID of the cluster that an operation creates; created again, it has another one.

    Source: ManagedCluster.properties.resourceUID of the AKS REST API: unique "even if a cluster is deleted
    and then recreated with the same name", read-only.
    """
    return uuid5(NAMESPACE_URL, operation).hex[:24]


def _defaults(cluster: ClusterId, location: str, group: str, given: Json) -> dict[str, Any]:
    unique = uuid5(NAMESPACE_URL, cluster.resource)
    prefix = given.get("dnsPrefix", given.get("fqdnSubdomain"))
    network = given.get("networkProfile") or {}
    # Without a plugin, AKS takes Azure CNI Overlay (recording test_aks_abort of azure-cli, of 2025).
    chosen = (
        {} if network.get("networkPlugin") else {"networkPlugin": "azure", "networkPluginMode": "overlay"}
    )
    overlay = (
        bool(chosen) or network["networkPlugin"] == "kubenet" or network.get("networkPluginMode") == "overlay"
    )
    host = f"{prefix}-{unique.hex[:8]}"
    properties: dict[str, Any] = {
        "powerState": {"code": "Running"},
        "fqdn": f"{host}.hcp.{location}.azmk8s.io",
        "azurePortalFQDN": f"{host}.portal.hcp.{location}.azmk8s.io",
        "nodeResourceGroup": group,
        "enableRBAC": True,
        "supportPlan": OFFICIAL,
        "maxAgentPools": 100,
        "disableLocalAccounts": False,
        "identityProfile": {
            "kubeletidentity": {
                "resourceId": _kubelet_identity(cluster, group),
                "clientId": str(uuid5(unique, "kubelet client")),
                "objectId": str(uuid5(unique, "kubelet object")),
            }
        },
        "autoUpgradeProfile": {"nodeOSUpgradeChannel": "NodeImage"},
        "servicePrincipalProfile": {"clientId": "msi"},
        "storageProfile": {
            "diskCSIDriver": {"enabled": True},
            "fileCSIDriver": {"enabled": True},
            "snapshotController": {"enabled": True},
        },
        "networkProfile": {
            **chosen,
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
    return properties | _issuer(cluster.resource, location, given)


def _issuer(resource: str, location: str, given: Json) -> dict[str, Any]:
    """Return the issuer of tokens that a body switches on, which a later update may do too.

    Source: learn.microsoft.com/azure/aks/use-oidc-issuer, "Update an AKS cluster with OIDC issuer".
    """
    if not (given.get("oidcIssuerProfile") or {}).get("enabled"):
        return {}
    unique = uuid5(NAMESPACE_URL, resource)
    issuer = f"https://{location}.oic.prod-aks.azure.com/{TENANT}/{unique}/"
    return {"oidcIssuerProfile": {"issuerURL": issuer}}
