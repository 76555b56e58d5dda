"""Whether a Deployment runs its newest version, by the rules of ``kubectl rollout status``.

Source: kubernetes/kubectl ``pkg/polymorphichelpers/rollout_status.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json


@dataclass(frozen=True)
class Rollout:
    """A Deployment that does not run its newest version yet; ``failed``: it exceeded its deadline."""

    name: str
    message: str
    failed: bool = False

    def __str__(self) -> str:
        return f"the Deployment {self.name}: {self.message}"


def unfinished(deployments: Sequence[Json]) -> list[Rollout]:
    """Return those of the Deployments whose newest version does not run yet; failed ones come first."""
    found = [rollout for rollout in map(_rollout, deployments) if rollout is not None]
    return sorted(found, key=lambda rollout: (not rollout.failed, rollout.name))


def _rollout(deployment: Json) -> Rollout | None:
    metadata, status = deployment["metadata"], deployment.get("status") or {}
    name = str(metadata["name"])
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return Rollout(name, "Kubernetes has not seen its newest version yet")
    exceeded = _deadline_exceeded(status)
    if exceeded is not None:
        return Rollout(name, exceeded, failed=True)
    wanted = (deployment.get("spec") or {}).get("replicas", 1)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < wanted:
        return Rollout(name, f"{updated} of {wanted} replicas are updated")
    if status.get("replicas", 0) > updated:
        return Rollout(name, f"{status['replicas'] - updated} old replicas still run")
    if available < updated:
        return Rollout(name, f"{available} of {updated} updated replicas are available")
    return None


def _deadline_exceeded(status: Json) -> str | None:
    """Return what Kubernetes says about a rollout that exceeded its deadline, None for any other."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            return f"ProgressDeadlineExceeded: {condition.get('message', '')}".strip(": ")
    return None
