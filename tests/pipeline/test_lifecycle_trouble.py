"""What must not happen in the life of a cluster: drains and deletes that nobody asked for, and loops."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.world.cloud import MemoryCloud
from localcloud.world.kubernetes import KubernetesWorld
from localcloud.world.kubernetes_kinds import NODE
from localcloud.world.kubernetes_patch import MERGE
from localcloud.world.kubernetes_requests import At, Write
from shared.fleet.ids import ClusterId
from shared.jobs.row import Phase
from shared.ports import Json, KubernetesApi
from tests import fleetfiles
from tests.pipeline.test_lifecycle import (
    APPS,
    ONE,
    blocked_pod,
    cluster,
    files,
    foreign,
    pool,
    pools,
    ready,
    row,
)
from tests.pipeline.test_main_job import accepted, phases, push


@dataclass
class Shown:
    """Azure as it is, but for what a cluster shows; and deletes of pools that fail, by the pool's name."""

    inner: Any
    change: Callable[[dict[str, Any]], None] = lambda _cluster: None
    undeletable: str = ""
    tried: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def get(self, cluster: ClusterId) -> Json | None:
        """Return the cluster as it is shown."""
        found = self.inner.get(cluster)
        if found is None:
            return None
        shown = deepcopy(dict(found))
        self.change(shown)
        for profile in shown["properties"]["agentPoolProfiles"]:
            if self.tried and profile["name"] == self.undeletable:
                profile |= {"provisioningState": "Failed", "status": problem("The subnet is locked.")}
        return shown

    def delete_pool(self, cluster: ClusterId, name: str, *, etag: str | None) -> str:
        """Take the request; it fails later."""
        if name != self.undeletable:
            return str(self.inner.delete_pool(cluster, name, etag=etag))
        self.tried += 1
        return "request"


def problem(message: str) -> dict[str, Any]:
    return {"provisioningError": {"code": "Problem", "message": message}}


def shows(cloud: MemoryCloud, change: Callable[[dict[str, Any]], None]) -> None:
    cloud.with_ports(lambda ports: replace(ports, aks=Shown(ports.aks, change)))


def world(cloud: MemoryCloud) -> KubernetesWorld:
    found = cloud.kubernetes.world(ONE)
    assert found is not None
    return found


def api(cloud: MemoryCloud) -> KubernetesApi:
    return cloud.kubernetes.connect(ONE)


def nodes(cloud: MemoryCloud, name: str) -> dict[str, bool]:
    """Return the nodes of a pool, and whether each is closed."""
    found = api(cloud).list("v1", "Node", labels=f"kubernetes.azure.com/agentpool={name}")
    return {node["metadata"]["name"]: bool(node["spec"].get("unschedulable")) for node in found}


def closed_by_a_person(cloud: MemoryCloud, node: str) -> None:
    world(cloud).patch(At(NODE, node), {"spec": {"unschedulable": True}}, MERGE, Write(manager="kubectl"))


def pod(cloud: MemoryCloud, name: str, node: str, **metadata: Any) -> None:
    spec = {"nodeName": node, "containers": [{"name": "web", "image": "web:1"}]}
    whole = {"name": name, "namespace": "default", **metadata}
    api(cloud).apply({"apiVersion": "v1", "kind": "Pod", "metadata": whole, "spec": spec})


# Rotations in a circle


