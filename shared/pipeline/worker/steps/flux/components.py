"""The components: Flux as the fleet repository pins it, applied, and rolled out."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes import flux_objects
from shared.fleet.kubernetes.rollout import Rollout, unfinished
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.errors import InvalidManifest
from shared.jobs.job import WaitingOn, WaitKind
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import apply_missing
from shared.ports import KubernetesApi

CRD = "apiextensions.k8s.io/v1"
SHOWN = 3


def ensure_components(context: StepContext) -> Outcome:
    """Apply the components where they differ, and wait until their Deployments run.

    While they roll out, only the Deployments are read.
    """
    try:
        manifests = flux_objects.components(context.ports.repository.blob(context.desired.components))
    except flux_objects.ComponentsError as error:
        return Fail(InvalidManifest(f"{context.desired.spec.flux.components}: {error}"))
    api, note = context.kubernetes(), ""
    deployments = _deployments(manifests, api) if _rolling_out(context) else None
    if deployments is None:
        applied = _install(manifests, api)
        if isinstance(applied, Wait):
            return applied
        note, deployments = applied, _deployments(manifests, api) or []
    rollouts = unfinished(deployments)
    return rollout_wait(context, rollouts) if rollouts else Done(note)


def _rolling_out(context: StepContext) -> bool:
    """Return whether an earlier run of the step applied these components, and they only have to roll out."""
    waiting = context.job.step.waiting_on
    return waiting is not None and (waiting.kind, waiting.key) == (
        WaitKind.ROLLOUT,
        context.desired.components,
    )


def _install(manifests: Sequence[Json], api: KubernetesApi) -> Wait | str:
    """Apply namespaces and definitions first, then the rest; return what was done, or what to wait for."""
    first = [manifest for manifest in manifests if flux_objects.comes_first(manifest)]
    applied = apply_missing(first, api)
    for manifest in first:
        if manifest["kind"] == "CustomResourceDefinition" and not _established(manifest, api):
            name = manifest["metadata"]["name"]
            return Wait(2, f"the API server does not serve {name} yet")
    applied += apply_missing([m for m in manifests if not flux_objects.comes_first(m)], api)
    return f"applied {applied} objects of Flux" if applied else ""


def _deployments(manifests: Sequence[Json], api: KubernetesApi) -> list[Json] | None:
    """Return the Deployments of the components as the cluster has them, None when it lacks one."""
    wanted = {flux_objects.ref_of(manifest) for manifest in manifests if manifest["kind"] == "Deployment"}
    namespaces = sorted({ref.namespace or "default" for ref in wanted})
    found = [
        one for namespace in namespaces for one in api.list("apps/v1", "Deployment", namespace=namespace)
    ]
    ours = [one for one in found if flux_objects.ref_of(one) in wanted]
    return ours if len(ours) == len(wanted) else None


def rollout_wait(context: StepContext, rollouts: Sequence[Rollout]) -> Wait:
    """Return the wait for Deployments of Flux that do not run their newest version."""
    waiting = context.job.step.waiting_on
    since = waiting.since if waiting is not None else context.ports.clock()
    failed = any(rollout.failed for rollout in rollouts)
    look = f"`kubectl -n {flux_objects.NAMESPACE} describe pods` shows why the pods do not start"
    return Wait(
        context.ports.config.poll_seconds,
        f"Flux rolls out: {'; '.join(map(str, rollouts[:SHOWN]))}",
        waiting_on=WaitingOn(WaitKind.ROLLOUT, context.desired.components, since),
        action_required=f"{look}; correct {context.desired.spec.flux.components} and push." if failed else "",
    )


def _established(manifest: Json, api: KubernetesApi) -> bool:
    live = api.get(ObjectRef(CRD, "CustomResourceDefinition", manifest["metadata"]["name"])) or {}
    conditions = (live.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
