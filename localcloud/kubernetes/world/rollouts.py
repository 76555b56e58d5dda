"""The status of a Deployment, as its controller writes it; pure.

Source: ``pkg/controller/deployment`` of Kubernetes: ``sync.go``, ``progress.go``, ``util``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from localcloud.kubernetes.world.object_store import Object


def lacks_image(deployment: Object, missing: Collection[str]) -> bool:
    """Return whether one of its images cannot be pulled."""
    containers = deployment["spec"]["template"]["spec"].get("containers") or ()
    return any(container.get("image") in missing for container in containers)


def rolled_out(deployment: Object, now: str) -> dict[str, Any]:
    """Return the status of a Deployment whose newest version runs."""
    wanted = deployment["spec"]["replicas"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        **dict.fromkeys(counts, wanted),
        "conditions": [
            _available(now, status="True"),
            _condition(
                "Progressing", "True", "NewReplicaSetAvailable", "the new replicas are available", now
            ),
        ],
    }


def stuck(deployment: Object, now: str, *, late: bool) -> dict[str, Any]:
    """Return the status of a Deployment whose new pods do not start; ``late``: beyond its progress deadline.

    The old pods run on, unless the strategy ends them first.
    """
    name, spec = deployment["metadata"]["name"], deployment["spec"]
    before = (deployment.get("status") or {}).get("availableReplicas", 0)
    available = 0 if (spec.get("strategy") or {}).get("type") == "Recreate" else before
    updated = min(1, spec["replicas"])
    replica_set = f'ReplicaSet "{name}-{deployment["metadata"]["generation"]}"'
    progressing = ("True", "ReplicaSetUpdated", f"{replica_set} is progressing.")
    timed_out = ("False", "ProgressDeadlineExceeded", f"{replica_set} has timed out progressing.")
    counts = {"readyReplicas": available, "availableReplicas": available} if available else {}
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": available + updated,
        "updatedReplicas": updated,
        "unavailableReplicas": updated,
        **counts,
        "conditions": [
            _available(now, status="True" if available else "False"),
            _condition("Progressing", *(timed_out if late else progressing), now),
        ],
    }


def without_pods(deployment: Object, now: str, refused: str) -> dict[str, Any]:
    """Return the status of a Deployment whose new pods the API server refuses, with its message.

    Source: ``pkg/controller/replicaset/replica_set_utils.go`` and ``pkg/controller/deployment/progress.go``.
    """
    status = stuck(deployment, now, late=False)
    status["replicas"] -= status.pop("updatedReplicas")
    failure = _condition("ReplicaFailure", "True", "FailedCreate", refused, now)
    return {**status, "conditions": [*status["conditions"], failure]}


def shows_same(deployment: Object, status: Mapping[str, Any]) -> bool:
    """Return whether a Deployment has this status already, but for the times of its conditions."""
    return _timeless(deployment.get("status") or {}) == _timeless(status)


def _timeless(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = [
        {key: value for key, value in condition.items() if not key.startswith("last")}
        for condition in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions}


def _available(now: str, *, status: str) -> dict[str, str]:
    reason = "MinimumReplicasAvailable" if status == "True" else "MinimumReplicasUnavailable"
    has = "has" if status == "True" else "does not have"
    return _condition("Available", status, reason, f"Deployment {has} minimum availability.", now)


def _condition(sort: str, status: str, reason: str, message: str, now: str) -> dict[str, str]:
    found = {"type": sort, "status": status, "reason": reason, "message": message}
    return {**found, "lastTransitionTime": now, "lastUpdateTime": now}