def test_a_new_pool_that_azure_did_not_make_as_asked_drains_nothing_and_ends_the_job() -> None:
    cloud = ready(pool())

    def forgets(shown: dict[str, Any]) -> None:
        for profile in shown["properties"]["agentPoolProfiles"]:
            profile["maxPods"] = 30

    shows(cloud, forgets)
    push(cloud, files(pool(maxPods=50)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "still differs: maxPods from 30 to 50; nothing is drained" in row(cloud).job.reason
    assert set(pools(cloud)) == {"system", "apps", "appsb"}
    assert not any(nodes(cloud, "apps").values())


def test_a_pool_that_cannot_be_deleted_is_tried_once_and_told() -> None:
    cloud = ready(pool())
    held = Shown(cloud.ports.aks, undeletable="apps")
    cloud.with_ports(lambda ports: replace(ports, aks=held))
    push(cloud, files())
    cloud.run()
    assert (phases(cloud), held.tried) == ({"one": Phase.FAILED}, 1)
    assert "the node pool apps: The subnet is locked." in row(cloud).job.reason


def test_a_cluster_that_failed_over_a_pool_tells_what_the_pool_says() -> None:
    cloud = ready(pool())

    def fails(shown: dict[str, Any]) -> None:
        for profile in shown["properties"]["agentPoolProfiles"]:
            if profile["count"] == 3:
                shown["properties"]["provisioningState"] = "Failed"
                profile |= {"provisioningState": "Failed", "status": problem("No room in the subnet.")}

    shows(cloud, fails)
    push(cloud, files(pool().replace("count: 2", "count: 3")))
    cloud.run()
    assert "the node pool apps: No room in the subnet." in row(cloud).job.reason


# Strangers' pools


def stranger(cloud: MemoryCloud, size: str) -> None:
    body = {"properties": {"vmSize": size, "count": 3, "mode": "User", "type": "VirtualMachineScaleSets"}}
    cloud.ports.aks.put_pool(ONE, "apps", body, etag=None)
    cloud.clock.advance(120)
    cloud.azure.settle()


def test_a_strangers_pool_of_that_name_is_neither_replaced_nor_written_over() -> None:
    cloud = ready()
    stranger(cloud, "Standard_D8s_v5")
    before = accepted(cloud)
    push(cloud, files(APPS))
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.FAILED}, before)
    assert "the node pool apps is not touched" in row(cloud).job.reason
    assert "it differs from the manifest in vmSize, count" in row(cloud).job.reason


