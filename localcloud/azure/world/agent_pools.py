"""Agent pools in AKS: the rules, the defaults, and what a change may touch.

A pool is the flat JSON of an ``agentPoolProfiles`` entry. A property that a PUT omits, or that is null,
retains its value; any other is replaced as a whole. Turning autoscaling off removes its bounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from localcloud.azure.world.arm_errors import immutable, invalid, missing
from localcloud.azure.world.catalog import pool_version
from shared.fleet.json_tree import Json

READ_ONLY = frozenset(
    {"provisioningState", "currentOrchestratorVersion", "nodeImageVersion", "eTag", "powerState", "status"}
)
IMMUTABLE = (
    *("vmSize", "osType", "osDiskSizeGB", "osDiskType", "kubeletDiskType", "vnetSubnetID", "podSubnetID"),
    *("maxPods", "availabilityZones", "scaleSetPriority", "enableFIPS", "kubeletConfig", "linuxOSConfig"),
    *("type", "enableEncryptionAtHost", "enableNodePublicIP", "enableUltraSSD", "nodePublicIPPrefixID"),
    *("gpuInstanceProfile", "proximityPlacementGroupID", "hostGroupID", "capacityReservationGroupID"),
    *("workloadRuntime", "messageOfTheDay", "creationData", "podIPAllocationMode", "windowsProfile"),
    *("scaleSetEvictionPolicy", "spotMaxPrice", "gpuProfile", "gatewayProfile"),
)
_ENUMS: Mapping[str, tuple[str, ...]] = {
    "mode": ("System", "User", "Gateway"),
    "osType": ("Linux", "Windows"),
    "osDiskType": ("Managed", "Ephemeral"),
    "kubeletDiskType": ("OS", "Temporary"),
    "scaleDownMode": ("Delete", "Deallocate"),
    "scaleSetPriority": ("Regular", "Spot"),
    "scaleSetEvictionPolicy": ("Delete", "Deallocate"),
    "workloadRuntime": ("OCIContainer", "WasmWasi", "KataVmIsolation"),
    "gpuInstanceProfile": ("MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"),
}
_DEFAULTS: Json = {
    "count": 1,
    "osDiskSizeGB": 128,
    "osDiskType": "Managed",
    "kubeletDiskType": "OS",
    "type": "VirtualMachineScaleSets",
    "enableAutoScaling": False,
    "scaleDownMode": "Delete",
    "mode": "User",
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "upgradeSettings": {"maxSurge": "10%"},
    "enableFIPS": False,
    "enableEncryptionAtHost": False,
    "enableNodePublicIP": False,
    "enableUltraSSD": False,
}
_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_TAINT = re.compile(r"[^=:\s]+=[^=:\s]*:(NoSchedule|PreferNoSchedule|NoExecute)")


def same(left: Any, right: Any) -> bool:
    """Return whether AKS takes two values for equal: case, order, null or empty alike."""
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if isinstance(left, list) and isinstance(right, list):
        return sorted(map(str, left)) == sorted(map(str, right))
    return (left or None) == (right or None)


def changed_pool(
    name: str, given: Json, existing: Json | None, *, control_plane: str, max_pods: int
) -> dict[str, Any]:
    """Return the pool after a PUT (``existing`` None: created), or refuse.

    ``control_plane`` is the version of the control plane, ``max_pods`` the network's default.
    """
    if not _NAME.fullmatch(name):
        raise invalid(
            f"The agent pool name '{name}' is invalid: 1 to 12 lowercase letters and digits, a letter first.",
            "agentPoolProfile.name",
        )
    if existing is not None:
        for path in IMMUTABLE:
            if given.get(path) is not None and not same(given[path], existing.get(path)):
                raise immutable(f"properties.{path}")
    settable = {k: v for k, v in given.items() if v is not None and k not in READ_ONLY}
    defaults = {**_DEFAULTS, "maxPods": max_pods, "orchestratorVersion": control_plane}
    if str(settable.get("osType")).lower() == "windows":
        defaults["osSKU"] = "Windows2022"  # since Kubernetes 1.25: rest/api/aks/agent-pools, OSSKU
    pool: dict[str, Any] = {**defaults, **(existing or {}), **settable, "name": name}
    # AKS returns the keys of a pool's tags in lower case (github.com/Azure/AKS/issues/1747).
    pool["tags"] = {key.lower(): value for key, value in (pool.get("tags") or {}).items()}
    if not pool["enableAutoScaling"]:
        for bound in {"minCount", "maxCount"} - settable.keys():
            pool.pop(bound, None)
    _check_kind(name, pool)
    _check_count(name, pool, existing)
    current = existing["currentOrchestratorVersion"] if existing else ""
    pool_version(name, pool["orchestratorVersion"], control_plane, current)
    return pool


def vcpus(vm_size: str) -> int:
    """Return the number of vCPUs in the name of a VM size: 4 for Standard_D4s_v5."""
    match = re.match(r"\w+?_[A-Za-z]+(\d+)", vm_size)
    return int(match.group(1)) if match else 2


def _check_kind(name: str, pool: Json) -> None:
    if not pool.get("vmSize"):
        raise missing("agentPoolProfile.vmSize")
    for field, allowed in _ENUMS.items():
        if pool.get(field) is not None and pool[field] not in allowed:
            message = f"{field} '{pool[field]}' of agent pool '{name}' is none of {', '.join(allowed)}."
            raise invalid(message, field)
    if pool["mode"] == "System" and (pool["osType"] != "Linux" or pool.get("scaleSetPriority") == "Spot"):
        raise invalid(f"System agent pool '{name}' must be a regular Linux pool.", "mode")
    if pool["osType"] == "Windows" and len(name) > 6:
        raise invalid(f"Windows agent pool name '{name}' is longer than 6 characters.", "name")
    if not 10 <= pool["maxPods"] <= 250:
        raise invalid(f"maxPods of agent pool '{name}' must be between 10 and 250.", "maxPods")
    for taint in pool.get("nodeTaints") or ():
        if not _TAINT.fullmatch(taint):
            raise invalid(
                f"The taint '{taint}' of agent pool '{name}' is not key=value:Effect.", "nodeTaints"
            )


def _check_count(name: str, pool: dict[str, Any], existing: Json | None) -> None:
    """Check the bounds; a count that the autoscaler already owns changes only to stay within them."""
    least = 1 if pool["mode"] == "System" else 0
    if not pool["enableAutoScaling"]:
        if pool.get("minCount") is not None or pool.get("maxCount") is not None:
            raise invalid(f"Agent pool '{name}' has minCount or maxCount without autoscaling.", "minCount")
        _check_range(name, "count", pool["count"], least)
        return
    low, high = pool.get("minCount"), pool.get("maxCount")
    if low is None or high is None:
        raise missing("agentPoolProfile.minCount and maxCount")
    _check_range(name, "minCount", low, least)
    _check_range(name, "maxCount", high, low)
    if existing is not None and existing["enableAutoScaling"]:
        pool["count"] = min(max(existing["count"], low), high)
    elif not low <= pool["count"] <= high:
        raise invalid(f"count of agent pool '{name}' must be between minCount and maxCount.", "count")


def _check_range(name: str, what: str, value: int, least: int) -> None:
    if not least <= value <= 1000:
        raise invalid(f"{what} of agent pool '{name}' must be between {least} and 1000.", what)
