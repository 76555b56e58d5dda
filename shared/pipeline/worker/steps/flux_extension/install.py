"""The extension of the cluster: the one that Azure calls microsoft.flux."""

from __future__ import annotations

from shared.fleet.desired import digest_of
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_configurations import (
    EXTENSION_TYPE,
    changed_fields,
    extension_body,
)
from shared.fleet.kubernetes.flux.flux_objects import EXTENSION_NAME
from shared.jobs.failures.errors import InvalidManifest
from shared.jobs.job import AcceptedWrite, WriteKind
from shared.jobs.outcomes import Done, Fail, Outcome, Wait
from shared.pipeline.worker.steps.azure_state import recheck
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux_extension.writable import failure, has_failed, hindrance, is_at_work
from shared.pipeline.worker.steps.repeated_write import next_attempt, vanished_again, wait_for, was_accepted
from shared.ports.azure import GetExtension, PutExtension

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
