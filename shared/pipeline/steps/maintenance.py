"""When Azure may touch the cluster by itself: its maintenance configurations.

Windows that the manifest does not name are left alone, also those that it named before.
"""

from __future__ import annotations

from typing import Any

from shared.fleet.overlay import overlay
from shared.jobs.outcomes import Done, Outcome
from shared.jobs.row import ClusterRow
from shared.ports import Ports


def ensure_maintenance_windows(row: ClusterRow, ports: Ports) -> Outcome:
    """Write the maintenance windows that differ from the manifest; no call where it has none."""
    desired = row.desired
    windows = desired.spec.maintenance_windows
    existing = ports.aks.maintenance(desired.id) if windows else {}
    written = []
    for window in windows:
        body: dict[str, Any] = window.model_dump(by_alias=True, mode="json", exclude_none=True)
        name = body.pop("name")
        merged, found = overlay(existing.get(name) or {}, {"properties": body})
        if found:
            ports.aks.put_maintenance(desired.id, name, {"properties": merged["properties"]})
            written.append(name)
    return Done(f"wrote the maintenance windows {', '.join(written)}" if written else "")
