"""How a push is processed, in memory: from a commit to Ready clusters, and back."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.cluster.record_parts import Phase
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster, GetGroup, PutCluster
from shared.resource_ids import GroupId
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, record_of, status
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def test_a_pushed_fleet_becomes_ready_with_one_create_per_cluster() -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.example())
    cloud.run()
    assert phases(cloud) == dict.fromkeys(["atlantic-aks", "pacific-aks", "sargasso-aks"], Phase.READY)
    creates = {name: n for (kind, name), n in accepted(cloud).items() if kind == "create"}
    assert creates == {"atlantic-aks": 1, "pacific-aks": 1, "sargasso-aks": 1}
    assert status(cloud, commit) == ("success", "3 of 3 clusters in sync (3 create)")
    history = cloud.repository.statuses.history(commit)
    assert [plan_record.status.state for plan_record in history] == ["success", "pending"]


def test_an_identical_push_writes_nothing_but_the_commit_status() -> None:
    cloud = cloud_with(fleet_files.example())
    writes = accepted(cloud)
    records = cloud.state.clusters()
    commit = push(cloud, fleet_files.example() | {"README.md": b"text\n"})
    cloud.run()
    assert accepted(cloud) == writes
    assert cloud.state.clusters() == records
    assert status(cloud, commit) == ("success", "3 of 3 clusters in sync (3 unchanged)")


def test_a_second_run_over_a_finished_cluster_writes_nothing_but_the_request_to_flux() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    writes = accepted(cloud)
    written: list[str] = []
    connect = cloud.ports.kubernetes.connect
    around(cloud, "kubernetes", connect=lambda *to, **how: WriteRecorder(connect(*to, **how), written))
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] += b"  deletionProtection: true\n"
    push(cloud, files)
    cloud.run()
    record = record_of(cloud, "one")
    assert (record.generation, record.observed_generation, record.phase) == (2, 2, Phase.READY)
    assert accepted(cloud) == writes
    assert written == ["apply GitRepository", "apply Kustomization"]


class WriteRecorder:
    """The API of a cluster, which records each call that is not a read, with the kind of its object."""

    def __init__(self, inner: KubernetesApi, written: list[str]) -> None:
        self._inner, self._written = inner, written

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def recorded(*given: Any, **named: Any) -> Any:
            if not named.get("dry_run"):
                self._written.append(f"{name} {given[0]['kind']}")
            return call(*given, **named)

        return call if name in ("server", "check", "get", "list") else recorded


def test_node_counts_and_pools_follow_git() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    files = fleet_files.fleet("one")
    pool = "    - {name: batch, vmSize: Standard_D8s_v5, count: 2}\n"
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=2, extra=pool)
    commit = push(cloud, files)
    cloud.run()
    assert status(cloud, commit) == ("success", "1 of 1 clusters in sync (1 update)")
    record = record_of(cloud, "one")
    live = cloud.ports.azure.call(GetCluster(record.desired.id))
    assert live is not None
    assert {p["name"]: p["count"] for p in live["properties"]["agentPoolProfiles"]} == {
        "system": 2,
        "batch": 2,
    }
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    live = cloud.ports.azure.call(GetCluster(record.desired.id))
    assert live is not None
    assert {p["name"]: p["count"] for p in live["properties"]["agentPoolProfiles"]} == {"system": 1}


def test_a_removed_folder_deletes_the_cluster_and_the_group_that_we_created() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    removed = record_of(cloud, "two")
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cloud.ports.azure.call(GetCluster(removed.desired.id)) is None
    assert cloud.ports.azure.call(GetGroup(GroupId(removed.desired.id.subscription, "rg-two"))) is None
    assert status(cloud, commit) == ("success", "2 of 2 clusters in sync (1 delete, 1 unchanged)")
    assert cloud.state.events("two", 1)[0].reason == "Deleted"


def test_a_cluster_restored_during_its_deletion_is_created_again_afterwards() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: phases(cloud).get("two") is Phase.DELETING)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["create", "two"] == 2
    assert accepted(cloud)["delete", "two"] == 1
    assert status(cloud, commit)[0] == "success"


def test_more_deletes_than_the_budget_need_approval_and_are_reported() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two", "three"))
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert len(phases(cloud)) == 3
    state, description = status(cloud, commit)
    assert state == "failure"
    assert description.startswith(
        "three, two: the commit removes 2 clusters, guards.deleteBudget in fleet.yaml allows"
    )
    cloud.run(600)
    push(cloud, fleet_files.fleet("one", budget=2))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_the_last_cluster_can_be_removed() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}


def test_an_invalid_manifest_keeps_only_its_own_cluster_at_the_last_valid_spec() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    files = fleet_files.fleet("one", "two", "new")
    files["clusters/one/cluster.yaml"] = files["clusters/one/cluster.yaml"].replace(b"location", b"loaction")
    commit = push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY, "new": Phase.READY}
    state, description = status(cloud, commit)
    assert state == "failure"
    assert description.startswith("one: clusters/one/cluster.yaml:")


def test_a_truncated_tree_changes_nothing_and_is_read_again() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    cloud.repository.truncate_trees = True
    push(cloud, fleet_files.fleet("one"))
    cloud.run(120)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert "truncated" in str(cloud.state.fleet().problem)
    cloud.repository.truncate_trees = False
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cloud.state.fleet().problem is None


def test_the_timer_plans_the_commit_of_a_lost_webhook() -> None:
    cloud = MemoryCloud()
    cloud.repository.push(fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_revert_is_a_new_generation() -> None:
    cloud = MemoryCloud()
    first = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    changed = fleet_files.fleet("one")
    changed["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=4)
    push(cloud, changed)
    cloud.run(until=lambda: phases(cloud)["one"] is Phase.UPDATING)
    cloud.repository.reset(first)
    accept(Push("back", "back", first), cloud.ports)
    cloud.run()
    record = record_of(cloud, "one")
    assert (record.generation, record.observed_generation) == (3, 3)
    live = cloud.ports.azure.call(GetCluster(record.desired.id))
    assert live is not None
    assert live["properties"]["agentPoolProfiles"][0]["count"] == 1


def test_a_cluster_that_is_not_ours_is_never_touched() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    record = record_of(cloud, "one")
    cloud.state.delete(record)
    live = cloud.ports.azure.call(GetCluster(record.desired.id))
    assert live is not None
    cloud.ports.azure.call(
        PutCluster(record.desired.id, {**live, "tags": {"owner": "somebody"}}, etag=live["eTag"])
    )
    cloud.run(60)
    writes = accepted(cloud)
    commit = push(cloud, fleet_files.fleet("one") | {"README.md": b"2"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "it is not this fleet's: expected the tags roadstead-fleet=example" in status(cloud, commit)[1]
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud) == writes


def test_a_failed_creation_is_reported_and_a_commit_that_changes_it_retries_it() -> None:
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left in eastus")
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    state, description = status(cloud, commit)
    assert state == "failure"
    assert "A value of the manifest" in description
    failed = record_of(cloud, "one")
    assert "no vCPUs are left in eastus" in failed.job.reason
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=2)
    commit = push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert status(cloud, commit)[0] == "success"
