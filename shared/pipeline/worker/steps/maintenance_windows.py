"""When Azure may touch the cluster by itself: its maintenance configurations.

The step leaves alone windows that the manifest does not name, also those that it named before.
"""

from __future__ import annotations

from typing import Any

from shared.fleet.aks.comparison import overlay
from shared.fleet.json_tree import Json
from shared.jobs.outcomes import Done, Outcome
from shared.pipeline.worker.steps.context import StepContext
from shared.ports.azure import ListMaintenance, PutMaintenance


def ensure_maintenance_windows(context: StepContext) -> Outcome:
    """Write the maintenance windows that differ from the manifest; no call where it has none."""
    found = differing_windows(context)
    for name, body in found.items():
        context.azure(PutMaintenance(context.cluster, name, body))
    return Done(f"wrote the maintenance windows {', '.join(found)}" if found else "")


def differing_windows(context: StepContext) -> dict[str, Json]:
    """Return the bodies of the maintenance windows that differ, by name."""
    windows = context.desired.spec.maintenance_windows
    existing = context.azure(ListMaintenance(context.cluster)) if windows else {}
    needed: dict[str, Json] = {}
    for window in windows:
        body: dict[str, Any] = window.model_dump(by_alias=True, mode="json", exclude_none=True)
        name = body.pop("name")
        merged, found = overlay(existing.get(name) or {}, {"properties": body})
        if found:
            needed[name] = {"properties": merged["properties"]}
    return needed