def test_a_strangers_pool_that_is_equal_gets_our_tags_and_nothing_else() -> None:
    cloud = ready()
    stranger(cloud, "Standard_D4s_v5")
    push(cloud, files(APPS.replace("count: 2", "count: 3")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["tags"]["roadstead-cluster"] == "one"
    assert accepted(cloud)["update-pool", "apps"] == 1


def test_an_adopted_pool_is_ours_before_it_is_replaced() -> None:
    cloud = MemoryCloud(throttle=False)
    foreign(cloud)
    manifest = files("      vmSize: Standard_D8s_v5\n", annotations="{roadstead.dev/adopt: with-differences}")
    push(cloud, manifest)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert set(pools(cloud)) == {"systemb"}
    assert [write["accepted"] for write in cloud.azure.accepted if "agentPools" in write["resource"]] == [
        "update-pool",
        "create-pool",
        "delete-pool",
    ]


# The order of pools


def test_two_pools_change_places_as_system_pool() -> None:
    cloud = ready(APPS)
    push(cloud, files("      mode: User\n" + APPS.replace("{name: apps", "{name: apps, mode: System")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert {name: found["mode"] for name, found in pools(cloud).items()} == {
        "system": "User",
        "apps": "System",
    }


def test_a_new_pool_does_not_wait_for_a_rotation_that_is_blocked() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5") + "    - {name: more, vmSize: Standard_D4s_v5, count: 1}\n"))
    cloud.run(seconds=300)
    assert {"apps", "appsb", "more"} <= set(pools(cloud))


def test_a_pinned_pool_that_is_added_while_the_control_plane_climbs_climbs_too() -> None:
    cloud = ready('  kubernetesVersion: "1.31"\n')
    push(cloud, files(pool(orchestratorVersion='"1.33"') + '  kubernetesVersion: "1.33"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["currentOrchestratorVersion"].startswith("1.33")


# Drains


def test_a_commit_that_changes_the_new_pool_reaches_it_while_the_drain_is_blocked() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in row(cloud).job.reason)
    push(cloud, files(pool("Standard_D8s_v5", nodeLabels="{tier: web}")))
    cloud.run(seconds=300)
    assert pools(cloud)["appsb"]["nodeLabels"] == {"tier": "web"}
    assert "apps" in pools(cloud)


def test_nodes_that_a_person_closed_stay_closed_and_ours_are_opened_again() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    broken = min(nodes(cloud, "apps"))
    closed_by_a_person(cloud, broken)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in row(cloud).job.reason)
    assert all(nodes(cloud, "apps").values())
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert [name for name, closed in nodes(cloud, "apps").items() if closed] == [broken]


def test_nodes_that_we_closed_are_opened_when_a_person_took_the_new_pool_away() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in row(cloud).job.reason)
    cloud.ports.aks.delete_pool(ONE, "appsb", etag=None)
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert not any(nodes(cloud, "apps").values())


def test_blocked_pods_do_not_keep_the_others() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    node = min(nodes(cloud, "apps"))
    for number in range(60):
        pod(cloud, f"a{number:02}", node, labels={"app": "held"})
        pod(cloud, f"z{number:02}", node)
    budget(cloud, 60)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=900)
    left = {found["metadata"]["name"] for found in api(cloud).list("v1", "Pod", namespace="default")}
    assert not any(name.startswith("z") for name in left)
    assert row(cloud).phase is Phase.UPDATING


def budget(cloud: MemoryCloud, least: int) -> None:
    spec = {"selector": {"matchLabels": {"app": "held"}}, "minAvailable": least}
    metadata = {"name": "held", "namespace": "default"}
    whole = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    api(cloud).apply(whole)


def test_a_long_drain_that_comes_on_is_neither_stalled_nor_given_up() -> None:
    cloud = ready(pool())
    count = 20
    for number in range(count):
        pod(cloud, f"a{number}", min(nodes(cloud, "apps")), labels={"app": "held"})
    budget(cloud, count)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: "blocked: " in row(cloud).job.reason)
    for left in reversed(range(1, count)):  # 80 minutes, a pod every four
        budget(cloud, left)
        cloud.run(seconds=240)
        assert row(cloud).phase is Phase.UPDATING
    budget(cloud, 0)
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "appsb"})


def test_pods_that_come_to_closed_nodes_do_not_lengthen_a_drain() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: "blocked: " in row(cloud).job.reason)
    for number in range(8):
        cloud.run(seconds=60)
        pod(cloud, f"tolerant{number}", min(nodes(cloud, "apps")))
    assert row(cloud).phase is Phase.FAILED
    assert "shop/web" in row(cloud).job.reason


def test_a_pool_that_git_no_longer_has_is_emptied_with_respect_for_budgets_before_it_goes() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files())
    cloud.run(seconds=600)
    assert "apps" in pools(cloud)
    assert "draining the node pool apps: 1 pod to move; blocked: shop/web" in row(cloud).job.reason
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert not any(nodes(cloud, "apps").values())


def test_a_pod_that_its_node_never_ends_is_not_waited_for() -> None:
    cloud = ready(pool())
    pod(cloud, "lost", min(nodes(cloud, "apps")), finalizers=["example.com/never"])
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "1 of them ending" in row(cloud).job.reason)
    assert "apps" in pools(cloud)
    cloud.run(seconds=900)
    assert set(pools(cloud)) == {"system", "appsb"}


