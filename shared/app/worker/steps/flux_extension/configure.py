"""The extension of Flux, and its configurations: one for each source of the manifest.

They are written one after the other, each at most once in a job; what somebody changes back meanwhile is left
to the next check. The git credentials of the app go with each write of the first one: Azure never shows them,
so nobody can say whether it has the present ones. The job that rebuilds a record takes them as present: it
writes nothing. The next one writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.app.access.azure_state import FAILED_STATES, recheck, reverted_fields, state_of
from shared.app.access.contests import read_ours
from shared.app.access.context import StepContext
from shared.app.worker.steps.guards.writable import (
    next_attempt,
    not_ready,
    still_exists,
    vanished_again,
    wait_for,
    was_accepted,
)
from shared.azure.changes.writes import is_final
from shared.azure.flux_extension import (
    EXTENSION_TYPE,
    changed_fields,
    configuration_bodies,
    extension_body,
    uses_app_credentials,
    with_key,
    with_user,
)
from shared.cluster.failures.errors import Interrupted, InvalidManifest, from_operation
from shared.cluster.health import corrects_flux
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import Done, Fail, Outcome, Retry, Wait
from shared.json_tree import Json
from shared.kubernetes.flux_objects import EXTENSION_NAME
from shared.language.desired import digest_of
from shared.language.model.cluster.flux_source import MAIN
from shared.ports.azure import (
    DeleteFluxConfiguration,
    GetExtension,
    ListFluxConfigurations,
    PutExtension,
    PutFluxConfiguration,
)
from shared.ports.azure.errors import cause_of

# What the writes to the extension and to its configurations have in common.


def hindrance(context: StepContext) -> Outcome | None:
    """Return what prevents a write below the cluster now, None when nothing does.

    Azure checks no condition of such a write, so whose cluster it is was read a moment ago.
    """
    existing = read_ours(context)
    return not_ready(context, existing) if isinstance(existing, Mapping) else existing


def is_at_work(live: Json) -> bool:
    """Return whether Azure is still carrying the last write out."""
    return not is_final(state_of(live))


def has_failed(live: Json) -> bool:
    """Return whether the last write did not succeed."""
    return state_of(live) in FAILED_STATES


def failure(context: StepContext, what: str, error: Json) -> Outcome:
    """Return the failure of the last write; ``error`` has Azure's ``code`` and ``message``.

    Azure had taken the body, and its agents in the cluster could not carry it out. That may pass, as when
    nodes come late, so the write is repeated as often as any operation that Azure abandoned.
    """
    message = f"{what}: {error.get('message') or 'Azure gives no reason'}"
    code, last = str(error.get("code") or "ExtensionOperationFailed"), context.job.step.last_write
    request_id = last.request_id if last else ""
    found = from_operation("Failed", code, message, cause=cause_of(error), request_id=request_id)
    if isinstance(found, InvalidManifest):
        found = Interrupted(message, code=code, request_id=request_id)
    return Retry(found) if isinstance(found, Interrupted) else Fail(found)


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
    body = extension_body(context.desired.spec.flux, live)
    changed = [] if live is None else changed_fields(body, live)
    failed = live is not None and has_failed(live)
    if live is not None and not changed and not failed:
        return Done()
    put = AcceptedWrite(WriteKind.PUT, EXTENSION_NAME, digest_of(body))
    accepted = was_accepted(context, put)
    if accepted and live is not None:
        return _without_effect(context, live, changed)
    if accepted and not context.job.step.rechecking:
        return recheck(context, _WHAT)
    attempt = next_attempt(context, put)
    if attempt is None:
        return vanished_again(_WHAT)
    hindered = hindrance(context)
    if hindered:
        return hindered
    written = context.azure(PutExtension(context.cluster, EXTENSION_NAME, body))
    fields = f": {', '.join(changed)}" if changed else ""
    return wait_for(context, f"Azure is installing {_WHAT}{fields}", attempt, written)


def _type_of(live: Json) -> str:
    return str((live.get("properties") or {}).get("extensionType") or "").lower()


def _without_effect(context: StepContext, live: Json, changed: list[str]) -> Outcome:
    """Return the failure of the write that Azure accepted last."""
    properties = live.get("properties") or {}
    if has_failed(live):
        statuses = (one for one in properties.get("statuses") or () if one.get("level") == "Error")
        return failure(context, _WHAT, properties.get("errorInfo") or next(statuses, {}))
    differs = f"it still differs in {', '.join(changed)}"
    return Fail(
        InvalidManifest(f"Azure accepted the last write of {_WHAT}, and {differs}; it is not written again")
    )
