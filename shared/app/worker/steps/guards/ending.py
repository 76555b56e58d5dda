"""Writes into a namespace that is being deleted: the namespace shows what keeps it."""

from __future__ import annotations

from contextlib import suppress

from shared.app.access.context import StepContext
from shared.cluster.failures.errors import NamespaceTerminating, ReconcileError
from shared.cluster.outcomes import Retry
from shared.kubernetes.ending import what_keeps
from shared.resource_ids import ObjectRef


def waits_for_end(context: StepContext, refused: NamespaceTerminating) -> Retry:
    """Return the retry of a write that was refused, with what keeps the namespace; one read."""
    reason = ""
    with suppress(ReconcileError):  # the refusal is what counts
        live = context.kubernetes().get(ObjectRef("v1", "Namespace", refused.namespace))
        reason = what_keeps(live) if live is not None else ""
    if reason:
        refused.args = (f"{refused}; {reason}",)
    return Retry(refused)
