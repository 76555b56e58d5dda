"""Changes that AKS takes only one after the other: the stage to write now.

The migration to overlay and the one to Cilium are separate operations, and each reimages the nodes of all
pools (learn.microsoft.com/azure/aks/update-azure-cni: not in a single operation). Where a commit asks for
both, overlay is a write of its own; Cilium and everything else follow once it has succeeded. What Azure shows
decides the stage, so nothing is remembered between the two writes.
"""

from __future__ import annotations

from typing import Any

from shared.fleet.aks.writes import last_write_failed
from shared.fleet.json_tree import Json

_OVERLAY = ("networkPlugin", "networkPluginMode", "podCidr", "podCidrs")


def first_stage(existing: Json, wanted: Json) -> dict[str, Any]:
    """Return the part of the desired state to write now; all of it where one write can bring it about."""
    before = existing["properties"].get("networkProfile") or {}
    network = (wanted.get("properties") or {}).get("networkProfile") or {}
    overlay = _has(network, "networkPluginMode", "overlay")
    migrated = _has(before, "networkPluginMode", "overlay") and not last_write_failed(existing["properties"])
    cilium = _has(network, "networkDataplane", "cilium") and not _has(before, "networkDataplane", "cilium")
    if not (overlay and cilium) or migrated:
        return dict(wanted)
    stage = {key: value for key, value in network.items() if key in _OVERLAY}
    return {"tags": wanted["tags"], "properties": {"networkProfile": stage}}


def _has(network: Json, name: str, value: str) -> bool:
    return str(network.get(name) or "").lower() == value
