"""Install Flux on a running cluster: access, components, sync objects, and the check that they are Ready."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes import flux_objects
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.errors import InvalidManifest
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Wait
from shared.pipeline.worker.steps import drain
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster

CRD = "apiextensions.k8s.io/v1"


def ensure_access(context: StepContext) -> Outcome:
    """Connect to the Kubernetes API; its credentials are fetched for this purpose and live in memory only."""
    context.kubernetes().check()
    return Done()


def ensure_components(context: StepContext) -> Outcome:
    """Apply Flux as the fleet repository pins it: namespaces and definitions first, then the rest."""
    try:
        manifests = flux_objects.components(context.ports.repository.blob(context.desired.components))
    except flux_objects.ComponentsError as error:
        return Fail(InvalidManifest(f"{context.desired.spec.flux.components}: {error}"))
    api = context.kubernetes()
    first = [manifest for manifest in manifests if flux_objects.comes_first(manifest)]
    applied = _apply_missing(first, api)
    for manifest in first:
        if manifest["kind"] == "CustomResourceDefinition" and not _established(manifest, api):
            name = manifest["metadata"]["name"]
            return Wait(2, f"the API server does not serve {name} yet")
    applied += _apply_missing([m for m in manifests if not flux_objects.comes_first(m)], api)
    return Done(f"applied {applied} objects of Flux" if applied else "")


def ensure_sync(context: StepContext) -> Outcome:
    """Apply the git credentials, the GitRepository and the Kustomization where they differ."""
    wanted = flux_objects.sync_objects(context.desired, context.ports.config.git_credentials)
    applied = _apply_missing(wanted, context.kubernetes())
    return Done(f"applied {applied} sync objects" if applied else "")


def other_source(context: StepContext) -> list[str]:
    """Return the fields in which the cluster's Flux objects have another source or path than the manifest."""
    api = context.kubernetes()
    return [
        path
        for manifest in flux_objects.sync_objects(context.desired, None)
        if manifest["kind"] != "Secret"
        for path in flux_objects.source_difference(manifest, api.get(flux_objects.ref_of(manifest)))
    ]


def verify(context: StepContext) -> Outcome:
    """Wait until Flux is Ready with what was applied, and every node runs the version of its pool."""
    api = context.kubernetes()
    live: Json | None = None
    for ref in (flux_objects.SOURCE, flux_objects.KUSTOMIZATION):
        live = api.get(ref)
        if live is None:
            return Restart(f"the {ref} no longer exists in the cluster")
        ready, reason = flux_objects.readiness(live)
        if not ready:
            return Wait(context.ports.config.poll_seconds, f"Flux: {ref.kind} {ref.name}: {reason}")
    existing = context.azure(GetCluster(context.cluster))
    if existing is None:
        return Restart(f"the cluster {context.record.name} no longer exists in Azure")
    return drain.behind(context, existing) or Done(f"Flux applied {_revision(live)}")


def _apply_missing(manifests: Sequence[Json], api: KubernetesApi) -> int:
    """Apply the objects that the cluster does not have as we would apply them; return how many."""
    missing = [m for m in manifests if not flux_objects.is_applied(m, api.get(flux_objects.ref_of(m)))]
    for manifest in missing:
        api.apply(manifest)
    return len(missing)


def _established(manifest: Json, api: KubernetesApi) -> bool:
    live = api.get(ObjectRef(CRD, "CustomResourceDefinition", manifest["metadata"]["name"])) or {}
    conditions = (live.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def _revision(kustomization: Json | None) -> str:
    status = (kustomization or {}).get("status") or {}
    return str(status.get("lastAppliedRevision") or "the source")
