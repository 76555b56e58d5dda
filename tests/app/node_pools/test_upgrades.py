"""Upgrades: Kubernetes versions, node images, and the windows of Azure's own upgrades."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.ports.azure import ListMaintenance, PutPool
from tests.support.one_cluster import ONE, WINDOW, advice, cluster, files, pool, pools, ready, record
from tests.support.pipeline_runs import accepted, phases, push, status

pytestmark = pytest.mark.lives


def versions(cloud: MemoryCloud) -> set[str]:
    running = {profile["currentOrchestratorVersion"] for profile in pools(cloud).values()}
    return running | {cluster(cloud)["properties"]["currentKubernetesVersion"]}


def version(number: str) -> str:
    return f'  kubernetesVersion: "{number}"\n'


def test_two_minor_versions_are_two_hops_each_finished_on_every_pool() -> None:
    cloud = ready(f'{pool()}  kubernetesVersion: "1.34"\n')
    assert versions(cloud) == {"1.34.10"}
    commit = push(cloud, files(f'{pool()}  kubernetesVersion: "1.36"\n'))
    seen: list[tuple[str, ...]] = []
    end = cloud.clock() + timedelta(hours=1)
    while record(cloud).observed_generation < 2 and cloud.clock() < end:
        cloud.run(seconds=1)
        now = (
            cluster(cloud)["properties"]["currentKubernetesVersion"],
            *(pools(cloud)[name]["currentOrchestratorVersion"] for name in ("system", "apps")),
        )
        seen += [now] if not seen or seen[-1] != now else []
    minors = [tuple(version.rpartition(".")[0] for version in now) for now in seen]
    assert minors == [
        ("1.34", "1.34", "1.34"),
        ("1.35", "1.34", "1.34"),
        ("1.35", "1.35", "1.34"),
        ("1.35", "1.35", "1.35"),
        ("1.36", "1.35", "1.35"),
        ("1.36", "1.36", "1.35"),
        ("1.36", "1.36", "1.36"),
    ]
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_version_that_azure_does_not_offer_changes_nothing() -> None:
    cloud = ready('  kubernetesVersion: "1.34"\n')
    before = accepted(cloud)
    push(cloud, files('  kubernetesVersion: "1.39"\n'))
    cloud.run()
    assert accepted(cloud) == before
    assert record(cloud).phase is Phase.FAILED
    assert "Azure does not offer Kubernetes 1.38" in record(cloud).job.reason


def test_a_foreign_pool_that_would_be_too_old_prevents_the_upgrade() -> None:
    long_term = "  supportPlan: AKSLongTermSupport\n  sku: {tier: Premium}\n"
    cloud = ready(long_term + version("1.33"))
    theirs = {"vmSize": "Standard_D4s_v5", "count": 1, "mode": "User", "orchestratorVersion": "1.33.11"}
    cloud.ports.azure.call(PutPool(ONE, "theirs", {"properties": theirs}, etag=None))
    cloud.run(60)
    before = accepted(cloud)
    push(cloud, files(long_term + version("1.37")))
    cloud.run()
    assert "the manifest lacks theirs (1.33.11): upgrade or remove them" in record(cloud).job.reason
    assert accepted(cloud) == before
    push(cloud, files(long_term + version("1.36")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_new_target_midway_finishes_the_hop_first() -> None:
    cloud = ready(f'{pool()}  kubernetesVersion: "1.34"\n')
    push(cloud, files(f'{pool()}  kubernetesVersion: "1.35"\n'))
    cloud.run(until=lambda: cluster(cloud)["properties"]["currentKubernetesVersion"].startswith("1.35"))
    push(cloud, files(f'{pool()}  kubernetesVersion: "1.36"\n'))
    cloud.run()
    assert {version.rpartition(".")[0] for version in versions(cloud)} == {"1.36"}
    upgraded = [write for write in cloud.azure.accepted if write["accepted"] == "update-pool"]
    assert len(upgraded) == 4  # each pool went through 1.35


def test_a_pinned_pool_added_during_the_upgrade_is_upgraded_too() -> None:
    cloud = ready('  kubernetesVersion: "1.34"\n')
    push(cloud, files(pool(orchestratorVersion='"1.36"') + '  kubernetesVersion: "1.36"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["apps"]["currentOrchestratorVersion"].startswith("1.36")


def test_a_node_with_an_old_kubelet_is_named_and_waited_for() -> None:
    cloud = ready(f'{pool()}  kubernetesVersion: "1.35"\n')
    push(cloud, files(f'{pool()}  kubernetesVersion: "1.36"\n'))
    cloud.run(until=lambda: cluster(cloud)["properties"]["currentKubernetesVersion"].startswith("1.36"))
    cloud.azure.interventions.lag_next("one", "apps")
    cloud.run(seconds=600)
    assert record(cloud).phase is not Phase.READY
    assert "runs 1.35.7, its pool 1.36.3" in record(cloud).job.reason
    assert advice(cloud).startswith("Find the pods and PodDisruptionBudgets that keep these nodes")


def test_an_old_node_image_is_replaced_and_an_impossible_one_is_refused() -> None:
    cloud = ready()
    cloud.azure.interventions.set_node_image(ONE, "system", "AKSUbuntu-2204gen2containerd-202510.19.1")
    push(cloud, files('  minNodeImageVersion: "202511.01"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["system"]["nodeImageVersion"].endswith("202511.01.0")
    push(cloud, files('  minNodeImageVersion: "202601.01"\n'))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert "the newest image that Azure has for the node pool system is" in record(cloud).job.reason


def test_maintenance_windows_are_written_once() -> None:
    cloud = ready(WINDOW)
    window = cloud.ports.azure.call(ListMaintenance(ONE))["aksManagedAutoUpgradeSchedule"]
    assert window["properties"]["maintenanceWindow"]["durationHours"] == 4
    push(cloud, files(WINDOW + "  tags: {a: b}\n"))
    cloud.run()
    assert accepted(cloud)["put-maintenance", "aksManagedAutoUpgradeSchedule"] == 1
    assert phases(cloud) == {"one": Phase.READY}


def test_a_failed_upgrade_is_not_carried_out_by_the_commit_that_reverts_it() -> None:
    cloud = ready(version("1.35"))
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no room for a surge")
    push(cloud, files(version("1.36")))
    cloud.run()
    push(cloud, files(version("1.35") + "  tags: {a: b}\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["properties"]["currentKubernetesVersion"].startswith("1.35.")
    assert cluster(cloud)["tags"]["a"] == "b"


def test_a_pool_whose_upgrade_failed_blocks_no_other_write() -> None:
    web = "    - {name: web, vmSize: Standard_D4s_v5, count: 1}\n"
    pinned = pool(orchestratorVersion='"1.35"') + web
    cloud = ready(pinned + version("1.35"))
    push(cloud, files(pinned + version("1.36")))
    cloud.run(until=lambda: "node pool system" in record(cloud).job.reason)
    cloud.clock.advance(30)
    cloud.azure.complete_due()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no room for a surge")
    cloud.run()
    assert pools(cloud)["web"]["provisioningState"] == "Failed"
    push(cloud, files(pinned + version("1.36") + "  tags: {a: b}\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pools(cloud)["web"]["currentOrchestratorVersion"].startswith("1.36.")


def test_a_version_that_azure_does_not_offer_for_a_pool_is_refused_before_any_write() -> None:
    cloud = ready(pool() + version("1.34"))
    before = accepted(cloud)
    push(cloud, files(pool(orchestratorVersion='"1.35.5"') + version("1.36")))
    cloud.run()
    assert "spec.nodePools[apps].orchestratorVersion 1.35.5: Azure does not offer" in record(cloud).job.reason
    assert accepted(cloud) == before
