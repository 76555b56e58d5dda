"""What means the same unsaid: a spec without the defaults that ARM shows of every cluster.

The defaults are those of learn.microsoft.com/rest/api/aks/managed-clusters and .../agent-pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from shared.fleet.aks.comparison import same
from shared.fleet.importing.arm_to_spec import empty, places
from shared.fleet.json_tree import Path
from shared.fleet.manifests import NodePool
from shared.fleet.manifests.cluster import ClusterProperties

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
"""What ARM shows of a cluster that nobody asked for anything else."""
POOL_DEFAULTS: Mapping[str, Any] = {
    "type": "VirtualMachineScaleSets",
    "mode": "User",
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "kubeletDiskType": "OS",
    "scaleSetPriority": "Regular",
    "scaleDownMode": "Delete",
    "workloadRuntime": "OCIContainer",
    "securityProfile.sshAccess": "LocalUser",
    "upgradeSettings.maxUnavailable": "0",
}
"""The same of a node pool. ``osDiskType`` is said: a new pool of some sizes would be Ephemeral."""


def short(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec without what means the same unsaid."""
    kept: dict[str, Any] = {}
    for key, value in spec.items():
        place = places(ClusterProperties).get(key.lower())
        if key == "nodePools":
            kept[key] = [_short_pool(pool) for pool in value]
        elif place is None:
            kept[key] = value
        elif (small := without_defaults(value, place.section, DEFAULTS, (key,))) is not None:
            kept[key] = small
    if kept.get("identity") == {"type": "SystemAssigned"}:
        del kept["identity"]
    return kept


def _short_pool(pool: Mapping[str, Any]) -> dict[str, Any]:
    kept = without_defaults(pool, NodePool, POOL_DEFAULTS, ())
    return kept if isinstance(kept, dict) else dict(pool)


def without_defaults(
    value: Any, model: type[BaseModel] | None, defaults: Mapping[str, Any], path: Path
) -> Any:
    """Return a value without what means the same unsaid, None when that is all of it."""
    if not isinstance(value, Mapping):
        default = defaults.get(".".join(path))
        meant = same(value, None, path) or (default is not None and same(value, default, path))
        return None if meant else value
    kept = {}
    for key, inner in value.items():
        place = places(model).get(key.lower()) if model else None
        if place is not None and place.section is None and isinstance(inner, Mapping):
            small: Any = inner  # labels and tags: each of them is wanted
        else:
            small = without_defaults(inner, place.section if place else None, defaults, (*path, key))
        if not empty(small):
            kept[key] = small
    return (kept if _whole(kept, model) else dict(value)) if kept else None


def _whole(section: Mapping[str, Any], model: type[BaseModel] | None) -> bool:
    """Tell whether a section may be written so: a model may need what would mean the same unsaid."""
    try:
        return model is None or bool(model.model_validate(section))
    except ValidationError:
        return False
