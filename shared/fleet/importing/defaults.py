"""Removes from a spec the defaults that ARM shows for every cluster.

The defaults are those of learn.microsoft.com/rest/api/aks/managed-clusters and .../agent-pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from shared.fleet.aks.comparison import same
from shared.fleet.importing.arm_to_spec import empty, places
from shared.fleet.json_tree import Path
from shared.fleet.manifests.cluster.spec import ClusterProperties
from shared.fleet.manifests.node_pool.pool import NodePool

DEFAULTS: Mapping[str, Any] = {
    "enableRBAC": True,
    "supportPlan": "KubernetesOfficial",
    "publicNetworkAccess": "Enabled",
    "networkProfile.networkDataplane": "azure",
    "networkProfile.outboundType": "loadBalancer",
    "networkProfile.loadBalancerSku": "standard",
    "networkProfile.ipFamilies": ["IPv4"],
    "networkProfile.loadBalancerProfile.managedOutboundIPs.count": 1,
    "networkProfile.loadBalancerProfile.backendPoolType": "NodeIPConfiguration",
    "networkProfile.loadBalancerProfile.idleTimeoutInMinutes": 30,
    "networkProfile.loadBalancerProfile.allocatedOutboundPorts": 0,
    "nodeProvisioningProfile.mode": "Manual",
    "nodeResourceGroupProfile.restrictionLevel": "Unrestricted",
    "bootstrapProfile.artifactSource": "Direct",
    "serviceMeshProfile.mode": "Disabled",
    "storageProfile.diskCSIDriver.version": "v1",
    "servicePrincipalProfile.clientId": "msi",
}
"""What ARM shows for a cluster whose manifest has no other value."""
POOL_DEFAULTS: Mapping[str, Any] = {
    "type": "VirtualMachineScaleSets",
    "mode": "User",
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "kubeletDiskType": "OS",
    "powerState.code": "Running",
    "scaleSetPriority": "Regular",
    "scaleDownMode": "Delete",
    "workloadRuntime": "OCIContainer",
    "securityProfile.sshAccess": "LocalUser",
    "upgradeSettings.maxUnavailable": "0",
}
"""The same for a node pool. ``osDiskType`` has none: some sizes would make a new pool Ephemeral."""


def shortened(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec without defaults."""
    result: dict[str, Any] = {}
    for key, value in spec.items():
        place = places(ClusterProperties).get(key.lower())
        if key == "nodePools":
            result[key] = [_short_pool(pool) for pool in value]
        elif place is None:
            result[key] = value
        elif (small := without_defaults(value, place.model_of_value, DEFAULTS, (key,))) is not None:
            result[key] = small
    if result.get("identity") == {"type": "SystemAssigned"}:
        del result["identity"]
    return result


def _short_pool(pool: Mapping[str, Any]) -> dict[str, Any]:
    result = without_defaults(pool, NodePool, POOL_DEFAULTS, ())
    return result if isinstance(result, dict) else dict(pool)


def without_defaults(
    value: Any, model: type[BaseModel] | None, defaults: Mapping[str, Any], path: Path
) -> Any:
    """Return a value without defaults, None when nothing remains."""
    if not isinstance(value, Mapping):
        default = defaults.get(".".join(path))
        is_default = same(value, None, path) or (default is not None and same(value, default, path))
        return None if is_default else value
    result = {}
    for key, inner in value.items():
        place = places(model).get(key.lower()) if model else None
        if place is not None and place.model_of_value is None and isinstance(inner, Mapping):
            small: Any = inner  # labels and tags have no defaults
        else:
            small = without_defaults(inner, place.model_of_value if place else None, defaults, (*path, key))
        if not empty(small):
            result[key] = small
    return (result if _is_valid(result, model) else dict(value)) if result else None


def _is_valid(value: Mapping[str, Any], model: type[BaseModel] | None) -> bool:
    """Return whether an object is valid without its defaults: a model may require a field."""
    try:
        return model is None or bool(model.model_validate(value))
    except ValidationError:
        return False
