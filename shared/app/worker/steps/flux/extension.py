"""The extension of Flux, and its configurations: one for each source of the manifest.

They are written one after the other, each at most once in a job; what somebody changes back meanwhile is left
to the next check. The git credentials of the app go with each write of the first one: Azure never shows them,
so nobody can say whether it has the present ones. The job that rebuilds a record takes them as present: it
writes nothing. The next one writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.live_pin import as_live, commit_in, held_back, taken_over, unless_forward
from shared.app.worker.steps.flux.verify import verified_in_azure
from shared.app.worker.steps.flux.waiting import FluxProgress, first_wait, follows, older_commit
from shared.app.worker.steps.writable import BelowCluster, bring, is_at_work, send
from shared.azure.flux_extension import (
    EXTENSION_TYPE,
    UNREPORTED,
    changed_fields,
    configuration_bodies,
    extension_body,
    is_outdated,
    reported,
    reported_revision,
    synced_revision,
    uses_app_credentials,
    with_key,
    with_user,
)
from shared.azure.running_versions import AppliedRevision
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.findings.health import corrects_flux
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import Done, Fail, Outcome, Restart, Wait
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import EXTENSION_NAME, KUSTOMIZATION, NAMESPACE
from shared.kubernetes.flux_readiness import Attempt, FluxFailure, Progressing, Readiness, Ready, commit_of
from shared.kubernetes.health import ObjectReport
from shared.language.model.cluster.flux_source import MAIN
from shared.ports.azure import (
    DeleteFluxConfiguration,
    GetExtension,
    ListFluxConfigurations,
    PutExtension,
    PutFluxConfiguration,
)
from shared.resource_ids import ObjectRef


def ensure_configurations(context: StepContext) -> Outcome:
    """Write the configurations that differ, then delete those that earlier generations had."""
    found = context.azure(ListFluxConfigurations(context.cluster))
    back = held_back(context, _pinned_to(context, found))
    if back:
        return back
    wanted = wanted_configurations(context, found)
    busy = [name for name in (*wanted, *context.record.removals.configurations) if _is_busy(found.get(name))]
    if busy:
        return Wait(context.poll_seconds, f"Azure is writing the configuration {busy[0]} of Flux")
    for name in _not_passed(context.job.step.last_write, [*wanted]):
        outcome = _written(context, name, wanted[name], found.get(name))
        if outcome:
            return outcome
    pins = taken_over(context, as_live(context, _pinned_to(context, found)))
    return _removed(context, found) or Done(_left_alone(context, wanted, found), pins=pins)


def _not_passed(last: AcceptedWrite | None, names: list[str]) -> list[str]:
    """Return the configurations from the one written last on: those before it were written, or equal."""
    if last is not None and last.kind is WriteKind.DELETE:
        return []
    passed = names.index(last.target) if last is not None and last.target in names else 0
    return names[passed:]


def wanted_configurations(context: StepContext, found: Mapping[str, Json]) -> dict[str, dict[str, Any]]:
    """Return the configurations without a secret; one that somebody suspended may stay so."""
    desired, credentials = as_live(context, _pinned_to(context, found)), context.ports.config.git_credentials
    bodies = configuration_bodies(desired, context.owner.fleet, context.record.observation.facts)
    if credentials is not None and uses_app_credentials(desired.spec.flux, credentials):
        bodies[MAIN] = with_user(bodies[MAIN], credentials)
    if not corrects_flux(context.record):
        for name in bodies.keys() & found.keys():
            bodies[name]["properties"]["suspend"] = is_suspended(found[name])
    return bodies


def _pinned_to(context: StepContext, found: Mapping[str, Json]) -> str:
    """Return the commit that the first configuration pulls, "" for none, and of another repository."""
    repository = (found.get(MAIN, {}).get("properties") or {}).get("gitRepository") or {}
    same = repository.get("url") in (None, context.desired.spec.flux.main.url)
    return commit_in(repository.get("repositoryRef")) if same else ""


def is_suspended(live: Json) -> bool:
    """Return whether somebody suspended a configuration."""
    return bool((live.get("properties") or {}).get("suspend"))


def _is_busy(live: Json | None) -> bool:
    return live is not None and is_at_work(live)


def _written(context: StepContext, name: str, body: Json, live: Json | None) -> Outcome | None:
    """Write a configuration; None where it is as wanted. Its secret is in no digest and in no record."""
    credentials = context.ports.config.git_credentials
    secret = name == MAIN and uses_app_credentials(context.desired.spec.flux, credentials)
    secret = secret and not context.record.recovering
    whole = with_key(body, credentials) if secret and credentials is not None else body
    changed = changed_fields(body, live) if live else []
    error: Json = {"message": ((live or {}).get("properties") or {}).get("errorMessage")}
    resource = BelowCluster(f"the configuration {name} of Flux", name, body, live, changed, error)
    write = PutFluxConfiguration(context.cluster, name, whole)
    return bring(context, resource, write, "writing", anyway=secret)


def _removed(context: StepContext, found: Mapping[str, Json]) -> Outcome | None:
    """Delete a configuration that an earlier generation had; Flux then deletes what it applied."""
    for name in context.record.removals.configurations:
        if name in found:
            delete, what = AcceptedWrite(WriteKind.DELETE, name), f"the configuration {name} of Flux"
            write = DeleteFluxConfiguration(context.cluster, name)
            return send(context, what, delete, write, f"Azure is deleting {what}")
    return None


def _left_alone(context: StepContext, wanted: Mapping[str, Json], found: Mapping[str, Json]) -> str:
    others = sorted(found.keys() - wanted.keys() - {*context.record.removals.configurations})
    return f"left alone: the configurations {', '.join(others)}, not created by Roadstead" if others else ""


def other_source(context: StepContext) -> list[str]:
    """Return the fields in which a cluster that is to be adopted has another source or path in Azure."""
    found = context.azure(ListFluxConfigurations(context.cluster))
    fleet = context.owner.fleet
    unpinned = configuration_bodies(context.desired.with_pin(None), fleet, None)
    differences = [
        f"the configuration {name} of Flux: {field}"
        for name, body in configuration_bodies(context.desired, fleet, None).items()
        if name in found
        for field in changed_fields(body, found[name], facts=False)
        if field in changed_fields(unpinned[name], found[name], facts=False)
        if field.startswith(("sourceKind", "gitRepository", "ociRepository", "bucket", "azureBlob"))
        or field.endswith((".path", "]"))
    ]
    return unless_forward(context, differences, _pinned_to(context, found)) if differences else []


# The extension of the cluster: the one that Azure calls microsoft.flux.

_WHAT = f"the extension {EXTENSION_NAME}"


def ensure_extension(context: StepContext) -> Outcome:
    """Install the extension where the cluster has none, or another one; wait until Azure has done so."""
    live = context.azure(GetExtension(context.cluster, EXTENSION_NAME))
    if live is not None and is_at_work(live):
        return Wait(context.poll_seconds, f"Azure is installing {_WHAT}")
    if live is not None and _type_of(live) != EXTENSION_TYPE:
        problem = f"{_WHAT} of the cluster is one of the type {_type_of(live)}"
        return Fail(InvalidManifest(f"{problem}; delete it, then replay"))
    body, properties = extension_body(context.desired.spec.flux, live), (live or {}).get("properties") or {}
    changed = [] if live is None else changed_fields(body, live)
    statuses = (status for status in properties.get("statuses") or () if status.get("level") == "Error")
    error: Json = properties.get("errorInfo") or next(statuses, {})
    resource = BelowCluster(_WHAT, EXTENSION_NAME, body, live, changed, error)
    write = PutExtension(context.cluster, EXTENSION_NAME, body)
    return bring(context, resource, write, "installing") or Done()


def _type_of(live: Json) -> str:
    return str((live.get("properties") or {}).get("extensionType") or "").lower()


# The last step: Azure shows the configurations at the commit of the job.


def verify_configurations(context: StepContext) -> Outcome:
    """Wait until Azure shows every object of the configurations as compliant, at the commit of the job."""
    found = context.azure(ListFluxConfigurations(context.cluster))
    wanted = wanted_configurations(context, found)
    missing = next((name for name in wanted if name not in found), None)
    if missing is not None:
        return Restart(f"the configuration {missing} of Flux no longer exists in Azure")
    seen = (report for name, body in wanted.items() for report in _seen(context, name, body, found[name]))
    wait = first_wait(context, seen, context.poll_seconds)
    if wait:
        return wait
    stale = older_commit(context, synced_revision(found[MAIN]))
    revision = reported_revision(found[MAIN])
    applied = AppliedRevision(revision, context.ports.clock()) if revision else None
    return stale or verified_in_azure(context, applied)


def _seen(context: StepContext, name: str, body: Json, live: Json) -> Iterator[FluxProgress]:
    """Yield the objects of a configuration: those that it must have, and those that these applied."""
    kind = str(body["properties"]["sourceKind"])
    source = ObjectRef("", "Bucket" if kind == "AzureBlob" else kind, name, NAMESPACE)
    objects = {(report.ref.kind, report.ref.name, report.ref.namespace): report for report in reported(live)}
    applied = [
        ObjectRef("", KUSTOMIZATION.kind, f"{name}-{kustomization}", NAMESPACE)
        for kustomization in body["properties"]["kustomizations"]
    ]
    outdated, resume = is_outdated(live), f"az k8s-configuration flux update --name {name} --suspend false"
    for ref in (source, *applied):
        report = objects.pop((ref.kind, ref.name, ref.namespace), None)
        state = UNREPORTED if report is None or outdated else _at_commit(context, name, report, live)
        if name == MAIN and isinstance(state, FluxFailure) and ref.kind == KUSTOMIZATION.kind:
            path = body["properties"]["kustomizations"][ref.name.removeprefix(f"{name}-")]["path"]
            state = replace(state, attempt=Attempt(synced_revision(live), path=path))
        yield FluxProgress(ref, state, _place(context, name, ref), resume)
    for child in objects.values():
        yield FluxProgress(child.ref, child.state, _place(context, name, child.ref), resume)


def _at_commit(context: StepContext, name: str, report: ObjectReport, live: Json) -> Readiness:
    """Return how far an object is: a Kustomization in progress where it has not applied what was fetched."""
    if report.ref.kind != KUSTOMIZATION.kind or not isinstance(report.state, Ready):
        return report.state
    fetched, applied = commit_of(synced_revision(live)), commit_of(report.state.revision)
    if not applied or not fetched or applied == fetched:
        return report.state
    if name == MAIN and follows(context, report.state.revision):
        return report.state
    return Progressing(f"it applied {report.state.revision}, the source is at {synced_revision(live)}")


def _place(context: StepContext, name: str, ref: ObjectRef) -> str:
    """Return the field of the manifest with an object, "" for what Flux itself applied."""
    own: Mapping[str, str] = {
        f"{applied.source or MAIN}-{applied.name}": f"spec.flux.kustomizations[{applied.name}]"
        for applied in context.desired.spec.flux.kustomizations
    }
    if ref.namespace != NAMESPACE:
        return ""
    if ref.kind != KUSTOMIZATION.kind:
        source = "spec.flux" if name == MAIN else f"spec.flux.sources[{name}]"
        return source if ref.name == name else ""
    return "spec.flux" if ref.name == f"{MAIN}-{MAIN}" else own.get(ref.name, "")
