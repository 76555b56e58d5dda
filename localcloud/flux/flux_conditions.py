"""The status of a Flux object: its conditions, and what a failed reconciliation says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from localcloud.kubernetes.world.object_store import Object

_REQUESTED = "reconcile.fluxcd.io/requestedAt"


class NotReady(Exception):
    """Why an object is not ready: the reason of its condition, the message, "False" or "Unknown"."""

    def __init__(self, reason: str, message: str, *, status: str = "False") -> None:
        super().__init__(message)
        self.reason, self.message, self.status = reason, message, status


def stamp(now: datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def requested(value: Object) -> str:
    """Return when somebody last asked for a reconciliation by annotation, "" when nobody did."""
    annotations = value["metadata"].get("annotations") or {}
    return str(annotations.get(_REQUESTED, ""))


def condition(value: Object, sort: str) -> Mapping[str, Any]:
    """Return a condition of an object, empty when it has none."""
    conditions = (value.get("status") or {}).get("conditions") or ()
    return next((item for item in conditions if item["type"] == sort), {})


def is_ready(value: Object) -> bool:
    """Tell whether an object's present spec was reconciled and is ready."""
    status = value.get("status") or {}
    current = status.get("observedGeneration") == value["metadata"].get("generation")
    return current and condition(value, "Ready").get("status") == "True"


def with_conditions(
    value: Object, status: Mapping[str, Any], found: Iterable[tuple[str, str, str, str]], now: datetime
) -> dict[str, Any]:
    """Return the status with these conditions (type, status, reason, message) for the present spec."""
    generation = value["metadata"]["generation"]
    conditions = []
    for sort, truth, reason, message in found:
        before = condition(value, sort)
        since = before["lastTransitionTime"] if before.get("status") == truth else stamp(now)
        conditions.append(
            {
                "type": sort,
                "status": truth,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since,
                "observedGeneration": generation,
            }
        )
    whole = {**status, "observedGeneration": generation, "conditions": conditions}
    asked = requested(value)
    return {**whole, "lastHandledReconcileAt": asked} if asked else whole
