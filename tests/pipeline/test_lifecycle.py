"""The later life of a cluster, in memory: upgrades, new node pools for old, adoption, suspension."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from localcloud.world.cloud import MemoryCloud
from shared.fleet.ids import ClusterId
from shared.jobs.row import ClusterRow, Phase
from shared.ports import Json
from tests import fleetfiles
from tests.pipeline.test_main_job import accepted, phases, push, status

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
ONE = ClusterId(SUBSCRIPTION, "rg-one", "one")
APPS = "    - {name: apps, vmSize: Standard_D4s_v5, count: 2}\n"


def files(extra: str = "", *, annotations: str = "") -> dict[str, bytes]:
    """Return a fleet of one cluster; ``extra`` is YAML below its spec, after its node pools."""
    manifest = fleetfiles.cluster("one", extra=extra).decode()
    if annotations:
        manifest = manifest.replace("  name: one\n", f"  name: one\n  annotations: {annotations}\n", 1)
    return fleetfiles.fleet() | {"clusters/one/cluster.yaml": manifest.encode()}


def pool(size: str = "Standard_D4s_v5", **fields: Any) -> str:
    more = "".join(f", {key}: {value}" for key, value in fields.items())
    return f"    - {{name: apps, vmSize: {size}, count: 2{more}}}\n"


def cluster(cloud: MemoryCloud) -> Json:
    found = cloud.ports.aks.get(ONE)
    assert found is not None
    return found


def pools(cloud: MemoryCloud) -> dict[str, Json]:
    return {profile["name"]: profile for profile in cluster(cloud)["properties"]["agentPoolProfiles"]}


def row(cloud: MemoryCloud) -> ClusterRow:
    found = cloud.state.cluster("one")
    assert found is not None
    return found


def ready(extra: str = "") -> MemoryCloud:
    """Return a cloud in which the cluster is Ready; the test looks more often than Azure likes."""
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def versions(cloud: MemoryCloud) -> set[str]:
    found = {profile["currentOrchestratorVersion"] for profile in pools(cloud).values()}
    return found | {cluster(cloud)["properties"]["currentKubernetesVersion"]}


# Kubernetes versions


def test_two_minors_are_two_hops_each_finished_on_every_pool() -> None:
    cloud = ready(f'{APPS}  kubernetesVersion: "1.31"\n')
    assert versions(cloud) == {"1.31.13"}
    commit = push(cloud, files(f'{APPS}  kubernetesVersion: "1.33"\n'))
    seen: list[tuple[str, ...]] = []
    end = cloud.clock() + timedelta(hours=1)
    while row(cloud).observed_generation < 2 and cloud.clock() < end:
        cloud.run(seconds=1)
        now = (
            cluster(cloud)["properties"]["currentKubernetesVersion"],
            *(pools(cloud)[name]["currentOrchestratorVersion"] for name in ("system", "apps")),
        )
        seen += [now] if not seen or seen[-1] != now else []
    minors = [tuple(version.rpartition(".")[0] for version in now) for now in seen]
    assert minors == [
        ("1.31", "1.31", "1.31"),
        ("1.32", "1.31", "1.31"),
        ("1.32", "1.32", "1.31"),
        ("1.32", "1.32", "1.32"),
        ("1.33", "1.32", "1.32"),
        ("1.33", "1.33", "1.32"),
        ("1.33", "1.33", "1.33"),
    ]
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_version_that_azure_does_not_offer_moves_nothing() -> None:
    cloud = ready('  kubernetesVersion: "1.31"\n')
    before = accepted(cloud)
    push(cloud, files('  kubernetesVersion: "1.36"\n'))
    cloud.run()
    assert accepted(cloud) == before
    assert row(cloud).phase is Phase.FAILED
    assert "Azure does not offer Kubernetes 1.35" in row(cloud).job.reason


def test_a_new_target_midway_ends_the_hop_before_it_goes_on() -> None:
    cloud = ready(f'{APPS}  kubernetesVersion: "1.31"\n')
    push(cloud, files(f'{APPS}  kubernetesVersion: "1.32"\n'))
    cloud.run(until=lambda: cluster(cloud)["properties"]["currentKubernetesVersion"].startswith("1.32"))
    push(cloud, files(f'{APPS}  kubernetesVersion: "1.33"\n'))
    cloud.run()
    assert {version.rpartition(".")[0] for version in versions(cloud)} == {"1.33"}
    upgraded = [write for write in cloud.azure.accepted if write["accepted"] == "update-pool"]
    assert len(upgraded) == 4  # each pool went through 1.32


def test_a_node_that_kept_its_old_kubelet_is_named_and_waited_for() -> None:
    cloud = ready(f'{APPS}  kubernetesVersion: "1.32"\n')
    push(cloud, files(f'{APPS}  kubernetesVersion: "1.33"\n'))
    cloud.run(until=lambda: cluster(cloud)["properties"]["currentKubernetesVersion"].startswith("1.33"))
    cloud.azure.lag_next("one", "apps")
    cloud.run(seconds=600)
    assert row(cloud).phase is not Phase.READY
    assert "runs 1.32.9, its pool 1.33.5" in row(cloud).job.reason


# Node pools


def test_a_fixed_field_gives_a_pool_a_replacement_before_the_old_one_goes() -> None:
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
    assert {name: found["mode"] for name, found in pools(cloud).items()} == {"systemb": "System"}


def test_a_change_that_is_taken_back_midway_keeps_the_first_pool() -> None:
    cloud = ready(pool())
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(until=lambda: "appsb" in pools(cloud))
    push(cloud, files(pool()))
    cloud.run()
    assert set(pools(cloud)) == {"system", "apps"}
    assert phases(cloud) == {"one": Phase.READY}


def test_an_old_pool_is_emptied_with_respect_for_disruption_budgets() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5")))
    cloud.run(seconds=300)
    assert "apps" in pools(cloud)
    assert "blocked: shop/web: " in row(cloud).job.reason
    assert row(cloud).phase is Phase.UPDATING
    cloud.ports.kubernetes.connect(ONE).apply(budget(0))
    cloud.run()
    assert set(pools(cloud)) == {"system", "appsb"}
    assert phases(cloud) == {"one": Phase.READY}


def test_a_drain_that_stays_blocked_gives_up_and_removes_nothing() -> None:
    cloud = ready(pool())
    blocked_pod(cloud)
    push(cloud, files(pool("Standard_D8s_v5", upgradeSettings="{drainTimeoutInMinutes: 5}")))
    cloud.run(until=lambda: row(cloud).phase is Phase.FAILED)
    assert set(pools(cloud)) == {"system", "apps", "appsb"}
    assert "could not be drained in 5 minutes: shop/web" in row(cloud).job.reason


def budget(available: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": "web"}}},
    }


def blocked_pod(cloud: MemoryCloud) -> None:
    """Run a pod on the pool "apps" that its budget does not let go."""
    api = cloud.ports.kubernetes.connect(ONE)
    node = api.list("v1", "Node", labels="kubernetes.azure.com/agentpool=apps")[0]
    if api.list("v1", "Namespace", fields="metadata.name=shop") == []:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    spec = {"nodeName": node["metadata"]["name"], "containers": [{"name": "web", "image": "web:1"}]}
    metadata = {"name": "web", "namespace": "shop", "labels": {"app": "web"}}
    api.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    api.apply(budget(1))


def test_an_old_node_image_is_replaced_and_an_impossible_one_is_refused() -> None:
    cloud = ready()
    cloud.azure.set_node_image(ONE, "system", "AKSUbuntu-2204gen2containerd-202510.19.1")
    push(cloud, files('  minNodeImageVersion: "202511.01"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["system"]["nodeImageVersion"].endswith("202511.01.0")
    push(cloud, files('  minNodeImageVersion: "202601.01"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "the newest image that Azure has for the node pool system is" in row(cloud).job.reason


def test_maintenance_windows_are_written_once() -> None:
    window = """\
  maintenanceWindows:
    - name: aksManagedAutoUpgradeSchedule
      maintenanceWindow:
        schedule: {weekly: {intervalWeeks: 1, dayOfWeek: Sunday}}
        durationHours: 4
        startTime: "01:00"
        utcOffset: "+00:00"
