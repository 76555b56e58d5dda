"""Whether the workloads of a cluster run: Deployments, StatefulSets and DaemonSets. Pure.

Source: the statuses of ``k8s.io/api/apps/v1``, and for a Deployment its conditions ``Available`` and
``Progressing`` (kubernetes.io/docs/concepts/workloads/controllers/deployment, "Deployment status"). The other
two kinds have no such condition, and no time: their numbers count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import ref_of
from shared.fleet.kubernetes.flux.flux_readiness import message_of
from shared.fleet.kubernetes.health.health import PATIENCE, Fault, changed_at, time_of

API_VERSION = "apps/v1"
DEPLOYMENT = "Deployment"
WORKLOADS = (DEPLOYMENT, "StatefulSet", "DaemonSet")
_BAD = {"Progressing": "ProgressDeadlineExceeded", "Available": "MinimumReplicasUnavailable"}
"""The conditions of a Deployment that are false where it does not run, and the usual reason of each."""


def workload_faults(workloads: Sequence[Json], now: datetime) -> Iterator[Fault]:
    """Yield the workloads that do not run; what somebody changed a moment ago is at work."""
    for live in workloads:
        fault = _of_deployment(live, now) if live["kind"] == DEPLOYMENT else _of_numbers(live)
        if fault is not None and now - changed_at(live) > PATIENCE:
            yield fault


def runs(live: Json) -> bool:
    """Return whether the newest version of a workload is available as often as its spec asks for."""
    status = live.get("status") or {}
    wanted, available = _numbers(live)
    return (
        status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0) and available >= wanted
    )


def _of_deployment(live: Json, now: datetime) -> Fault | None:
    conditions = (live.get("status") or {}).get("conditions") or ()
    found = {str(each.get("type")): each for each in conditions if each.get("status") == "False"}
    for kind, reason in _BAD.items():
        condition = found.get(kind)
        since = time_of((condition or {}).get("lastTransitionTime"))
        if condition is not None and now - since > PATIENCE:
            return Fault(
                ref_of(live), str(condition.get("reason") or reason), message_of(condition), since=since
            )
    return None


def _of_numbers(live: Json) -> Fault | None:
    wanted, available = _numbers(live)
    if available >= wanted:
        return None
    return Fault(ref_of(live), "PodsUnavailable", f"{available} of {wanted} pods are available")


def _numbers(live: Json) -> tuple[int, int]:
    """Return how many pods of a workload there should be, and how many are available."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    if live["kind"] == "DaemonSet":
        return int(status.get("desiredNumberScheduled", 0)), int(status.get("numberAvailable", 0))
    return int(spec.get("replicas", 1)), int(status.get("availableReplicas", 0))
