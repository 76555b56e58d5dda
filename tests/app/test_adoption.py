"""Existing clusters and node pools: adopted when the manifest asks for it, otherwise not touched."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.ports.azure import PutCluster, PutGroup, PutMaintenance, PutPool
from shared.resource_ids import GroupId
from tests.support import fleet_files
from tests.support.foreign_cluster import foreign
from tests.support.one_cluster import (
    ONE,
    SUBSCRIPTION,
    WINDOW,
    advice,
    api,
    cluster,
    files,
    pool,
    pools,
    ready,
    record,
)
from tests.support.pipeline_runs import accepted, phases, push

pytestmark = pytest.mark.lives


def test_an_unowned_cluster_is_not_touched_without_the_annotation() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    before = accepted(cloud)
    push(cloud, files())
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.FAILED}, before)
    assert "the annotation roadstead.dev/adopt takes a cluster over" in record(cloud).job.reason


def test_an_equal_cluster_is_adopted_with_a_write_of_our_tags_only() -> None:
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
    assert "it differs from the manifest in tags.team" in record(cloud).job.reason
    cloud.run(seconds=2 * 3600)
    assert record(cloud).phase is Phase.PROVISIONING
    assert advice(cloud).startswith("Change the manifest to what exists, or set its annotation")
    push(cloud, files("  tags: {team: shop}\n", annotations="{roadstead.dev/adopt: with-differences}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["team"] == "shop"


def test_an_observed_cluster_that_git_removes_stays_unchanged() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    before = accepted(cloud)
    push(cloud, files("  tags: {team: shop}\n", annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=600)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({}, before)
    assert "left the cluster one" in cloud.state.events("one", 10)[0].message


def test_the_cluster_of_another_fleet_is_not_adopted() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    cloud.ports.azure.call(
        PutCluster(
            ONE,
            {**cluster(cloud), "tags": {"roadstead-fleet": "theirs", "roadstead-cluster": "one"}},
            etag=cluster(cloud)["eTag"],
        )
    )
    cloud.clock.advance(60)
    before = accepted(cloud)
    push(cloud, files(annotations="{roadstead.dev/adopt: with-differences}"))
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.FAILED}, before)


@pytest.mark.parametrize("group", [True, False])
def test_nothing_is_created_when_the_cluster_to_adopt_is_missing(group: bool) -> None:
    cloud = MemoryCloud()
    if group:
        cloud.ports.azure.call(PutGroup(GroupId(SUBSCRIPTION, "rg-one"), {"location": "eastus", "tags": {}}))
    push(cloud, files(annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "there is no cluster one to adopt in the resource group rg-one" in record(cloud).job.reason


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


def test_windows_and_another_flux_source_are_differences_of_a_cluster_to_adopt() -> None:
    cloud = MemoryCloud(throttle=False)
    foreign(cloud)
    schedule = {"schedule": {"weekly": {"intervalWeeks": 2, "dayOfWeek": "Monday"}}, "durationHours": 4}
    theirs = {"maintenanceWindow": {**schedule, "startTime": "01:00", "utcOffset": "+00:00"}}
    cloud.ports.azure.call(PutMaintenance(ONE, "aksManagedAutoUpgradeSchedule", {"properties": theirs}))
    bootstrapped(cloud)
    before = accepted(cloud)
    push(cloud, files(WINDOW, annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=900)
    assert accepted(cloud) == before
    reason = record(cloud).job.reason
    assert "maintenanceWindows[aksManagedAutoUpgradeSchedule]" in reason
    assert "Flux GitRepository flux-system: spec.url" in reason
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


def stranger(cloud: MemoryCloud, size: str) -> None:
    body = {"properties": {"vmSize": size, "count": 3, "mode": "User", "type": "VirtualMachineScaleSets"}}
    cloud.ports.azure.call(PutPool(ONE, "apps", body, etag=None))
    cloud.clock.advance(120)
    cloud.azure.complete_due()


def test_a_foreign_pool_of_that_name_is_neither_replaced_nor_overwritten() -> None:
    cloud = ready()
    stranger(cloud, "Standard_D8s_v5")
    before = accepted(cloud)
    push(cloud, files(pool()))
    cloud.run()
    assert (phases(cloud), accepted(cloud)) == ({"one": Phase.FAILED}, before)
    assert "the node pool apps is not touched" in record(cloud).job.reason
    assert "it differs from the manifest in vmSize, count" in record(cloud).job.reason


def test_an_equal_foreign_pool_gets_only_our_tags() -> None:
    cloud = ready()
    stranger(cloud, "Standard_D4s_v5")
    push(cloud, files(pool(count=3)))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["tags"]["roadstead-cluster"] == "one"
    assert accepted(cloud)["update-pool", "apps"] == 1


def test_a_cluster_whose_extension_pulls_another_source_is_observed_until_that_is_accepted() -> None:
    cloud = MemoryCloud()
    foreign(cloud)
    theirs = {
        **{"scope": "cluster", "namespace": "flux-system", "sourceKind": "GitRepository"},
        "gitRepository": {"url": "https://github.com/example/theirs", "repositoryRef": {"branch": "main"}},
        "kustomizations": {"flux-system": {"path": "./theirs", "prune": True}},
    }
    cloud.azure.put_flux_configuration(ONE, "flux-system", {"properties": theirs})
    cloud.sleep(60)
    flux = "  flux: {install: extension}\n"
    push(cloud, files(flux, annotations="{roadstead.dev/adopt: when-equal}"))
    cloud.run(seconds=900)
    assert "the configuration flux-system of Flux: gitRepository.url" in record(cloud).job.reason
    assert accepted(cloud)["put-configuration", "flux-system"] == 1
    push(cloud, files(flux, annotations="{roadstead.dev/adopt: with-differences}"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    shown = cloud.azure.get_flux_configuration(ONE, "flux-system")["properties"]
    assert shown["gitRepository"]["url"] == "https://github.com/example/fleet"
