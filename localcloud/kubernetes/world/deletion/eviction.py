"""Evictions and the disruption budgets that block them, as the API server and its controller compute them.

A budget counts the pods that its selector matches. Its status has how many of them may be evicted now: those
that are Ready beyond ``minAvailable``, or beyond all but ``maxUnavailable`` of what their controllers want.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.object_store import Object

ScaleOf = Callable[[Mapping[str, Any], str], int | None]
"""Returns the replicas that an owner reference's controller in a namespace wants; None: there is none."""


def matching(budget: Object, pods: Sequence[Object]) -> list[Object]:
    """Return the pods of the budget's namespace that its selector matches; none without a selector."""
    namespace = budget["metadata"]["namespace"]
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return []
    return [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == namespace
        and _selected(selector, pod["metadata"].get("labels") or {})
    ]


def budget_status(budget: Object, pods: Sequence[Object], scale_of: ScaleOf) -> dict[str, Any]:
    """Return a budget's status; ``pods`` are all of its namespace."""
    found = [pod for pod in matching(budget, pods) if not _ended(pod)]
    healthy = sum(ready(pod) for pod in found)
    expected, desired = _wanted(budget.get("spec") or {}, found, scale_of)
    allowed = max(0, healthy - desired) if expected else 0
    return {
        "observedGeneration": budget["metadata"]["generation"],
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
    }


def check_eviction(pod: Object, budgets: Sequence[Object]) -> None:
    """Raise ApiError unless the pod may be evicted now; ``budgets`` are those that match it."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    if phase != "Running" or "deletionTimestamp" in pod["metadata"] or not budgets:
        return
    if len(budgets) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise StatusError(500, "InternalError", message)
    spec, status = budgets[0].get("spec") or {}, budgets[0].get("status") or {}
    if not ready(pod):
        undisturbed = status["currentHealthy"] >= status["desiredHealthy"] > 0
        if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or undisturbed:
            return
    if status["disruptionsAllowed"] > 0:
        return
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {budgets[0]['metadata']['name']} needs {status['desiredHealthy']} "
        f"healthy pods and has {status['currentHealthy']} currently",
    }
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    raise StatusError(429, "TooManyRequests", message, details={"causes": [cause]})


def ready(pod: Object) -> bool:
    """Return whether a pod is Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _wanted(spec: Mapping[str, Any], pods: Sequence[Object], scale_of: ScaleOf) -> tuple[int, int]:
    """Return how many pods there should be, and how many of them healthy."""
    least = spec.get("minAvailable")
    if isinstance(least, int):
        return len(pods), least
    scale = _scale(pods, scale_of)
    if scale is None:  # a controller that cannot be found: nothing may go
        return len(pods), len(pods)
    if least is not None:
        return scale, _portion(least, scale)
    return scale, max(0, scale - _portion(spec.get("maxUnavailable", 1), scale))


def _scale(pods: Sequence[Object], scale_of: ScaleOf) -> int | None:
    """Return what the controllers of the pods want together; pods without one do not count."""
    owners = {
        owner["uid"]: (owner, pod["metadata"]["namespace"])
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences") or ()
        if owner.get("controller")
    }
    scales = [scale_of(owner, namespace) for owner, namespace in owners.values()]
    scales_found = [scale for scale in scales if scale is not None]
    return sum(scales_found) if len(scales_found) == len(scales) else None


def _portion(value: int | str, whole: int) -> int:
    """Return a number as it is, or a percentage of the whole, rounded up."""
    return value if isinstance(value, int) else math.ceil(whole * int(value.removesuffix("%")) / 100)


def _selected(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    plain = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in plain.items()) and all(
        _expressed(term, labels) for term in selector.get("matchExpressions") or ()
    )


def _expressed(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    has, value = term["key"] in labels, labels.get(term["key"])
    answers = {
        "Exists": has,
        "DoesNotExist": not has,
        "In": value in (term.get("values") or ()),
        "NotIn": value not in (term.get("values") or ()),
    }
    return answers[term["operator"]]
