"""Maintenance windows: when Azure may change the cluster by itself.

The step does not change windows that the manifest does not name, even if it named them before.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.access.contests import read_ours
from shared.app.access.context import StepContext
from shared.azure.maintenance_windows import window_bodies
from shared.cluster.outcomes import Done, Outcome
from shared.json_tree import Json
from shared.ports.azure import ListMaintenance, PutMaintenance


def ensure_maintenance_windows(context: StepContext) -> Outcome:
    """Write the maintenance windows that differ from the manifest; no call where it has none.

    Azure checks no condition of such a write, so whose cluster it is was read a moment ago.
    """
    windows = differing_windows(context)
    if not windows:
        return Done()
    existing = read_ours(context)
    if not isinstance(existing, Mapping):
        return existing
    for name, body in windows.items():
        context.azure(PutMaintenance(context.cluster, name, body))
    return Done(f"wrote the maintenance windows {', '.join(windows)}")


def differing_windows(context: StepContext) -> dict[str, Json]:
    """Return the bodies of the maintenance windows that differ, by name."""
    if not context.desired.spec.maintenance_windows:
        return {}
    return window_bodies(context.desired, context.azure(ListMaintenance(context.cluster)))
