"""The steps of the recipes: each looks, decides through a pure function, makes at most one bounded write."""

from __future__ import annotations

from collections.abc import Callable

from shared.fleet.writes import is_stopped
from shared.jobs.errors import Unavailable
from shared.jobs.outcomes import Outcome
from shared.jobs.recipes import Step
from shared.jobs.row import ClusterRow
from shared.pipeline.steps import azure, delete, flux, maintenance, pools
from shared.pipeline.steps.looks import stopped
from shared.pipeline.steps.stray import stray
from shared.pipeline.steps.suspension import suspended
from shared.ports import Ports

_STEPS: dict[Step, Callable[[ClusterRow, Ports], Outcome]] = {
    Step.RESOURCE_GROUP: azure.ensure_resource_group,
    Step.CLUSTER: azure.ensure_cluster,
    Step.NODE_POOLS: pools.ensure_node_pools,
    Step.MAINTENANCE: maintenance.ensure_maintenance_windows,
    Step.ACCESS: flux.ensure_access,
    Step.FLUX_COMPONENTS: flux.ensure_components,
    Step.FLUX_SYNC: flux.ensure_sync,
    Step.VERIFY: flux.verify,
    Step.TOMBSTONE: delete.tombstone,
    Step.DELETE_CLUSTER: delete.delete_cluster,
    Step.DELETE_RESOURCE_GROUP: delete.delete_resource_group,
    Step.FORGET: delete.forget,
}
_IN_THE_CLUSTER = {Step.ACCESS, Step.FLUX_COMPONENTS, Step.FLUX_SYNC, Step.VERIFY}


def run_step(row: ClusterRow, ports: Ports) -> Outcome:
    """Run the step that the row is at, unless something holds it; raise what the ports raise."""
    held = stray(row, ports) or suspended(row, ports)
    if held:
        return held
    try:
        return _STEPS[row.job.step](row, ports)
    except Unavailable:
        existing = ports.aks.get(row.desired.id) if row.job.step in _IN_THE_CLUSTER else None
        if existing is not None and is_stopped(existing):
            return stopped(ports)
        raise
