"""The last step: Flux has applied the commit, and every node runs the version of its pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from shared.fleet.drift.differences import drift_of, unmanaged_names
from shared.fleet.drift.live_digest import live_digest
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux import flux_objects
from shared.fleet.kubernetes.flux.inventory import INVENTORY, listed_in
from shared.fleet.kubernetes.health.rollout import unfinished
from shared.frozen import replace
from shared.jobs.drift import Verified
from shared.jobs.outcomes import Done, Outcome, Restart
from shared.jobs.record import AppliedRevision
from shared.pipeline.worker.steps.azure_state import busy, running_of, state_of, vanished
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.existing.verify import verified_elsewhere
from shared.pipeline.worker.steps.flux.components import rollout_wait
from shared.pipeline.worker.steps.flux.pinned import instance_wait
from shared.pipeline.worker.steps.flux.reconciled import applied_revision
from shared.pipeline.worker.steps.flux.systems_ready import first_unready
from shared.pipeline.worker.steps.nodes import drain
from shared.pipeline.worker.steps.secrets.removal import remove_former_secrets
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster

PATIENCE = timedelta(minutes=2)
"""After so long without progress it is looked whether Flux is still there."""
_OF_FLUX = ("Deployment", flux_objects.NAMESPACE)


def verify(context: StepContext) -> Outcome:
    """Wait until Flux has applied the commit of the job, or a newer one, and the nodes are up to date."""
    api = context.kubernetes()
    deployments = api.list("apps/v1", "Deployment", namespace=flux_objects.NAMESPACE)
    rollouts = unfinished([one for one in deployments if flux_objects.is_ours(one)])
    if rollouts:
        return rollout_wait(context, rollouts)
    installing = instance_wait(context, api)
    if installing:
        return installing
    applied = applied_revision(context, api)
    if not isinstance(applied, AppliedRevision):
        return _deleted(context, deployments, api) or applied
    waiting = first_unready(context, api)
    if waiting:
        return waiting
    elsewhere = context.desired.is_existing
    ended = verified_elsewhere(api, applied) if elsewhere else verified_in_azure(context, applied)
    if not isinstance(ended, Done):
        return ended
    note = "; ".join(filter(None, (str(applied), remove_former_secrets(context, api))))
    return replace(ended, note=note)


def verified_in_azure(context: StepContext, applied: AppliedRevision | None) -> Outcome:
    """Return the end of the job where Azure shows the cluster as it is to be.

    ``applied`` is None where the Flux extension reports no revision.

    The versions that nodes run are read in the cluster, where the app has a way to it. A cluster with the
    Flux extension and no pools of ours is not entered at all.
    """
    existing = context.azure(GetCluster(context.cluster))
    if existing is None:
        return vanished(context)
    if state_of(existing) == "Deleting":
        return Restart(f"somebody deletes the cluster {context.record.name} in Azure")
    running = running_of(existing, context.owner, applied)
    verified, in_sync = _compared(context, existing)
    needed = bool(context.desired.spec.node_pools) or not context.desired.has_extension
    behind = drain.behind(context, existing) if needed and context.enters else None
    note = str(applied or "Azure shows no revision that Flux applied")
    return behind or Done(note, running=running, verified=verified, in_sync=in_sync)


def _compared(context: StepContext, existing: Json) -> tuple[Verified, bool]:
    """Return how Azure shows the cluster, and whether nothing differs but what the job leaves as it is.

    One that differs, also in such a field, is compared again by the next sweep. What it has beyond git counts
    as of the generation's first verification: a later job of the same generation, such as a correction,
    accepts nothing that came meanwhile.
    """
    before, record = context.record.verified, context.record
    again = before is not None and record.observed_generation == record.generation
    unmanaged = (
        before.unmanaged if before and again else unmanaged_names(context.desired, context.owner, existing)
    )
    left = context.desired.left
    differs = bool(busy(existing["properties"])) or any(
        each.path not in left for each in drift_of(context.desired, context.owner, existing, unmanaged)
    )
    return Verified("" if differs or left else live_digest(existing), unmanaged), not differs


def _deleted(context: StepContext, deployments: Sequence[Json], api: KubernetesApi) -> Restart | None:
    """Return the restart for a Deployment of Flux that somebody deleted; it is looked for after a while."""
    if context.ports.clock() - context.job.step.last_progress < PATIENCE:
        return None
    inventory = api.get(INVENTORY) or {}
    installed = {ref for ref in listed_in(inventory) if (ref.kind, ref.namespace) == _OF_FLUX}
    lacking = sorted(installed - set(map(flux_objects.ref_of, deployments)), key=str)
    return Restart(f"the {lacking[0]} no longer exists in the cluster") if lacking else None
