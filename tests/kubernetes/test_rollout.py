"""Which Deployments do not run their newest version, by the rules of kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from shared.kubernetes.health import unfinished

QUOTA = 'pods "source-controller-7b-x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=9'
TIMED_OUT = 'ReplicaSet "source-controller-7b" has timed out progressing.'


def deployment(name: str = "source-controller", *, generation: int = 2, **status: Any) -> dict[str, Any]:
    whole = {
        "observedGeneration": 2,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        **status,
    }
    return {"metadata": {"name": name, "generation": generation}, "spec": {"replicas": 1}, "status": whole}


def replica_failure(message: str) -> dict[str, Any]:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    return {"conditions": [condition]}


def progressing(status: str, reason: str, message: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Progressing", "status": status, "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("live", "message"),
    [
        (deployment(generation=3), "Kubernetes has not seen its newest version yet"),
        (deployment(updatedReplicas=0), "0 of 1 replicas are updated"),
        (
            deployment(updatedReplicas=0, **replica_failure(QUOTA)),
            f"0 of 1 replicas are updated: FailedCreate: {QUOTA}",
        ),
        (deployment(replicas=2), "1 old replicas still run"),
        (deployment(availableReplicas=0), "0 of 1 updated replicas are available"),
        (
            deployment(updatedReplicas=0, **progressing("False", "ProgressDeadlineExceeded", TIMED_OUT)),
            f"ProgressDeadlineExceeded: {TIMED_OUT}",
        ),
        (
            {"metadata": {"name": "new", "generation": 1}, "spec": {}},
            "Kubernetes has not seen its newest version yet",
        ),
    ],
)
def test_a_deployment_that_does_not_run_its_newest_version_is_named_with_the_reason(
    live: dict[str, Any], message: str
) -> None:
    (found,) = unfinished([live])
    assert (found.message, found.failed) == (message, "ProgressDeadlineExceeded" in message)


@pytest.mark.parametrize(
    "live",
    [
        deployment(),
        deployment(**progressing("True", "NewReplicaSetAvailable", "has successfully progressed")),
        {"metadata": {"name": "off"}, "spec": {"replicas": 0}, "status": {}},
    ],
)
def test_a_deployment_that_runs_its_newest_version_is_finished(live: dict[str, Any]) -> None:
    assert unfinished([live]) == []


def test_a_failed_rollout_is_named_first() -> None:
    failed = deployment("z", **progressing("False", "ProgressDeadlineExceeded", TIMED_OUT))
    names = [
        rollout.name for rollout in unfinished([deployment("b", updatedReplicas=0), deployment(), failed])
    ]
    assert names == ["z", "b"]