"""
    cloud = ready(window)
    found = cloud.ports.aks.maintenance(ONE)["aksManagedAutoUpgradeSchedule"]
    assert found["properties"]["maintenanceWindow"]["durationHours"] == 4
    push(cloud, files(window + "  tags: {a: b}\n"))
    cloud.run()
    assert accepted(cloud)["put-maintenance", "aksManagedAutoUpgradeSchedule"] == 1
    assert phases(cloud) == {"one": Phase.READY}


# Adoption


def foreign(cloud: MemoryCloud, **properties: Any) -> None:
    """Make a cluster in Azure that is nobody's."""
    cloud.ports.groups.put(SUBSCRIPTION, "rg-one", {"location": "eastus", "tags": {}})
    profile = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
    body = {
        "location": "eastus",
        "identity": {"type": "SystemAssigned"},
        "sku": {"name": "Base", "tier": "Standard"},
        "tags": {"managed-by": "roadstead"},
        "properties": {
            "dnsPrefix": "theirs",
            "kubernetesVersion": "1.33",
            "networkProfile": {
                "networkPlugin": "azure",
                "networkPluginMode": "overlay",
                "networkDataplane": "cilium",
                "networkPolicy": "cilium",
                "podCidr": "10.244.0.0/16",
                "serviceCidr": "10.0.0.0/16",
                "dnsServiceIP": "10.0.0.10",
            },
            "agentPoolProfiles": [profile | {"availabilityZones": ["1", "2", "3"]}],
            **properties,
        },
    }
    cloud.ports.aks.put(ONE, body, etag=None)
    cloud.clock.advance(60)
    cloud.azure.settle()