def test_the_autoscaler_is_kept_from_a_pool_that_is_emptied() -> None:
    scaled = "    - {name: apps, vmSize: SIZE, minCount: 1, maxCount: 5}\n"
    cloud = ready(scaled.replace("SIZE", "Standard_D4s_v5"))
    cloud.azure.scale(ONE, "apps", 3)
    cloud.kubernetes.reconcile()
    blocked_pod(cloud)
    push(cloud, files(scaled.replace("SIZE", "Standard_D8s_v5")))
    cloud.run(until=lambda: "blocked: " in row(cloud).job.reason)
    assert (pools(cloud)["apps"]["enableAutoScaling"], pools(cloud)["apps"]["count"]) == (False, 3)
    assert (pools(cloud)["appsb"]["enableAutoScaling"], pools(cloud)["appsb"]["count"]) == (True, 3)
    push(cloud, files(scaled.replace("SIZE", "Standard_D4s_v5")))
    cloud.run()
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "apps"})
    assert (pools(cloud)["apps"]["enableAutoScaling"], pools(cloud)["apps"]["maxCount"]) == (True, 5)


@pytest.mark.parametrize("midway", [1, 40, 90, 150])
def test_a_cluster_is_deleted_whatever_its_rotation_is_doing(midway: int) -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=midway)
    push(cloud, fleetfiles.fleet())
    cloud.run()
    assert (phases(cloud), cloud.ports.aks.get(ONE)) == ({}, None)


@pytest.mark.parametrize("midway", [1, 40, 90, 150])
def test_a_suspension_in_the_middle_of_a_rotation_stops_it_and_it_goes_on_afterwards(midway: int) -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=midway)
    until = (cloud.clock() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    stop = f'  suspend: {{owner: team-a, reason: an audit, until: "{until}"}}\n'
    push(cloud, files(pool("Standard_D8s_v5") + stop))
    cloud.run(seconds=60)
    before = accepted(cloud)
    cloud.run(seconds=3600)
    assert (row(cloud).phase, accepted(cloud)) == (Phase.SUSPENDED, before)
    cloud.run(seconds=3 * 3600)
    assert (phases(cloud), set(pools(cloud))) == ({"one": Phase.READY}, {"system", "appsb"})


# Adoption


def test_windows_and_another_flux_source_are_differences_of_a_cluster_to_adopt() -> None:
    cloud = MemoryCloud(throttle=False)
    foreign(cloud)
    schedule = {"schedule": {"weekly": {"intervalWeeks": 2, "dayOfWeek": "Monday"}}, "durationHours": 4}
    theirs = {"maintenanceWindow": {**schedule, "startTime": "01:00", "utcOffset": "+00:00"}}
    cloud.ports.aks.put_maintenance(ONE, "aksManagedAutoUpgradeSchedule", {"properties": theirs})
    bootstrapped(cloud)
    before = accepted(cloud)
    window = """\
  maintenanceWindows:
    - name: aksManagedAutoUpgradeSchedule
      maintenanceWindow:
        schedule: {weekly: {intervalWeeks: 1, dayOfWeek: Sunday}}
        durationHours: 4
        startTime: "01:00"
        utcOffset: "+00:00"
"""
    push(cloud, files(window, annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=900)
    assert accepted(cloud) == before
    told = row(cloud).job.reason
    assert "maintenanceWindows[aksManagedAutoUpgradeSchedule]" in told
    assert "Flux GitRepository flux-system: spec.url" in told
    assert "roadstead-fleet" not in cluster(cloud)["tags"]


def bootstrapped(cloud: MemoryCloud) -> None:
    """Let Flux follow another repository in the cluster, as after ``flux bootstrap``."""
    names = {"plural": "gitrepositories", "kind": "GitRepository"}
    group = "source.toolkit.fluxcd.io"
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crd = {"group": group, "names": names, "scope": "Namespaced", "versions": [{**version, "schema": schema}]}
    kube = api(cloud)
    kube.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gitrepositories.{group}"},
            "spec": crd,
        }
    )
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})
    for _ in range(3):
        cloud.clock.advance(10)
        cloud.kubernetes.reconcile()
    kube.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "GitRepository",
            "metadata": {"name": "flux-system", "namespace": "flux-system"},
            "spec": {"interval": "1m", "url": "https://git.example/theirs", "ref": {"branch": "main"}},
        }
    )
