"""The admission webhook of AKS for what Azure Resource Manager manages: nobody else changes it.

The text about a namespace is that of Azure/AKS#5410; what it says of quotas and network policies is assumed,
as learn.microsoft.com/azure/aks/managed-namespaces says only that changes are blocked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kinds import NAMESPACE, ResourceKind
from localcloud.kubernetes.world.object_store import Object

AKS = "aks-namespace-manager"
"""The field manager of AKS for these objects: its name is assumed."""
NAMESPACE_CONTROLLER = "namespace-controller"
"""What deletes the objects in a namespace that is being deleted."""
_LABEL = "kubernetes.azure.com/managedByArm"


def check_change(
    kind: ResourceKind, live: Object | None, new: Mapping[str, Any] | None, manager: str
) -> None:
    """Refuse a change, or with None a delete, of an object with the label of AKS by anybody else."""
    if (
        live is None
        or manager in (AKS, NAMESPACE_CONTROLLER)
        or (live["metadata"].get("labels") or {}).get(_LABEL) != "true"
    ):
        return
    if new is not None and "deletionTimestamp" in live["metadata"]:
        return  # it is on its way out: finalizers and statuses are written
    for part in ("labels", "annotations"):
        if new is None or (live["metadata"].get(part) or {}) != (new["metadata"].get(part) or {}):
            raise _denied(kind, live, part)
    if kind != NAMESPACE and new is not None and live.get("spec") != new.get("spec"):
        raise _denied(kind, live, "spec")


def _denied(kind: ResourceKind, live: Object, part: str) -> StatusError:
    what = f"{kind.kind.lower()} {live['metadata']['name']}"
    message = (
        'admission webhook "aks-namespace-validating-webhook.azmk8s.io" denied the request: '
        f"Updating/deleting {what} {part} is not allowed because it is managed by ARM. "
        "Please update this namespace through ARM api."
    )
    return StatusError(400, "BadRequest", message)
