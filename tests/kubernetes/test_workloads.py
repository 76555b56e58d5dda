"""Which workloads of a cluster do not run, by what their controllers write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.json_tree import Json
from shared.kubernetes.health import PATIENCE
from shared.kubernetes.inside import runs, workload_faults

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATELY, EARLIER = NOW - PATIENCE / 2, NOW - PATIENCE - timedelta(seconds=1)


def workload(kind: str, *, created: datetime = EARLIER, spec: Json | None = None, **status: Any) -> Json:
    """Return a workload of generation 2, with two replicas unless its spec says otherwise."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "generation": 2,
            "creationTimestamp": created.isoformat(),
        },
        "spec": {"replicas": 2} if spec is None else spec,
        "status": {"observedGeneration": 2, **status},
    }


def deployment(kind: str, status: str, since: datetime, *, created: datetime = EARLIER) -> Json:
    """Return a Deployment with one condition."""
    condition = {"type": kind, "status": status, "message": "what Kubernetes says"}
    conditions = [{**condition, "reason": "Because", "lastTransitionTime": since.isoformat()}]
    return workload("Deployment", created=created, availableReplicas=1, conditions=conditions)


def faults(*workloads: Json) -> list[tuple[str, str, datetime | None]]:
    return [(fault.reason, fault.message, fault.since) for fault in workload_faults(workloads, NOW)]


@pytest.mark.parametrize("kind", ["Available", "Progressing"])
def test_a_deployment_is_unhealthy_since_the_time_of_its_condition(kind: str) -> None:
    assert faults(deployment(kind, "False", EARLIER)) == [("Because", "what Kubernetes says", EARLIER)]
    assert faults(deployment(kind, "True", EARLIER), deployment(kind, "False", LATELY)) == []


def test_a_deployment_that_is_scaled_has_enough_while_kubernetes_says_so() -> None:
    scaled = deployment("Available", "True", EARLIER)
    assert faults(scaled) == []
    assert not runs(scaled)


@pytest.mark.parametrize(
    ("live", "found"),
    [
        (workload("StatefulSet", availableReplicas=2), None),
        (workload("StatefulSet", availableReplicas=1), "1 of 2 pods are available"),
        (workload("StatefulSet"), "0 of 2 pods are available"),
        (workload("StatefulSet", spec={"replicas": 0}), None),
        (workload("DaemonSet", desiredNumberScheduled=3, numberAvailable=3), None),
        (workload("DaemonSet", desiredNumberScheduled=3, numberAvailable=2), "2 of 3 pods are available"),
        (workload("DaemonSet", desiredNumberScheduled=3), "0 of 3 pods are available"),
        (workload("DaemonSet", desiredNumberScheduled=0), None),
    ],
)
def test_of_the_other_kinds_the_numbers_count_and_they_show_no_time(live: Json, found: str | None) -> None:
    assert faults(live) == ([("PodsUnavailable", found, None)] if found else [])
    assert runs(live) is (found is None)


def test_what_was_created_a_moment_ago_is_at_work() -> None:
    assert faults(workload("StatefulSet", created=LATELY)) == []
    assert faults(deployment("Available", "False", EARLIER, created=LATELY)) == []


def test_a_version_that_its_controller_has_not_seen_does_not_run() -> None:
    seen = workload("StatefulSet", availableReplicas=2)
    assert not runs({**seen, "metadata": {**seen["metadata"], "generation": 3}})
