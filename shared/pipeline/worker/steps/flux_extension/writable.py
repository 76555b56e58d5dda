"""What the writes to the extension and to its configurations have in common."""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.aks.writes import is_final
from shared.fleet.json_tree import Json
from shared.jobs.failures.errors import Interrupted, InvalidManifest, from_operation
from shared.jobs.outcomes import Fail, Outcome, Retry
from shared.pipeline.worker.steps.azure_state import FAILED_STATES, state_of
from shared.pipeline.worker.steps.contests import read_ours
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.not_ready import not_ready
from shared.ports.azure.errors import cause_of


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
