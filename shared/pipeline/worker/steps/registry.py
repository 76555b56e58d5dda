"""The steps of the recipes: each reads, decides through a pure function, makes at most one bounded write."""

from __future__ import annotations

from collections.abc import Callable

from shared.fleet.aks.writes import is_stopped
from shared.jobs.failures.errors import InvalidManifest, Unavailable, VaultUnavailable
from shared.jobs.outcomes import Done, Fail, Outcome
from shared.jobs.recipes import IN_THE_CLUSTER, Step
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps import (
    cluster,
    delete,
    flux,
    flux_extension,
    maintenance_windows,
    node_pools,
    secrets,
    systems,
)
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.not_ready import stopped
from shared.pipeline.worker.steps.orphaned_record import orphaned
from shared.pipeline.worker.steps.suspension import suspended
from shared.ports import Ports
from shared.ports.azure import GetCluster

_STEPS: dict[Step, Callable[[StepContext], Outcome]] = {
    Step.RESOURCE_GROUP: cluster.ensure_resource_group,
    Step.CLUSTER: cluster.ensure_cluster,
    Step.NODE_POOLS: node_pools.ensure_node_pools,
    Step.MAINTENANCE: maintenance_windows.ensure_maintenance_windows,
    Step.ACCESS: flux.ensure_access,
    Step.BOOTSTRAP_SECRETS: secrets.ensure_secrets,
    Step.FLUX_COMPONENTS: flux.ensure_components,
    Step.FLUX_SYNC: flux.ensure_sync,
    Step.SYSTEMS: systems.ensure_systems,
    Step.VERIFY: flux.verify,
    Step.TOMBSTONE: delete.tombstone,
    Step.DELETE_CLUSTER: delete.delete_cluster,
    Step.DELETE_RESOURCE_GROUP: delete.delete_resource_group,
    Step.FINALIZE: delete.finalize,
}


def _nothing(_: StepContext) -> Outcome:
    """End a step that has nothing to do: the Flux extension needs nobody in the cluster."""
    return Done()


_WITH_EXTENSION: dict[Step, Callable[[StepContext], Outcome]] = {
    **dict.fromkeys((Step.ACCESS, Step.BOOTSTRAP_SECRETS, Step.SYSTEMS), _nothing),
    Step.FLUX_COMPONENTS: flux_extension.ensure_extension,
    Step.FLUX_SYNC: flux_extension.ensure_configurations,
    Step.VERIFY: flux_extension.verify_configurations,
}
"""The steps that differ where Flux is Microsoft's extension."""


def _refused(context: StepContext) -> Fail | None:
    """Return the failure of a spec that an earlier version accepted; a delete needs no valid spec."""
    problem = "" if context.record.deleting else context.desired.problem
    if not problem:
        return None
    version = "this version of Roadstead refuses the manifest that an earlier one accepted"
    return Fail(InvalidManifest(f"{version}: {problem}. Correct it and push"))


def run_step(record: ClusterRecord, ports: Ports) -> Outcome:
    """Run the step that the record is at, unless the cluster has to wait; let errors of the ports pass."""
    context, step = StepContext.of(record, ports), record.job.step.name
    instead = orphaned(context) or _refused(context) or suspended(context)
    if instead:
        return instead
    others = _WITH_EXTENSION if context.desired.has_extension else {}
    try:
        return others.get(step, _STEPS[step])(context)
    except VaultUnavailable:
        raise
    except Unavailable:
        existing = context.azure(GetCluster(context.cluster)) if step in IN_THE_CLUSTER else None
        if existing is not None and is_stopped(existing):
            return stopped(context, existing)
        raise
