"""What people do to clusters by hand, over the wire: the fleet and its commit say what is so."""

from __future__ import annotations

from collections.abc import Mapping

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.azure_ports import body
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})


def findings(operator: Operator) -> Mapping[str, str]:
    """Return the reason of each cluster's condition Ready."""
    clusters = operator.api.get("clusters")["clusters"]
    return {
        cluster["name"]: condition["reason"]
        for cluster in clusters
        for condition in cluster["conditions"]
        if condition["type"] == "Ready"
    }


def refreshed(operator: Operator) -> list[str]:
    """Return the names in the tags of the orphans that a whole sweep found which began afterwards."""
    before = operator.api.get("clusters")["sweep"]["finishedAt"]
    operator.api.refresh([])

    def ended() -> bool:
        return bool(operator.api.get("clusters")["sweep"]["finishedAt"] > before)

    operator.wait(ended, "another sweep has ended")
    return [orphan["cluster"] for orphan in operator.api.get("clusters")["sweep"]["orphans"]]


def test_a_deleted_and_a_stopped_cluster_are_not_shown_as_ready_until_they_are(start: Start) -> None:
    operator = start(QUICK)
    commit = operator.push(fleet_files.fleet("one", "two"))
    operator.wait_for_status(commit, "success")
    with arm(operator) as azure:
        azure.delete(path("one")).raise_for_status()
        azure.post(path("two", "/stop")).raise_for_status()
        operator.wait(lambda: azure.get(path("one")).status_code == 404, "one is deleted")
        operator.api.refresh([])
        operator.wait(lambda: findings(operator).get("one") == "ClusterMissing", "one is missing")
        operator.api.refresh(["two"])
        operator.wait(lambda: findings(operator).get("two") == "ClusterStopped", "two is stopped")
        assert operator.phases() == {"one": "Failed", "two": "Failed"}
        assert "ClusterMissing" in operator.wait_for_status(commit, "failure")
        azure.post(path("two", "/start")).raise_for_status()

        def running() -> bool:
            return bool(azure.get(path("two")).json()["properties"]["powerState"]["code"] == "Running")

        operator.wait(running, "two runs again")
    operator.api.refresh(["two"])
    operator.wait(lambda: operator.phases()["two"] == "Ready", "two is Ready again")
    operator.api.replay("one")
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {"one": "Ready", "two": "Ready"}
    assert operator.accepted()["create", "one"] == 2
    sweep = operator.api.get("clusters")["sweep"]
    assert (sweep["problems"], sweep["orphans"]) == ([], [])
    assert sweep["finishedAt"]
    with arm(operator) as azure:
        tags = azure.get(path("one")).json()["tags"] | {"roadstead-cluster": "ghost"}
        group, _, _ = path("ghost").partition("/providers/")
        answer = azure.put(f"{group}?api-version=2021-04-01", json={"location": "eastus"})
        answer.raise_for_status()
        azure.put(path("ghost"), json={**body(dnsPrefix="ghost"), "tags": tags}).raise_for_status()
        assert [refreshed(operator) for _ in range(2)] == [["ghost"], ["ghost"]]
        assert azure.get(path("ghost")).json()["properties"]["provisioningState"] == "Succeeded"
    assert operator.accepted()["delete", "ghost"] == 0
    assert operator.phases() == {"one": "Ready", "two": "Ready"}
    assert operator.status(commit).startswith("success")
