"""Agent pools in AKS: the defaults, the count, and the profile after a PUT.

A pool is the flat JSON of an ``agentPoolProfiles`` entry, a body what ``body_shapes`` has read. A property
that a PUT omits retains its value; any other is replaced as a whole. Turning autoscaling off removes its
bounds.
"""

from __future__ import annotations

import re
from typing import Any

from localcloud.azure.world.arm_errors import invalid, missing
from localcloud.azure.world.catalog import pool_version
from localcloud.azure.world.pools.pool_power import set_count_of_power
from localcloud.azure.world.refusals import pool_rules
from localcloud.azure.world.refusals.fixed import POOL, check_fixed
from localcloud.azure.world.refusals.rule import RequestedWrite, check
from shared.json_tree import Json

_ONLY_AZURE = frozenset({"nodeImageVersion", "status"})
"""What the models let a caller send back, and Azure ignores: it installs its own newest image."""
_SPOT = frozenset({"scaleSetPriority", "scaleSetEvictionPolicy", "spotMaxPrice"})
_DEFAULTS: Json = {
    "count": 1,
    "vmSize": "Standard_D4ds_v5",  # docs aks-virtual-machine-sizes: AKS chooses one; azure-cli sends none
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
_NAME, _RESERVED = re.compile(r"[a-z][a-z0-9]{0,11}"), "aksmanagedap"
"""The second: MicrosoftDocs/SupportArticles-docs#1873, name restriction for a node pool."""


def changed_pool(
    name: str, given: Json, existing: Json | None, *, control_plane: str, max_pods: int, cluster: Json
) -> dict[str, Any]:
    """Return the pool after a PUT (``existing`` None: created), or refuse.

    ``control_plane`` is the version of the control plane, ``max_pods`` the network's default, ``cluster`` has
    the properties of the cluster.
    """
    if not _NAME.fullmatch(name) or name == _RESERVED:
        raise invalid(
            f"The agent pool name '{name}' is invalid: 1 to 12 lowercase letters and digits, a letter first.",
            "agentPoolProfile.name",
        )
    settable = {k: v for k, v in given.items() if k not in _ONLY_AZURE}
    if settable.get("scaleSetPriority") == "Regular":
        # AKS takes them of azure-cli, and does not return them (recording test_aks_create_again_should_fail).
        settable = {k: v for k, v in settable.items() if k not in _SPOT}
    defaults = {**_DEFAULTS, "maxPods": max_pods, "orchestratorVersion": control_plane}
    if settable.get("scaleSetPriority") == "Spot":
        defaults["upgradeSettings"] = {}  # docs spot-node-pool: maxSurge is null
    if settable.get("osType") == "Windows":
        defaults["osSKU"] = "Windows2022"  # since Kubernetes 1.25: rest/api/aks/agent-pools, OSSKU
    pool: dict[str, Any] = {**defaults, **(existing or {}), **settable, "name": name}
    # AKS returns the keys of a pool's tags in lower case (github.com/Azure/AKS/issues/1747).
    pool["tags"] = {key.lower(): value for key, value in (pool.get("tags") or {}).items()}
    if not pool["enableAutoScaling"]:
        for bound in {"minCount", "maxCount"} - settable.keys():
            pool.pop(bound, None)
    _set_machines(pool)
    asked = RequestedWrite(given=settable, after=pool | {"cluster": cluster}, before=existing)
    check_fixed(POOL, asked, "properties.")
    check(pool_rules.RULES, asked)
    _check_count(name, pool, existing)
    current = existing["currentOrchestratorVersion"] if existing else ""
    pool_version(name, pool["orchestratorVersion"], control_plane, current)
    set_count_of_power(pool, existing)
    return pool


def _set_machines(pool: dict[str, Any]) -> None:
    """Set the count and the size of a pool of single machines, which its scale profile decides."""
    scale = (pool.get("virtualMachinesProfile") or {}).get("scale") or {}
    if pool["type"] != "VirtualMachines" or not scale:
        return
    manual, automatic = scale.get("manual") or [], scale.get("autoscale") or []
    nodes = [
        {
            "size": document.get("size"),
            "count": document.get("count" if "count" in document else "minCount") or 0,
        }
        for document in (*manual, *automatic)
    ]
    pool["virtualMachineNodesStatus"] = nodes
    pool |= {"count": sum(node["count"] for node in nodes), "vmSize": next((e["size"] for e in nodes), None)}


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
