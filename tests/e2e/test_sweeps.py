"""Clusters that people delete, stop and add by hand, over the wire: found, shown, and as the policy says.

The conditions and the status of the commit are true before, while a job brings a cluster back, and after it.
"""

from __future__ import annotations

import httpx
import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.azure_ports import body
from tests.support.drift_on_the_wire import ARM_SECONDS
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead
from tests.support.truth_on_the_wire import HEALTHY, LOST, REPAIRED, exists, hold, release, wait_for

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
EXEMPT = "fields: [stoppedCluster], action: ignore, owner: a, reason: b, expires: 2999-12-31"
POLICIES = {
    "deleted": "",
    "created": "  drift: {missingCluster: recreate}\n",
    "stopped": "",
    "started": "  drift: {stoppedCluster: start}\n",
    "parked": f"  drift: {{stoppedCluster: start, rules: [{{name: parked, {EXEMPT}}}]}}\n",
}


def fleet() -> dict[str, bytes]:
    """Return a fleet with a cluster for each case."""
    manifests = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=policy)
        for name, policy in POLICIES.items()
    }
    return fleet_files.fleet() | manifests


def findings(operator: Operator) -> dict[str, str]:
    """Return what the API shows of whole clusters that differ."""
    return {cluster["name"]: cluster["finding"] for cluster in operator.api.drift()["clusters"]}


def orphans(operator: Operator) -> list[str]:
    """Return the names in the tags of the orphans that the last whole sweep found."""
    return [orphan["cluster"] for orphan in operator.api.get("clusters")["sweep"]["orphans"]]


def refreshed(operator: Operator) -> list[str]:
    """Return the orphans of a whole sweep that began now."""
    before = operator.api.get("clusters")["sweep"]["finishedAt"] or ""
    operator.api.refresh([])

    def ended() -> bool:
        return (operator.api.get("clusters")["sweep"]["finishedAt"] or "") > before

    operator.wait(ended, "another sweep has ended")
    return orphans(operator)


def create_orphan(azure: httpx.Client) -> None:
    """Create a cluster with the tags of another one, as somebody does who copies it in the portal."""
    tags = azure.get(path("deleted")).json()["tags"] | {"roadstead-cluster": "ghost"}
    group, _, _ = path("ghost").partition("/providers/")
    azure.put(f"{group}?api-version=2021-04-01", json={"location": "eastus"}).raise_for_status()
    azure.put(path("ghost"), json={**body(dnsPrefix="ghost"), "tags": tags}).raise_for_status()


def runs(azure: httpx.Client, name: str) -> bool:
    properties = azure.get(path(name)).json()["properties"]
    idle = properties["provisioningState"] == "Succeeded"
    return bool(idle and properties["powerState"]["code"] == "Running")


def stands_still(azure: httpx.Client, name: str) -> bool:
    properties = azure.get(path(name)).json()["properties"]
    return bool(properties["provisioningState"] == "Succeeded" and not runs(azure, name))


@pytest.mark.long
def test_deleted_stopped_and_added_clusters_are_found_and_reported_or_brought_back(start: Start) -> None:
    operator = start(QUICK)
    commit = operator.push(fleet())
    operator.wait_for_status(commit, "success")
    wait_for(operator, dict.fromkeys(POLICIES, HEALTHY), "all are healthy before", refresh=True)
    assert operator.status(commit).startswith("success")
    with arm(operator) as azure:
        create_orphan(azure)
        for name in ("deleted", "created"):
            azure.delete(path(name)).raise_for_status()
        for name in ("stopped", "started", "parked"):
            azure.post(path(name, "/stop")).raise_for_status()
        for name in ("deleted", "created"):
            operator.wait(lambda: not exists(azure, path(name)), f"{name} is deleted", every=ARM_SECONDS)  # noqa: B023
        for name in ("stopped", "started", "parked"):
            operator.wait(lambda: stands_still(azure, name), f"{name} is stopped", every=ARM_SECONDS)  # noqa: B023
        hold(operator, "^PUT .*/managedClusters/created", "^POST .*/managedClusters/started/start")
        assert refreshed(operator) == ["ghost"]
        during = {"deleted": LOST, "created": REPAIRED, "stopped": LOST, "started": REPAIRED}
        during["parked"] = LOST._replace(InSync="Unknown")
        wait_for(operator, during, "each is shown as it is, and jobs begin where the policy says so")
        assert operator.phases() == {"parked": "Exempt"} | {
            name: "Failed" if during[name] is LOST else "Updating" for name in during if name != "parked"
        }
        failed = operator.wait_for_status(commit, "failure")
        assert "deleted: Failed at verify: ClusterMissing" in failed or "stopped: Failed" in failed
        shown = findings(operator)
        assert shown.get("parked", "") == ""
        assert "the exemption parked of a ignores that until" in operator.api.get("clusters/parked")["reason"]
        assert shown["deleted"].startswith("ClusterMissing: ")
        assert shown["stopped"].startswith("ClusterStopped: somebody stopped the cluster; stopped ")
        url, key = operator.cloud.urls.functions, operator.cloud.settings["API_KEY_ADMIN"]
        said = roadstead("drift", ROADSTEAD_URL=url, ROADSTEAD_KEY=key).stdout
        assert "deleted" in said
        assert "stopped" in said

        release(operator)
        after = {"deleted": LOST, "stopped": LOST}
        operator.wait(
            lambda: {operator.phases()[name] for name in ("created", "started")} == {"Ready"},
            "two are brought back",
        )
        wait_for(operator, after, "two are left as they are")
        assert runs(azure, "started")
        assert [operator.accepted()["create", name] for name in ("created", "deleted")] == [2, 1]
        assert [operator.accepted()["start", name] for name in ("stopped", "parked")] == [0, 0]
        assert operator.status(commit).startswith("failure")

        for name in ("stopped", "parked"):
            azure.post(path(name, "/start")).raise_for_status()
            operator.wait(lambda: runs(azure, name), f"somebody starts {name}", every=ARM_SECONDS)  # noqa: B023
        operator.api.replay("deleted")
        operator.api.refresh(["stopped", "parked"])
        operator.wait(lambda: set(operator.phases().values()) == {"Ready"}, "all are Ready again")
        wait_for(operator, dict.fromkeys(POLICIES, HEALTHY), "all are healthy after", refresh=True)
        operator.wait_for_status(commit, "success")
        assert operator.api.drift()["clusters"] == []
        assert refreshed(operator) == ["ghost"]
        assert azure.get(path("ghost")).json()["properties"]["provisioningState"] == "Succeeded"
    assert operator.accepted()["delete", "ghost"] == 0
    assert operator.api.get("clusters")["sweep"]["problems"] == []
