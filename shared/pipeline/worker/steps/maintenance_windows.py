"""When Azure may touch the cluster by itself: its maintenance configurations.

Windows that the manifest does not name are left alone, also those that it named before.
"""

from __future__ import annotations

from typing import Any

from shared.fleet.aks.comparison import overlay
from shared.fleet.desired import Desired
from shared.fleet.json_tree import Json
from shared.jobs.outcomes import Done, Outcome
from shared.jobs.record import ClusterRecord
from shared.ports import Ports


def ensure_maintenance_windows(record: ClusterRecord, ports: Ports) -> Outcome:
    """Write the maintenance windows that differ from the manifest; no call where it has none."""
    found = differing_windows(record.desired, ports)
    for name, body in found.items():
        ports.aks.put_maintenance(record.desired.id, name, body)
    return Done(f"wrote the maintenance windows {', '.join(found)}" if found else "")


def differing_windows(desired: Desired, ports: Ports) -> dict[str, Json]:
    """Return the bodies that the maintenance windows need, by name; those that need none are left out."""
    windows = desired.spec.maintenance_windows
    existing = ports.aks.maintenance(desired.id) if windows else {}
    needed: dict[str, Json] = {}
    for window in windows:
        body: dict[str, Any] = window.model_dump(by_alias=True, mode="json", exclude_none=True)
        name = body.pop("name")
        merged, found = overlay(existing.get(name) or {}, {"properties": body})
        if found:
            needed[name] = {"properties": merged["properties"]}
    return needed
