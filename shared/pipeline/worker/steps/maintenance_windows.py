"""Maintenance windows: when Azure may change the cluster by itself.

The step does not change windows that the manifest does not name, even if it named them before.
"""

from __future__ import annotations

from shared.fleet.drift.windows import window_bodies
from shared.fleet.json_tree import Json
from shared.jobs.outcomes import Done, Outcome, Restart
from shared.pipeline.worker.steps.contests import not_ours
from shared.pipeline.worker.steps.context import StepContext
from shared.ports.azure import GetCluster, ListMaintenance, PutMaintenance


def ensure_maintenance_windows(context: StepContext) -> Outcome:
    """Write the maintenance windows that differ from the manifest; no call where it has none.

    Azure checks no condition of such a write, so whose cluster it is was read a moment ago.
    """
    windows = differing_windows(context)
    if not windows:
        return Done()
    existing = context.azure(GetCluster(context.cluster))
    if existing is None:
        return Restart(f"the cluster {context.record.name} no longer exists in Azure")
    hindrance = not_ours(context, existing)
    if hindrance:
        return hindrance
    for name, body in windows.items():
        context.azure(PutMaintenance(context.cluster, name, body))
    return Done(f"wrote the maintenance windows {', '.join(windows)}")


def differing_windows(context: StepContext) -> dict[str, Json]:
    """Return the bodies of the maintenance windows that differ, by name."""
    if not context.desired.spec.maintenance_windows:
        return {}
    return window_bodies(context.desired, context.azure(ListMaintenance(context.cluster)))
