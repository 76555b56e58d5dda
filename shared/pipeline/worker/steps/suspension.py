"""A cluster that somebody has suspended: nothing is done to it until then, and what differs is told."""

from __future__ import annotations

from datetime import datetime

from shared.fleet.aks.cluster_body import all_differences, dropped_pools
from shared.fleet.aks.writes import is_stopped
from shared.jobs.errors import ReconcileError
from shared.jobs.outcomes import Wait
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.azure_state import owner_of
from shared.pipeline.worker.steps.maintenance_windows import differing_windows
from shared.ports import Ports

RECHECK_SECONDS = 900.0
SHOWN = 5


def suspended(record: ClusterRecord, ports: Ports) -> Wait | None:
    """Return the wait of a suspended cluster, with what differs in Azure; None when it is not suspended."""
    if record.deleting:
        return None
    suspension = record.desired.spec.suspend
    if suspension is None:
        return None
    left = (datetime.fromisoformat(suspension.until) - ports.clock()).total_seconds()
    if left <= 0:
        return None
    words = f"suspended by {suspension.owner} until {suspension.until}: {suspension.reason}"
    return Wait(
        min(left, RECHECK_SECONDS),
        f"{words}; {_drift(record, ports)}",
        person="Take the suspension out of the manifest to end it before its time.",
        open_ended=True,
        suspended=True,
    )


def _drift(record: ClusterRecord, ports: Ports) -> str:
    """Say how the cluster in Azure differs from the manifest; a look that fails is told, not tried again."""
    try:
        existing = ports.aks.get(record.desired.id)
        windows = differing_windows(record.desired, ports) if existing is not None else {}
    except ReconcileError as error:
        return f"what differs could not be read: {error.kind}: {error}"
    if existing is None:
        return "the cluster is not there"
    owner = owner_of(record, ports)
    found = all_differences(record.desired, owner, existing)
    found += [f"maintenanceWindows[{name}]" for name in windows]
    found += [
        f"nodePools[{name}] is not in the manifest" for name in dropped_pools(record.desired, owner, existing)
    ]
    found += ["powerState (it is stopped)"] if is_stopped(existing) else []
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"it differs in {', '.join(found[:SHOWN])}{more}" if found else "nothing differs"
