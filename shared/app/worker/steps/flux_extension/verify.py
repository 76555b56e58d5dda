"""The last step with the Flux extension: Azure shows its configurations at the commit of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.verify import verified_in_azure
from shared.app.worker.steps.flux.waiting import Seen, first_wait, follows, older_commit
from shared.app.worker.steps.flux_extension.configure import wanted_configurations
from shared.azure.flux_extension import (
    UNREPORTED,
    Reported,
    is_outdated,
    reported,
    reported_revision,
    synced_revision,
)
from shared.cluster.outcomes import Outcome, Restart
from shared.cluster.record import AppliedRevision
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import KUSTOMIZATION, NAMESPACE
from shared.kubernetes.flux_readiness import Attempt, Failed, Progressing, Readiness, Ready, commit_of
from shared.language.model.cluster.flux_source import MAIN
from shared.ports.azure import ListFluxConfigurations
from shared.resource_ids import ObjectRef


def verify_configurations(context: StepContext) -> Outcome:
    """Wait until Azure shows every object of the configurations as compliant, at the commit of the job."""
    found = context.azure(ListFluxConfigurations(context.cluster))
    wanted = wanted_configurations(context, found)
    missing = next((name for name in wanted if name not in found), None)
    if missing is not None:
        return Restart(f"the configuration {missing} of Flux no longer exists in Azure")
    seen = (one for name, body in wanted.items() for one in _seen(context, name, body, found[name]))
    wait = first_wait(context, seen, context.poll_seconds)
    if wait:
        return wait
    stale = older_commit(context, synced_revision(found[MAIN]))
    revision = reported_revision(found[MAIN])
    applied = AppliedRevision(revision, context.ports.clock()) if revision else None
    return stale or verified_in_azure(context, applied)


def _seen(context: StepContext, name: str, body: Json, live: Json) -> Iterator[Seen]:
    """Yield the objects of a configuration: those that it must have, and those that these applied."""
    kind = str(body["properties"]["sourceKind"])
    source = ObjectRef("", "Bucket" if kind == "AzureBlob" else kind, name, NAMESPACE)
    objects = {(one.ref.kind, one.ref.name, one.ref.namespace): one for one in reported(live)}
    applied = [
        ObjectRef("", KUSTOMIZATION.kind, f"{name}-{each}", NAMESPACE)
        for each in body["properties"]["kustomizations"]
    ]
    outdated, resume = is_outdated(live), f"az k8s-configuration flux update --name {name} --suspend false"
    for ref in (source, *applied):
        one = objects.pop((ref.kind, ref.name, ref.namespace), None)
        state = UNREPORTED if one is None or outdated else _at_commit(context, name, one, live)
        if name == MAIN and isinstance(state, Failed) and ref.kind == KUSTOMIZATION.kind:
            path = body["properties"]["kustomizations"][ref.name.removeprefix(f"{name}-")]["path"]
            state = replace(state, attempt=Attempt(synced_revision(live), path=path))
        yield Seen(ref, state, _place(context, name, ref), resume)
    for child in objects.values():
        yield Seen(child.ref, child.state, _place(context, name, child.ref), resume)


def _at_commit(context: StepContext, name: str, one: Reported, live: Json) -> Readiness:
    """Return how far an object is: a Kustomization in progress where it has not applied what was fetched."""
    if one.ref.kind != KUSTOMIZATION.kind or not isinstance(one.state, Ready):
        return one.state
    fetched, applied = commit_of(synced_revision(live)), commit_of(one.state.revision)
    if not applied or not fetched or applied == fetched:
        return one.state
    if name == MAIN and follows(context, one.state.revision):
        return one.state
    return Progressing(f"it applied {one.state.revision}, the source is at {synced_revision(live)}")


def _place(context: StepContext, name: str, ref: ObjectRef) -> str:
    """Return the field of the manifest with an object, "" for what Flux itself applied."""
    own: Mapping[str, str] = {
        f"{one.source or MAIN}-{one.name}": f"spec.flux.kustomizations[{one.name}]"
        for one in context.desired.spec.flux.kustomizations
    }
    if ref.namespace != NAMESPACE:
        return ""
    if ref.kind != KUSTOMIZATION.kind:
        source = "spec.flux" if name == MAIN else f"spec.flux.sources[{name}]"
        return source if ref.name == name else ""
    return "spec.flux" if ref.name == f"{MAIN}-{MAIN}" else own.get(ref.name, "")
