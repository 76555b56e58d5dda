"""The last step: Flux has applied the commit and the systems, and every node runs its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from shared.app.access.azure_state import busy, running_of, state_of, vanished
from shared.app.access.context import StepContext
from shared.app.worker.steps import drain
from shared.app.worker.steps.attached import verified_attached
from shared.app.worker.steps.bootstrap_secrets import remove_former_secrets
from shared.app.worker.steps.flux.components import rollout_wait
from shared.app.worker.steps.flux.pinned import instance_wait
from shared.app.worker.steps.flux.reconciled import applied_revision
from shared.azure.differences import beyond_git, drift_of, is_found_once, live_digest
from shared.azure.drift.policy import ignores
from shared.azure.running_versions import AppliedRevision
from shared.cluster.divergence.verification import Verification
from shared.cluster.failures.advice import after_failure, entry_of_flux
from shared.cluster.failures.catalogue import Actor
from shared.cluster.outcomes import Done, Outcome, Restart, Wait
from shared.cluster.recipes import Recipe
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes import flux_objects
from shared.kubernetes.flux_objects import INVENTORY, KUSTOMIZATION, listed_in, ref_of
from shared.kubernetes.flux_readiness import (
    FluxFailure,
    Progressing,
    Readiness,
    Ready,
    commit_of,
    pulled_in,
    reconciled,
)
from shared.kubernetes.health import unfinished
from shared.kubernetes.sync_objects import SOURCE_API
from shared.kubernetes.system_objects import SYSTEM
from shared.language.cluster_systems import ClusterSystem, read_system
from shared.language.pin import short_commit
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster
from shared.resource_ids import ObjectRef

# Whether Flux has applied what the teams' repositories have: the first system for which it has not.

_GATE = (
    "workloadIdentity of a system needs the feature gate ObjectLevelWorkloadIdentity of Flux, which "
    "Roadstead sets from Flux 2.7 on: pin that in the file of spec.flux.components, without a gate that is "
    "false, or in spec.flux.instance, and push."
)


def first_unready(context: StepContext, api: KubernetesApi) -> Outcome | None:
    """Return the wait for the first system that is not Ready, one that failed first; None when all are."""
    systems = [read_system(system) for system in context.desired.systems]
    if not systems:
        return None
    kinds = [(SOURCE_API, kind) for kind in sorted({system.source.kind for system in systems})]
    kinds.append((KUSTOMIZATION.api_version, KUSTOMIZATION.kind))
    listed = [document for kind in kinds for document in api.list(*kind, labels=SYSTEM)]
    live = {ref_of(document): document for document in listed}
    waits: list[Wait] = []
    for system in systems:
        found = _unready(system, live)
        if isinstance(found, ObjectRef):
            return Restart(f"the {found} no longer exists in the cluster")
        if found is not None:
            waits.append(_wait(context, system, *found))
    return min(waits, key=lambda wait: not wait.action_required, default=None)


def _unready(
    system: ClusterSystem, live: Mapping[ObjectRef, Json]
) -> tuple[ObjectRef, Readiness] | ObjectRef | None:
    """Return the object of a system that is not Ready with its state, or one that is missing."""
    source = ObjectRef(SOURCE_API, system.source.kind, system.name, system.home)
    applied = ObjectRef(KUSTOMIZATION.api_version, KUSTOMIZATION.kind, system.name, system.home)
    fetched = ""
    for ref in (source, applied):
        if ref not in live:
            return ref
        if (live[ref].get("spec") or {}).get("suspend"):
            return None
        state = reconciled(live[ref])
        if not isinstance(state, Ready):
            return ref, state
        if ref is applied and state.revision != fetched:
            text = f"it applied {state.revision or 'nothing'}, the source is at {fetched}"
            return ref, Progressing(text)
        fetched = state.revision
        if system.pin is not None and pulled_in(fetched, system.pin.commit) != system.pin.commit:
            text = f"it is at {fetched}, and not at {short_commit(system.pin.commit)}"
            return ref, Progressing(text)
    return None


def _wait(context: StepContext, system: ClusterSystem, ref: ObjectRef, state: Readiness) -> Wait:
    owners = ", ".join(system.owners)
    name = f"the system {system.name} of {owners}: {ref.kind} {ref.namespace}/{ref.name}"
    seconds = context.ports.config.timing.poll_seconds
    if isinstance(state, FluxFailure):
        entry = entry_of_flux(state)
        action = f"Ask {owners} to correct what the message names in {system.source.repository}."
        if state.reason == "FeatureGateDisabled":
            action = _GATE
        elif entry is not None and entry.actor not in (Actor.AUTHOR, Actor.WORKLOAD):
            action = after_failure(state, kind=ref.kind)
        tried = commit_of(state.attempt.revision)
        text = f"{name}: {state.reason}: {state.message}" + (
            f" (Flux tried commit {tried[:8]})" if tried else ""
        )
        return Wait(seconds, text, action_required=action)
    return Wait(seconds, f"{name}: {state.message if isinstance(state, Progressing) else 'it is suspended'}")


PATIENCE = timedelta(minutes=2)
"""After so long without progress it is looked whether Flux is still there."""
_OF_FLUX = ("Deployment", flux_objects.NAMESPACE)


def verify(context: StepContext) -> Outcome:
    """Wait until Flux has applied the commit of the job, or a newer one, and the nodes are up to date.

    A wait ends the recovery of a record, so what the last part would remove is compared before.
    """
    api = context.kubernetes()
    if context.record.recovering:
        remove_former_secrets(context, api)
    deployments = api.list("apps/v1", "Deployment", namespace=flux_objects.NAMESPACE)
    rollouts = unfinished([deployment for deployment in deployments if flux_objects.is_ours(deployment)])
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
    attached = context.desired.is_attached
    ended = verified_attached(api, applied) if attached else verified_in_azure(context, applied)
    if not isinstance(ended, Done):
        return ended
    note = "; ".join(filter(None, (str(applied), remove_former_secrets(context, api))))
    return replace(ended, note=note)


def verified_in_azure(context: StepContext, applied: AppliedRevision | None) -> Outcome:
    """Return the end of the job where Azure shows the cluster as it is to be.

    ``applied`` is None where the Flux extension reports no revision.

    The versions that nodes run are read in the cluster, where the app has a way to it. A cluster with the
    Flux extension and no pools of ours is not entered at all.
    One that has slept was compared before, and the next sweep does so again.
    """
    note = str(applied or "Azure shows no revision that Flux applied")
    if context.job.recipe is Recipe.SLEEP:
        return Done(note)
    live = context.azure(GetCluster(context.cluster))
    if live is None:
        return vanished(context)
    if state_of(live) == "Deleting":
        return Restart(f"somebody deletes the cluster {context.record.name} in Azure")
    running = running_of(live, context.owner, applied)
    ended = _compared(context, live)
    needed = bool(context.desired.spec.node_pools) or not context.desired.has_extension
    behind = drain.behind(context, live) if needed and context.enters else None
    return behind or replace(ended, note=note, running=running)


def _compared(context: StepContext, live: Json) -> Done:
    """Return the end of the job with how Azure shows the cluster, and what differs although it has ended.

    One that differs, also in a field that the job leaves as it is, is compared again by the next sweep. What
    the cluster has beyond git is accepted by the generation's first verification, but for what a comparison
    saw somebody add: that stays reported. A version that somebody raised, and a pool that somebody stopped,
    are accepted by the very first one alone. A later job of the same generation, such as a correction,
    accepts nothing.
    """
    before, record, desired = context.record.observation.verified, context.record, context.desired
    beyond = beyond_git(desired, context.owner, live)
    known = before.now(beyond) if before else Verification(unmanaged=tuple(beyond))
    if record.observed_generation != record.generation:
        known = replace(known, unmanaged=tuple(name for name in beyond if _is_accepted(name, known)))
    found = drift_of(desired, context.owner, live, known.unmanaged)
    shown = [
        difference
        for difference in found
        if difference.path not in desired.left
        and not ignores(desired.spec.drift, difference.path, context.ports.clock())
    ]
    digest = "" if busy(live["properties"]) or found or desired.left else live_digest(live)
    return Done(
        verified=known.compared(digest, beyond),
        in_sync=not (busy(live["properties"]) or shown),
        added=tuple(difference for difference in shown if difference.left_alone),
    )


def _is_accepted(name: str, before: Verification) -> bool:
    """Return whether what a cluster has beyond git, by its name, counts no more after another commit."""
    return name in before.unmanaged if is_found_once(name) else name not in before.added


def _deleted(context: StepContext, deployments: Sequence[Json], api: KubernetesApi) -> Restart | None:
    """Return the restart for a Deployment of Flux that somebody deleted; it is looked for after a while."""
    if context.ports.clock() - context.job.step.last_progress < PATIENCE:
        return None
    inventory = api.get(INVENTORY) or {}
    installed = {ref for ref in listed_in(inventory) if (ref.kind, ref.namespace) == _OF_FLUX}
    lacking = sorted(installed - set(map(flux_objects.ref_of, deployments)), key=str)
    return Restart(f"the {lacking[0]} no longer exists in the cluster") if lacking else None
