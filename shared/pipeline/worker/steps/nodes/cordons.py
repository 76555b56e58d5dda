"""Who cordoned a node, and when, as the node itself shows it. Pure."""

from __future__ import annotations

from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.ownership.field_ownership import MANAGER
from shared.ports.kubernetes import CORDONED

OLD_CHANGES = "ancient-changes"
"""The manager under which the API server keeps the oldest changes of an object with more than ten managers.

Source: kubernetes/apimachinery ``pkg/util/managedfields/internal/capmanagers.go``.
"""


def is_cordoned_by_us(node: Json) -> bool:
    """Return whether the last cordon of a node was ours, as its managedFields say.

    They drop the managers of old changes; then our annotation counts.
    """
    managers = {str(entry.get("manager")) for entry in _cordons(node)}
    return MANAGER in managers or (bool(_annotation(node)) and managers <= {OLD_CHANGES})


def _cordons(node: Json) -> list[Json]:
    """Return the entries of a node's managedFields that cordon it: ours, and those of people."""
    return [
        entry
        for entry in node["metadata"].get("managedFields") or ()
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]


def cordoned_at(node: Json) -> datetime | None:
    """Return when a node was cordoned last, None when nothing on it shows the time.

    The time of the API server counts. Our annotation has that of an instance, whose clock may have been late:
    then every pod would have started after the cordon, and none would be waited for.
    """
    times = [datetime.fromisoformat(entry["time"]) for entry in _cordons(node) if entry.get("time")]
    if times:
        return max(times)
    ours = is_cordoned_by_us(node) and _annotation(node)
    return datetime.fromisoformat(_annotation(node)) if ours else None


def _annotation(node: Json) -> str:
    return str((node["metadata"].get("annotations") or {}).get(CORDONED) or "")
