"""The steps of the recipes: each reads, decides through a pure function, makes at most one bounded write."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from shared.app.access.contests import NotWritten, read_ours
from shared.app.access.context import StepContext
from shared.app.access.lease_guard import GuardedKubernetes, WriteHeld, without_writes
from shared.app.worker.steps import attached, bootstrap_secrets, cluster, delete, node_pools, systems
from shared.app.worker.steps.companions import ENSURES, REMOVALS, StepFunction
from shared.app.worker.steps.delete import orphaned
from shared.app.worker.steps.flux.components import ensure_access, ensure_components
from shared.app.worker.steps.flux.extension import (
    ensure_configurations,
    ensure_extension,
    verify_configurations,
)
from shared.app.worker.steps.flux.sync import ensure_sync
from shared.app.worker.steps.flux.verify import verify
from shared.app.worker.steps.recovering import held
from shared.app.worker.steps.sleep import ensure_asleep, ensure_awake
from shared.app.worker.steps.writable import stopped, suspended
from shared.azure.changes.writes import is_stopped
from shared.cluster.failures.errors import (
    AnotherCluster,
    InvalidManifest,
    NamespaceTerminating,
    ReconcileError,
    Unavailable,
    VaultUnavailable,
    Withheld,
)
from shared.cluster.failures.remedies import suggested_action
from shared.cluster.outcomes import Done, Fail, Outcome, Retry, Wait
from shared.cluster.recipes import IN_THE_CLUSTER, Recipe, Step
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.kubernetes.health import what_keeps
from shared.ports import Ports
from shared.ports.azure import GetCluster
from shared.resource_ids import ObjectRef

# Writes into a namespace that is being deleted: the namespace shows what keeps it.


def waits_for_end(context: StepContext, refused: NamespaceTerminating) -> Retry:
    """Return the retry of a write that was refused, with what keeps the namespace; one read."""
    reason = ""
    with suppress(ReconcileError):  # the refusal is what counts
        live = context.kubernetes().get(ObjectRef("v1", "Namespace", refused.namespace))
        reason = what_keeps(live) if live is not None else ""
    if reason:
        refused.args = (f"{refused}; {reason}",)
    return Retry(refused)


_STEPS: dict[Step, StepFunction] = {
    **ENSURES,
    **REMOVALS,
    Step.RESOURCE_GROUP: cluster.ensure_resource_group,
    Step.CLUSTER: cluster.ensure_cluster,
    Step.NODE_POOLS: node_pools.ensure_node_pools,
    Step.ACCESS: ensure_access,
    Step.BOOTSTRAP_SECRETS: bootstrap_secrets.ensure_secrets,
    Step.FLUX_COMPONENTS: ensure_components,
    Step.FLUX_SYNC: ensure_sync,
    Step.SYSTEMS: systems.ensure_systems,
    Step.VERIFY: verify,
    Step.TOMBSTONE: delete.tombstone,
    Step.DELETE_CLUSTER: delete.delete_cluster,
    Step.DELETE_RESOURCE_GROUP: delete.delete_resource_group,
    Step.SLEEP: ensure_asleep,
    Step.WAKE: ensure_awake,
    Step.RELEASE: attached.release_cluster,
    Step.FINALIZE: delete.finalize,
}


def _nothing(_: StepContext) -> Outcome:
    """End a step that has nothing to do: the Flux extension needs nobody in the cluster."""
    return Done()


_WITH_EXTENSION: dict[Step, StepFunction] = {
    **dict.fromkeys((Step.ACCESS, Step.BOOTSTRAP_SECRETS, Step.SYSTEMS), _nothing),
    Step.FLUX_COMPONENTS: ensure_extension,
    Step.FLUX_SYNC: ensure_configurations,
    Step.VERIFY: verify_configurations,
}
"""The steps that differ where Flux is Microsoft's extension."""
_ELSEWHERE: dict[Step, StepFunction] = {Step.ACCESS: attached.ensure_owner}
"""The steps that differ where the cluster is not in Azure."""


def _refused(context: StepContext) -> Fail | None:
    """Return the failure of a stored spec that the rules refuse; a delete needs no valid spec."""
    problem = "" if context.record.deleting else context.desired.problem
    if not problem:
        return None
    version = "this version of Roadstead refuses the manifest that an earlier one accepted"
    return Fail(InvalidManifest(f"{version}: {problem}. Correct it and push"))


def _held(context: StepContext, would: str) -> Outcome:
    found = None if context.desired.is_attached else context.azure(GetCluster(context.cluster))
    return held(context, found, would)


def _withheld(error: Withheld) -> Wait:
    """Return the wait of a step that the git host does not give what it needs until somebody acts there."""
    reason, action = f"{error.kind}: {error}", suggested_action(error.kind, failed=False)
    return Wait.for_person(reason, action)


def run_step(record: ClusterRecord, ports: Ports, *, inside: bool = False) -> Outcome:
    """Run the step that the record is at, unless the cluster has to wait; let errors of the ports pass."""
    context, step = StepContext.of(record, ports), record.job.step.name
    instead = orphaned(context) or _refused(context) or suspended(context)
    if instead:
        return instead
    is_attached = context.desired.is_attached
    if record.recovering:
        context = replace(context, ports=without_writes(ports))
    elif inside:
        context = replace(context, ports=knowing_whose(context))
    others = _WITH_EXTENSION if context.desired.has_extension else _ELSEWHERE if is_attached else {}
    run = others.get(step, _STEPS[step])
    try:
        return run(context)
    except WriteHeld as write:
        return _held(context, str(write))
    except NotWritten as instead_of_write:
        return instead_of_write.outcome
    except AnotherCluster as other:
        return attached.another_cluster(context, other)
    except Withheld as error:
        return _withheld(error)
    except NamespaceTerminating as refused:
        return waits_for_end(context, refused)
    except VaultUnavailable:
        raise
    except Unavailable:
        entered = step in IN_THE_CLUSTER and not is_attached
        found = context.azure(GetCluster(context.cluster)) if entered else None
        if found is not None and is_stopped(found):
            return stopped(context, found)
        raise


# A message that begins inside a cluster reads whose cluster it is, before its first write there. The steps
# before have read that, but in an earlier message: another installation may have marked it since. A step that
# writes nothing costs no read.

_READ = {
    Recipe.PROVISION: (Step.RESOURCE_GROUP, Step.CLUSTER, Step.NODE_POOLS),
    Recipe.ATTACH: (Step.ACCESS,),
    Recipe.SLEEP: (Step.SLEEP, Step.WAKE),
}
"""Where a message begins that reads whose cluster it is before it is inside: the last of them always does."""


def begins_inside(recipe: Recipe, step: Step) -> bool:
    """Return whether a message that begins with this step has to read whose cluster it writes to."""
    return step not in _READ.get(recipe, (step,))


def knowing_whose(context: StepContext) -> Ports:
    """Return the ports with that read before the first write to the cluster."""
    step, known = context.job.step.name, False

    def require(*_: object) -> None:
        nonlocal known
        if not known:
            found = attached.still_ours(context) if context.desired.is_attached else read_ours(context)
            if not isinstance(found, Mapping):
                raise NotWritten(found)
            known = True

    if step not in IN_THE_CLUSTER or step in _READ[context.job.recipe]:
        return context.ports
    return replace(context.ports, kubernetes=GuardedKubernetes(context.ports.kubernetes, require))
