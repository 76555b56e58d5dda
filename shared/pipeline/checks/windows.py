"""The maintenance windows of a cluster: no list of clusters has them, so a check reads them for the sweep.

Azure Resource Graph has no maintenance configurations (learn.microsoft.com/azure/governance/resource-graph,
"table and resource type reference"), so that is one call for each cluster with windows, with a check.
"""

from __future__ import annotations

import logging

from shared.fleet.drift.differences import Difference
from shared.fleet.drift.windows import window_differences
from shared.jobs.failures.errors import ReconcileError
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.rate_limiter import RateLimited
from shared.ports import Ports
from shared.ports.azure import ListMaintenance

log = logging.getLogger(__name__)


def has_windows(record: ClusterRecord) -> bool:
    """Return whether the manifest of a cluster has maintenance windows."""
    return bool(record.document["spec"].get("maintenanceWindows"))


def read_windows(record: ClusterRecord, ports: Ports) -> tuple[Difference, ...] | None:
    """Return in which fields the windows of a cluster differ from git, None where that is unknown."""
    if not has_windows(record):
        return ()
    try:
        existing = ports.azure.call(ListMaintenance(record.desired.id))
    except (RateLimited, ReconcileError) as error:
        log.warning("the maintenance windows of %s cannot be read: %s", record.name, error)
        return None
    return window_differences(record.desired, existing)
