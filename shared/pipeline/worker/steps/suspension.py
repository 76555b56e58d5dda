"""A suspended cluster: the step writes nothing until the suspension ends, and reports the differences."""

from __future__ import annotations

from datetime import datetime

from shared.fleet.aks.writes import is_stopped
from shared.fleet.drift.differences import drift_of
from shared.jobs.failures.errors import ReconcileError
from shared.jobs.outcomes import Wait
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.maintenance_windows import differing_windows
from shared.ports.azure import GetCluster
from shared.some_of import some_of

RECHECK_SECONDS = 900.0
SHOWN = 5


def suspended(context: StepContext) -> Wait | None:
    """Return the wait of a suspended cluster, with what differs in Azure; None when it is not suspended."""
    if context.record.deleting:
        return None
    suspension = context.desired.spec.suspend
    if suspension is None:
        return None
    left = (datetime.fromisoformat(suspension.until) - context.ports.clock()).total_seconds()
    if left <= 0:
        return None
    reason = f"suspended by {suspension.owner} until {suspension.until}: {suspension.reason}"
    return Wait(
        min(left, RECHECK_SECONDS),
        f"{reason}; {_drift(context)}",
        action_required="Remove the suspension from the manifest to end it early.",
        open_ended=True,
        suspended=True,
    )


def _drift(context: StepContext) -> str:
    """Describe how the cluster in Azure differs from the manifest; a failed read is not retried."""
    desired, owner = context.desired, context.owner
    if desired.is_existing:
        return "checks go on"
    try:
        existing = context.azure(GetCluster(context.cluster))
        windows = differing_windows(context) if existing is not None else {}
    except ReconcileError as error:
        return f"what differs could not be read: {error.kind}: {error}"
    if existing is None:
        return "the cluster does not exist"
    verified = context.record.verified
    found = drift_of(desired, owner, existing, verified.unmanaged if verified else None)
    differences = [*map(str, found), *(f"maintenanceWindows[{name}]" for name in windows)]
    differences += ["powerState (it is stopped)"] if is_stopped(existing) else []
    return f"it differs in {some_of(differences, SHOWN)}" if differences else "nothing differs"