def test_a_cluster_that_is_nobodys_is_not_touched_without_the_annotation() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    before = accepted(cloud)
    push(cloud, files())
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.FAILED}, before)
    assert "the annotation roadstead.dev/adopt takes a cluster over" in row(cloud).job.reason


def test_an_equal_cluster_is_taken_over_by_writing_our_tags_alone() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    push(cloud, files(annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["roadstead-fleet"] == "example"
    assert cluster(cloud)["properties"]["dnsPrefix"] == "theirs"
    writes = accepted(cloud)
    assert (writes["create", "one"], writes["update", "one"]) == (1, 1)


def test_a_cluster_that_differs_is_observed_until_the_difference_is_accepted() -> None:
    cloud = MemoryCloud()
    foreign(cloud, disableLocalAccounts=False)
    before = accepted(cloud)
    push(cloud, files("  tags: {team: shop}\n", annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=900)
    assert accepted(cloud) == before
    assert "it differs from the manifest in tags.team" in row(cloud).job.reason
    push(cloud, files("  tags: {team: shop}\n", annotations="{roadstead.dev/adopt: with-differences}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["team"] == "shop"


def test_an_observed_cluster_that_git_gives_up_stays_as_it_is() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    before = accepted(cloud)
    push(cloud, files("  tags: {team: shop}\n", annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=600)
    push(cloud, fleetfiles.fleet())
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({}, before)
    assert "left the cluster one" in cloud.state.events("one", 10)[0].message


def test_the_cluster_of_another_fleet_is_not_adopted() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    cloud.ports.aks.put(
        ONE,
        {**cluster(cloud), "tags": {"roadstead-fleet": "theirs", "roadstead-cluster": "one"}},
        etag=cluster(cloud)["eTag"],
    )
    cloud.clock.advance(60)
    before = accepted(cloud)
    push(cloud, files(annotations="{roadstead.dev/adopt: with-differences}"))
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.FAILED}, before)


@pytest.mark.parametrize("group", [True, False])
def test_nothing_is_created_where_something_was_to_be_adopted(group: bool) -> None:
    cloud = MemoryCloud()
    if group:
        cloud.ports.groups.put(SUBSCRIPTION, "rg-one", {"location": "eastus", "tags": {}})
    push(cloud, files(annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "there is no cluster one to adopt in the resource group rg-one" in row(cloud).job.reason


# Suspension, stopped clusters


def suspend(cloud: MemoryCloud, hours: int) -> str:
    until = (cloud.clock() + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f'  suspend: {{owner: team-a, reason: an audit, until: "{until}"}}\n'


def test_a_suspended_cluster_is_left_alone_and_its_drift_is_told_until_the_time_is_over() -> None:
    cloud = ready()
    commit = push(cloud, files("  tags: {a: b}\n" + suspend(cloud, 3)))
    before = accepted(cloud)
    cloud.run(seconds=2 * 3600)
    assert (row(cloud).phase, accepted(cloud)) == (Phase.SUSPENDED, before)
    assert "suspended by team-a until" in row(cloud).job.reason
    assert "it differs in tags.a" in row(cloud).job.reason
    assert status(cloud, commit) == ("pending", "0 of 1 clusters as asked, 1 suspended (1 update)")
    assert all(record.settled for record in cloud.state.open_plans())
    cloud.run(seconds=2 * 3600)
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["a"] == "b"
    assert status(cloud, commit)[0] == "success"


def test_a_commit_ends_a_suspension_early() -> None:
    cloud = ready()
    push(cloud, files("  tags: {a: b}\n" + suspend(cloud, 30)))
    cloud.run(seconds=3600)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_stopped_cluster_waits_for_its_start_and_can_be_deleted() -> None:
    cloud = ready()
    cloud.azure.stop(ONE)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600)
    assert "the cluster is stopped" in row(cloud).job.reason
    cloud.azure.start(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    cloud.azure.stop(ONE)
    push(cloud, fleetfiles.fleet())
    cloud.run()
    assert phases(cloud) == {}
