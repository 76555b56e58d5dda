"""The configurations of the extension: one for each source of the manifest, with its Kustomizations.

They are written one after the other, each at most once in a job; what somebody changes back meanwhile is left
to the next check. The git credentials of the app go with each write of the first one: Azure never shows them,
so nobody can say whether it has the present ones. The job that rebuilds a record takes them as present: it
writes nothing. The next one writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.fleet.desired import digest_of
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_configurations import (
    changed_fields,
    configuration_bodies,
    uses_app_credentials,
    with_key,
    with_user,
)
from shared.fleet.manifests.cluster.flux.source import MAIN
from shared.jobs.findings.flux_correction import corrects_flux
from shared.jobs.job import AcceptedWrite, WriteKind
from shared.jobs.outcomes import Done, Outcome, Wait
from shared.pipeline.worker.steps.azure_state import recheck, reverted_fields
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux_extension.writable import failure, has_failed, hindrance, is_at_work
from shared.pipeline.worker.steps.repeated_write import (
    next_attempt,
    still_exists,
    vanished_again,
    wait_for,
    was_accepted,
)
from shared.ports.azure import DeleteFluxConfiguration, ListFluxConfigurations, PutFluxConfiguration


def ensure_configurations(context: StepContext) -> Outcome:
    """Write the configurations that differ, then delete those that earlier generations had."""
    found = context.azure(ListFluxConfigurations(context.cluster))
    wanted = wanted_configurations(context, found)
    busy = [name for name in (*wanted, *context.record.removed_configurations) if _is_busy(found.get(name))]
    if busy:
        return Wait(context.poll_seconds, f"Azure is writing the configuration {busy[0]} of Flux")
    for name in _not_passed(context.job.step.last_write, [*wanted]):
        outcome = _written(context, name, wanted[name], found.get(name))
        if outcome:
            return outcome
    return _removed(context, found) or Done(_left_alone(context, wanted, found))


def _not_passed(last: AcceptedWrite | None, names: list[str]) -> list[str]:
    """Return the configurations from the one written last on: those before it were written, or equal."""
    if last is not None and last.kind is WriteKind.DELETE:
        return []
    passed = names.index(last.target) if last is not None and last.target in names else 0
    return names[passed:]


def wanted_configurations(context: StepContext, found: Mapping[str, Json]) -> dict[str, dict[str, Any]]:
    """Return the configurations without a secret; one that somebody suspended may stay so."""
    desired, credentials = context.desired, context.ports.config.git_credentials
    bodies = configuration_bodies(desired, context.record.facts)
    if credentials is not None and uses_app_credentials(desired.spec.flux, credentials):
        bodies[MAIN] = with_user(bodies[MAIN], credentials)
    if not corrects_flux(context.record):
        for name in bodies.keys() & found.keys():
            bodies[name]["properties"]["suspend"] = is_suspended(found[name])
    return bodies


def is_suspended(live: Json) -> bool:
    """Return whether somebody suspended a configuration."""
    return bool((live.get("properties") or {}).get("suspend"))


def _is_busy(live: Json | None) -> bool:
    return live is not None and is_at_work(live)


def _written(context: StepContext, name: str, body: Json, live: Json | None) -> Outcome | None:
    """Write a configuration; None where it is as wanted. Its secret is in no digest and in no record."""
    credentials = context.ports.config.git_credentials
    secret = name == MAIN and uses_app_credentials(context.desired.spec.flux, credentials)
    secret = secret and not context.record.rebuilding
    what, changed = f"the configuration {name} of Flux", changed_fields(body, live) if live else []
    failed = live is not None and has_failed(live)
    put = AcceptedWrite(WriteKind.PUT, name, digest_of(body))
    accepted = was_accepted(context, put)
    if accepted and live is not None:
        if failed:
            text = (live.get("properties") or {}).get("errorMessage")
            return failure(context, what, {"message": text})
        return reverted_fields(what, changed) if changed else None
    if accepted and not context.job.step.rechecking:
        return recheck(context, what)
    if live is not None and not (changed or failed or secret):
        return None
    attempt = next_attempt(context, put)
    if attempt is None:
        return vanished_again(what)
    hindered = hindrance(context)
    if hindered:
        return hindered
    whole = with_key(body, credentials) if secret and credentials is not None else body
    written = context.azure(PutFluxConfiguration(context.cluster, name, whole))
    fields = f": {', '.join(changed)}" if changed else ""
    return wait_for(context, f"Azure is writing {what}{fields}", attempt, written)


def _removed(context: StepContext, found: Mapping[str, Json]) -> Outcome | None:
    """Delete a configuration that an earlier generation had; Flux then deletes what it applied."""
    for name in context.record.removed_configurations:
        if name not in found:
            continue
        delete = next_attempt(context, AcceptedWrite(WriteKind.DELETE, name))
        if delete is None:
            return still_exists(f"the configuration {name} of Flux")
        hindered = hindrance(context)
        if hindered:
            return hindered
        written = context.azure(DeleteFluxConfiguration(context.cluster, name))
        return wait_for(context, f"Azure is deleting the configuration {name} of Flux", delete, written)
    return None


def _left_alone(context: StepContext, wanted: Mapping[str, Json], found: Mapping[str, Json]) -> str:
    others = sorted(found.keys() - wanted.keys() - {*context.record.removed_configurations})
    return f"left alone: the configurations {', '.join(others)}, not created by Roadstead" if others else ""


def other_source(context: StepContext) -> list[str]:
    """Return the fields in which a cluster that is to be adopted has another source or path in Azure."""
    found = context.azure(ListFluxConfigurations(context.cluster))
    bodies = configuration_bodies(context.desired, None)
    return [
        f"the configuration {name} of Flux: {field}"
        for name, body in bodies.items()
        if name in found
        for field in changed_fields(body, found[name], facts=False)
        if field.startswith(("sourceKind", "gitRepository", "ociRepository", "bucket", "azureBlob"))
        or field.endswith((".path", "]"))
    ]
