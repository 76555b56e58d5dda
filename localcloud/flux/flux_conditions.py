"""The status of a Flux object: its conditions, and why a reconciliation failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from localcloud.common.clock import in_seconds
from localcloud.kubernetes.world.object_store import Object

_REQUESTED = "reconcile.fluxcd.io/requestedAt"


class ObjectNotReady(Exception):
    """Why an object is not ready: the reason and message of its condition, "False" or "Unknown".

    ``retry`` is after how many seconds the controller tries again; None: after its usual time.
    """

    def __init__(
        self, reason: str, message: str, *, status: str = "False", retry: float | None = None
    ) -> None:
        super().__init__(message)
        self.reason, self.message, self.status, self.retry = reason, message, status, retry


@dataclass(frozen=True)
class FluxCondition:
    """A condition as its controller sets it; ``generation`` None: of the present one."""

    type: str
    status: str
    reason: str
    message: str
    generation: int | None = None


def kept(found: Mapping[str, Any]) -> FluxCondition:
    """Return a condition that a reconciliation leaves as it is."""
    return FluxCondition(
        found["type"], found["status"], found["reason"], found["message"], found["observedGeneration"]
    )


def requested(value: Object) -> str:
    """Return when a reconciliation was last requested by annotation, "" when it never was."""
    annotations = value["metadata"].get("annotations") or {}
    return str(annotations.get(_REQUESTED, ""))


def condition(value: Object, sort: str) -> Mapping[str, Any]:
    """Return a condition of an object, empty when it has none."""
    conditions = (value.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item["type"] == sort), {})


def is_ready(value: Object) -> bool:
    """Return whether an object's present spec was reconciled and is ready."""
    status = value.get("status") or {}
    current = status.get("observedGeneration") == value["metadata"].get("generation")
    return current and condition(value, "Ready").get("status") == "True"


def with_conditions(
    value: Object, status: Mapping[str, Any], found: Sequence[FluxCondition], now: datetime
) -> dict[str, Any]:
    """Return the status with exactly these conditions.

    ``status.observedGeneration`` is raised only when Ready is True, as the controllers do.
    """
    generation = value["metadata"]["generation"]
    conditions = [_stamped(value, written, generation, now) for written in found]
    whole = {**status, "conditions": conditions}
    if any(written.type == "Ready" and written.status == "True" for written in found):
        whole["observedGeneration"] = generation
    return handled(value, whole)


def handled(value: Object, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status with the request by annotation that was handled, if there was one."""
    asked = requested(value)
    return {**status, "lastHandledReconcileAt": asked} if asked else dict(status)


def _stamped(value: Object, written: FluxCondition, generation: int, now: datetime) -> dict[str, Any]:
    before = condition(value, written.type)
    same = (before.get("status"), before.get("reason"), before.get("message")) == (
        written.status,
        written.reason,
        written.message,
    )
    return {
        "type": written.type,
        "status": written.status,
        "reason": written.reason,
        "message": written.message,
        "lastTransitionTime": before["lastTransitionTime"] if same else in_seconds(now),
        "observedGeneration": generation if written.generation is None else written.generation,
    }
