"""What only Azure writes in a cluster and in a node pool: a PUT of what was read leaves it out.

Source: what the AKS specification 2026-08-01 marks as read-only; a test compares the two tables with the
models of the management library. ``*`` stands for any key of an object, ``[]`` for any item of a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from shared.fleet.json_tree import Json

CLUSTER = (
    *("id", "name", "type", "systemData", "eTag"),
    *("identity.principalId", "identity.tenantId"),
    *("identity.userAssignedIdentities.*.principalId", "identity.userAssignedIdentities.*.clientId"),
    *("properties.provisioningState", "properties.powerState", "properties.status.provisioningError"),
    *("properties.currentKubernetesVersion", "properties.maxAgentPools", "properties.resourceUID"),
    *("properties.fqdn", "properties.privateFQDN", "properties.azurePortalFQDN"),
    "properties.addonProfiles.*.identity",
    "properties.podIdentityProfile.userAssignedIdentities.[].provisioningState",
    "properties.podIdentityProfile.userAssignedIdentities.[].provisioningInfo",
    "properties.oidcIssuerProfile.issuerURL",
    "properties.networkProfile.loadBalancerProfile.effectiveOutboundIPs",
    "properties.networkProfile.natGatewayProfile.effectiveOutboundIPs",
    "properties.privateLinkResources.[].privateLinkServiceID",
    "properties.ingressProfile.webAppRouting.identity",
)
POOL = (
    *("id", "name", "type", "systemData", "eTag"),
    *("provisioningState", "currentOrchestratorVersion", "status.provisioningError", "localDNSProfile.state"),
)
"""Of a pool's profile, which has its properties on one level."""

_ALSO_LEFT_OUT = ("properties.status", "properties.agentPoolProfiles")
_ALSO_LEFT_OUT_OF_POOLS = ("status", "powerState", "nodeImageVersion", "virtualMachineNodesStatus")
"""What a PUT of what was read does not repeat: another node image would be a rollback, and of the
power state only Stopped is repeated."""


def writable_cluster(document: Json) -> dict[str, Any]:
    """Return a cluster without what only Azure writes, and without its node pools."""
    return dict(reduce(_without, (*CLUSTER, *_ALSO_LEFT_OUT), document))


def writable_pool(profile: Json) -> dict[str, Any]:
    """Return a pool's profile without what only Azure writes."""
    return dict(reduce(_without, (*POOL, *_ALSO_LEFT_OUT_OF_POOLS), profile))


def _without(value: Any, path: str) -> Any:
    """Return the value without what a path names; everything on the way is copied."""
    first, _, rest = path.partition(".")
    if first == "[]":
        return [_without(item, rest) for item in value] if isinstance(value, list) else value
    if not isinstance(value, Mapping):
        return value
    if not rest:
        return {key: below for key, below in value.items() if key != first}
    return {key: _without(below, rest) if first in ("*", key) else below for key, below in value.items()}
