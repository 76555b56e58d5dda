"""The steps of the recipes: each looks, decides through a pure function, makes at most one bounded write."""

from __future__ import annotations

from collections.abc import Callable

from shared.jobs.outcomes import Outcome
from shared.jobs.recipes import Step
from shared.jobs.row import ClusterRow
from shared.pipeline.steps import azure, delete, flux, maintenance, pools
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


def run_step(row: ClusterRow, ports: Ports) -> Outcome:
    """Run the step that the row is at, unless something holds it; raise what the ports raise."""
    return stray(row, ports) or suspended(row, ports) or _STEPS[row.job.step](row, ports)
