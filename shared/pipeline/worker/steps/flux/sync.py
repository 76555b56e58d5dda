"""The sync objects: the git credentials, the GitRepository and the Kustomization."""

from __future__ import annotations

from shared.fleet.kubernetes import flux_objects
from shared.jobs.outcomes import Done, Outcome
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import apply_differing
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects


def ensure_sync(context: StepContext) -> Outcome:
    """Apply the sync objects where they differ, with the request that Flux reconciles them now."""
    credentials, source = context.ports.config.git_credentials, context.desired.spec.flux.repository
    wanted = flux_objects.sync_objects(context.desired, credentials, request=request_of(context))
    api = context.kubernetes()
    live = LiveObjects([flux_objects.ref_of(manifest) for manifest in wanted], api)
    applied = apply_differing(wanted, live, api, entirely=True).note("sync objects")
    without = ""
    if credentials is not None and not credentials.serve(source):
        without = f"{source} is read without credentials: FLUX_GIT_HOST is {credentials.host}"
    return Done("; ".join(filter(None, (applied, without))))


def request_of(context: StepContext) -> str:
    """Return the value with which a job asks Flux to reconcile, one for each job."""
    return context.job.started.isoformat()


def other_source(context: StepContext) -> list[str]:
    """Return the fields in which the cluster's Flux objects have another source or path than the manifest."""
    api = context.kubernetes()
    return [
        path
        for manifest in flux_objects.sync_objects(context.desired, None)
        if manifest["kind"] != "Secret"
        for path in flux_objects.source_difference(manifest, api.get(flux_objects.ref_of(manifest)))
    ]
