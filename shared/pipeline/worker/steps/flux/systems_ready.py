"""Whether Flux has applied what the teams' repositories have: the first system for which it has not."""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import KUSTOMIZATION, ref_of
from shared.fleet.kubernetes.flux.flux_readiness import (
    Failed,
    Progressing,
    Readiness,
    Ready,
    commit_of,
    reconciled,
)
from shared.fleet.kubernetes.flux.sync_objects import SOURCE_API
from shared.fleet.kubernetes.system_objects import SYSTEM
from shared.fleet.resource_ids import ObjectRef
from shared.fleet.systems.cluster_systems import ClusterSystem, read_system
from shared.jobs.outcomes import Outcome, Restart, Wait
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import KubernetesApi

_GATE = (
    "workloadIdentity of a system needs the feature gate ObjectLevelWorkloadIdentity of Flux, which "
    "Roadstead sets from Flux 2.7 on: pin that in the file of spec.flux.components, without a gate that is "
    "false, or in spec.flux.instance, and push."
)


def first_unready(context: StepContext, api: KubernetesApi) -> Outcome | None:
    """Return the wait for the first system that is not Ready, one that failed first; None when all are.

    What its team suspended is at rest.
    """
    systems = [read_system(one) for one in context.desired.systems]
    if not systems:
        return None
    kinds = [(SOURCE_API, kind) for kind in sorted({system.source.kind for system in systems})]
    kinds.append((KUSTOMIZATION.api_version, KUSTOMIZATION.kind))
    listed = [one for kind in kinds for one in api.list(*kind, labels=SYSTEM)]
    live = {ref_of(one): one for one in listed}
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
    return None


def _wait(context: StepContext, system: ClusterSystem, ref: ObjectRef, state: Readiness) -> Wait:
    owners = ", ".join(system.owners)
    name = f"the system {system.name} of {owners}: {ref.kind} {ref.namespace}/{ref.name}"
    seconds = context.ports.config.poll_seconds
    if isinstance(state, Failed):
        action = f"Ask {owners} to correct what the message names in {system.source.repository}."
        if state.reason == "FeatureGateDisabled":
            action = _GATE
        tried = commit_of(state.attempt.revision)
        text = f"{name}: {state.reason}: {state.message}" + (
            f" (Flux tried commit {tried[:8]})" if tried else ""
        )
        return Wait(seconds, text, action_required=action)
    return Wait(seconds, f"{name}: {state.message if isinstance(state, Progressing) else 'it is suspended'}")
