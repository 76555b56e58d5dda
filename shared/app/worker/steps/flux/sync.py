"""The sync objects: the git credentials, the facts of the cluster, the sources and the Kustomizations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.applied import LiveObjects, apply_differing, remove
from shared.app.worker.steps.flux.live_pin import as_live, commit_in, held_back, taken_over, unless_forward
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.findings.health import corrects_flux
from shared.cluster.outcomes import Done, Fail, Outcome
from shared.json_tree import Json
from shared.kubernetes.field_ownership import is_applied_by_us
from shared.kubernetes.flux_objects import (
    INVENTORY,
    KUSTOMIZATION,
    NAMESPACE,
    ComponentsError,
    components,
    listed_in,
    ref_of,
)
from shared.kubernetes.sync_objects import (
    ALERT,
    PROVIDER,
    SOURCE_API,
    SOURCE_KINDS,
    as_requested_before,
    event_objects,
    has_app_credentials,
    source_difference,
    source_ref,
    sync_objects,
)
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef

_REPORTING = {PROVIDER.kind, ALERT.kind}
_OPTIONAL = {*SOURCE_KINDS, *_REPORTING} - {"GitRepository"}
"""The kinds that not every cluster needs, and that its components may lack."""


def ensure_sync(context: StepContext) -> Outcome:
    """Apply the sync objects where they differ, with the request that Flux reconciles them now.

    What the manifest had earlier is deleted; Flux then deletes what it applied from Kustomizations among
    that, as far as their ``prune`` and ``deletionPolicy`` say so. One that somebody suspended stays
    suspended, unless the policy corrects what Roadstead applied of Flux.
    """
    credentials, flux = context.ports.config.git_credentials, context.desired.spec.flux
    request = "" if context.record.recovering else request_of(context)
    api = context.kubernetes()
    source, sources = source_ref(context.desired.spec.flux.main), LiveObjects([], api)
    # Listed, so that it is read once: the pin is compared with what an apply may overwrite.
    known = sources.kin(source)
    pinned = pinned_to(context, sources)
    desired = as_live(context, pinned)
    facts, fleet = context.record.observation.facts, context.owner.fleet
    wanted = sync_objects(desired, fleet, credentials, facts=facts, request=request)
    wanted = (*wanted, *event_objects(context.desired, context.ports.config.public_url))
    refused = _undefined(context, wanted) or _without_address(context) or held_back(context, pinned)
    if refused:
        return refused
    live = LiveObjects([ref_of(manifest) for manifest in wanted], api)
    live.know(source, known)
    if context.record.recovering:
        wanted = tuple(as_requested_before(manifest, live.get(ref_of(manifest))) for manifest in wanted)
    resumes = corrects_flux(context.record)
    applied = apply_differing(wanted, live, api, entirely=True, resumes=resumes).note("sync object")
    removed = _remove_former({ref_of(manifest) for manifest in wanted}, api)
    without = ""
    if credentials is not None and has_app_credentials(flux) and not credentials.serve(flux.repository):
        without = f"{flux.repository} is read without credentials: FLUX_GIT_HOST is {credentials.host}"
    return Done("; ".join(filter(None, (applied, removed, without))), pins=taken_over(context, desired))


def request_of(context: StepContext) -> str:
    """Return the value with which a job asks Flux to reconcile, one for each job."""
    return context.job.started.isoformat()


def pinned_to(context: StepContext, live: LiveObjects) -> str:
    """Return the commit that Flux pulls on the cluster, "" for none, and of another repository."""
    if context.desired.pin is None:
        return ""
    source = context.desired.spec.flux.main
    spec = (live.get(source_ref(source)) or {}).get("spec") or {}
    return commit_in(spec.get("ref")) if spec.get("url") in (None, source.url) else ""


def other_source(context: StepContext) -> list[str]:
    """Return the fields in which the cluster's Flux objects have another source or path than the manifest."""
    live = LiveObjects([], context.kubernetes())
    fleet = context.owner.fleet
    unpinned = sync_objects(context.desired.with_pin(None), fleet, None)
    differences = [
        path
        for manifest, plain in zip(sync_objects(context.desired, fleet, None), unpinned, strict=True)
        for path in source_difference(manifest, plain, live.get(ref_of(manifest)))
    ]
    return unless_forward(context, differences, pinned_to(context, live)) if differences else []


def _undefined(context: StepContext, wanted: Sequence[Json]) -> Fail | None:
    needed = {
        (document["kind"], document["apiVersion"]) for document in wanted if document["kind"] in _OPTIONAL
    }
    if not needed or context.desired.has_operator:  # its FluxInstance, which is Ready, defines them
        return None
    path, main = context.desired.spec.flux.components, context.desired.spec.flux.kind
    try:
        manifests = components(context.ports.git_host.blob(context.desired.components))
    except ComponentsError as error:
        return Fail(InvalidManifest(f"{path}: {error}"))
    kinds = {kind for kind, _ in needed - _defined(manifests)}
    if not kinds:
        return None
    lacking = ", ".join(sorted(kinds))
    events = not kinds.isdisjoint(_REPORTING)
    controller = "notification" if events else "source"
    field = "events" if events else "repository" if main in kinds else "sources"
    remedy = f"write the file again with flux install --export and its {controller}-controller"
    return Fail(InvalidManifest(f"spec.flux.{field} needs {lacking}, which {path} does not define; {remedy}"))


def _defined(manifests: Sequence[Json]) -> set[tuple[str, str]]:
    """Return the kinds that components define, each in every version that it is served in."""
    specs = [manifest["spec"] for manifest in manifests if manifest["kind"] == "CustomResourceDefinition"]
    return {
        (spec["names"]["kind"], f"{spec['group']}/{version['name']}")
        for spec in specs
        for version in spec["versions"]
    }


def _without_address(context: StepContext) -> Fail | None:
    if context.desired.spec.flux.events is None or context.ports.config.public_url:
        return None
    remedy = "set PUBLIC_URL, a setting of the app, or remove the field"
    return Fail(InvalidManifest(f"spec.flux.events needs the address of the app; {remedy}"))


def _remove_former(wanted: set[ObjectRef], api: KubernetesApi) -> str:
    """Delete the sync objects that we applied and no longer want; return what was deleted.

    Only what Roadstead alone applies is deleted. An Alert goes before its Provider, and a Kustomization
    before the source that it uses.
    """
    former = [live for live in _sync_objects_of(api) if ref_of(live) not in wanted]
    installed = listed_in(api.get(INVENTORY) or {}) if former else ()
    return remove((live for live in former if ref_of(live) not in installed), api, lambda _: "").note


def _sync_objects_of(api: KubernetesApi) -> Iterator[Json]:
    """Yield the sync objects in the namespace of Flux that Roadstead has applied, in this order."""
    sources = (ObjectRef(SOURCE_API, kind, "", NAMESPACE) for kind in SOURCE_KINDS)
    for place in (ALERT, PROVIDER, KUSTOMIZATION, *sources):
        for live in LiveObjects([], api).kin(place):
            if is_applied_by_us(live) and "deletionTimestamp" not in live["metadata"]:
                yield live
