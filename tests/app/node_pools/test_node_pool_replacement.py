"""A changed fixed field gives a node pool a replacement, once."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.context import StepContext
from shared.app.worker.steps.drain import joined
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import DeletePool, GetCluster, PutPool, WriteResponse
from tests.support import fleet_files
from tests.support.one_cluster import (
    ONE,
    api,
    blocked_pod,
    files,
    nodes,
    pool,
    pools,
    ready,
    record,
    suspended,
)
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import on_azure

pytestmark = pytest.mark.lives


def test_a_changed_fixed_field_replaces_the_pool_before_the_old_one_is_removed() -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "appsb" in pools(cloud))
    assert set(pools(cloud)) == {"system", "apps", "appsb"}
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["appsb"]["vmSize"] == "Standard_D8s_v5"
    assert pools(cloud)["appsb"]["tags"]["roadstead-pool"] == "apps"
    assert set(pools(cloud)) == {"system", "appsb"}
    writes = accepted(cloud)
    assert (writes["create-pool", "appsb"], writes["delete-pool", "apps"]) == (1, 1)


def test_a_replaced_pool_can_be_replaced_again_and_changed_in_place() -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run()
    push(cloud, files(pool("Standard_D8s_v5", nodeLabels="{tier: web}")))
    cloud.run()
    assert pools(cloud)["appsb"]["nodeLabels"] == {"tier": "web"}
    push(cloud, files(pool("Standard_D4s_v5")))
    cloud.run()
    assert set(pools(cloud)) == {"system", "apps"}
    assert phases(cloud) == {"one": Phase.READY}


def test_the_only_system_pool_can_be_replaced() -> None:
    cloud = ready()
    push(cloud, files("      vmSize: Standard_D8s_v5\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert {name: profile["mode"] for name, profile in pools(cloud).items()} == {"systemb": "System"}


def test_two_pools_swap_the_system_mode() -> None:
    cloud = ready(pool())
    push(cloud, files("      mode: User\n" + pool(mode="System")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert {name: profile["mode"] for name, profile in pools(cloud).items()} == {
        "system": "User",
        "apps": "System",
    }


def test_a_change_reverted_midway_retains_the_first_pool() -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "appsb" in pools(cloud))
    push(cloud, files(pool()))
    cloud.run()
    assert set(pools(cloud)) == {"system", "apps"}
    assert phases(cloud) == {"one": Phase.READY}


def test_a_new_pool_does_not_wait_for_a_blocked_replacement() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5") + "    - {name: more, vmSize: Standard_D4s_v5, count: 1}\n"))
    cloud.run(seconds=300)
    assert {"apps", "appsb", "more"} <= set(pools(cloud))


def problem(message: str) -> dict[str, Any]:
    return {"provisioningError": {"code": "Problem", "message": message}}


def shows(cloud: MemoryCloud, change: Callable[[dict[str, Any]], None]) -> None:
    """Let Azure show the cluster with a change."""
    azure = cloud.ports.azure

    def shown(read: GetCluster) -> Json | None:
        existing = azure.call(read)
        if existing is None:
            return None
        changed = deepcopy(dict(existing))
        change(changed)
        return changed

    on_azure(cloud, GetCluster, shown)


def test_a_replacement_that_still_differs_drains_nothing_and_fails_the_job() -> None:
    cloud = ready(pool())

    def forgets(shown: dict[str, Any]) -> None:
        for profile in shown["properties"]["agentPoolProfiles"]:
            profile["maxPods"] = 30

    shows(cloud, forgets)
    push(cloud, files(pool(maxPods=50)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "still differs: maxPods from 30 to 50; nothing is drained" in record(cloud).job.reason
    assert set(pools(cloud)) == {"system", "apps", "appsb"}
    assert not any(nodes(cloud, "apps").values())


def test_a_pool_that_cannot_be_deleted_is_tried_again_and_reported() -> None:
    cloud = ready(pool())
    tried: list[str] = []

    def delete_pool(write: DeletePool) -> WriteResponse:
        tried.append(write.pool)
        return WriteResponse("request")

    def locked(shown: dict[str, Any]) -> None:
        for profile in shown["properties"]["agentPoolProfiles"]:
            if profile["name"] in tried:
                profile |= {"provisioningState": "Failed", "status": problem("The subnet is locked.")}

    shows(cloud, locked)
    on_azure(cloud, DeletePool, delete_pool)
    push(cloud, files())
    cloud.run()
    assert (phases(cloud), tried) == ({"one": Phase.FAILED}, ["apps"] * 5), (
        "an error without a code of the catalogue"
    )
    assert "the node pool apps: The subnet is locked." in record(cloud).job.reason


def test_a_cluster_that_failed_over_a_pool_reports_the_error_of_the_pool() -> None:
    cloud = ready(pool())

    def fails(shown: dict[str, Any]) -> None:
        for profile in shown["properties"]["agentPoolProfiles"]:
            if profile["count"] == 3:
                shown["properties"]["provisioningState"] = "Failed"
                profile |= {"provisioningState": "Failed", "status": problem("No room in the subnet.")}

    shows(cloud, fails)
    push(cloud, files(pool(count=3)))
    cloud.run()
    assert "the node pool apps: No room in the subnet." in record(cloud).job.reason


@pytest.mark.parametrize("midway", [1, 40, 90, 150])
def test_a_cluster_is_deleted_in_the_middle_of_a_replacement(midway: int) -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=midway)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert (phases(cloud), cloud.ports.azure.call(GetCluster(ONE))) == ({}, None)


@pytest.mark.parametrize("midway", [1, 40, 90, 150])
def test_a_suspension_pauses_a_replacement(midway: int) -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=midway)
    push(cloud, files(pool("Standard_D8s_v5") + suspended(cloud, 2)))
    cloud.run(seconds=60)
    before = accepted(cloud)
    cloud.run(seconds=3600)
    assert (record(cloud).phase, accepted(cloud)) == (Phase.SUSPENDED, before)
    cloud.run(seconds=3 * 3600)
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "appsb"})


def test_a_label_that_git_removes_is_removed_and_one_of_a_policy_stays() -> None:
    cloud = ready(pool(nodeLabels="{tier: web, team: a}"))
    profile = pools(cloud)["apps"]
    labels = {**profile["nodeLabels"], "cost": "42"}
    properties = {key: value for key, value in profile.items() if key != "name"}
    cloud.ports.azure.call(
        PutPool(ONE, "apps", {"properties": {**properties, "nodeLabels": labels}}, etag=profile["eTag"])
    )
    cloud.run(seconds=60)
    before = accepted(cloud)
    push(cloud, files(pool(nodeLabels="{tier: web, team: a}", count=3)))
    cloud.run()
    assert pools(cloud)["apps"]["nodeLabels"] == {"tier": "web", "team": "a", "cost": "42"}
    push(cloud, files(pool(nodeLabels="{tier: db}", count=3)))
    push(cloud, files(pool(count=3)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["nodeLabels"] == {"cost": "42"}
    assert record(cloud).removals.keys == {}
    assert (accepted(cloud) - before)["update-pool", "apps"] == 2


def test_a_pool_of_single_machines_is_waited_for_although_azure_counts_its_nodes_by_size() -> None:
    scale = "{manual: [{size: Standard_D4s_v5, count: 2}]}"
    machines = f"type: VirtualMachines, virtualMachinesProfile: {{scale: {scale}}}"
    cloud = ready(f"    - {{name: apps, {machines}}}\n")
    kubernetes = api(cloud)
    kubernetes.delete(kubernetes.list("v1", "Node", labels="kubernetes.azure.com/agentpool=apps")[0])
    shown = {key: value for key, value in pools(cloud)["apps"].items() if key != "count"}
    wait = joined(StepContext.of(record(cloud), cloud.ports), shown)
    assert wait is not None
    assert wait.reason == "1 of 2 nodes of the node pool apps are Ready"
