"""What Azure lists for the rollback of a node pool, and which it refuses, in both implementations."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from shared.azure.node_pools.rollback import RecentVersions, recently_used
from shared.cluster.failures.errors import InvalidManifest
from shared.ports.azure import GetPoolUpgradeProfile, PutCluster, PutGroup, PutPool
from tests.support.azure_ports import CLUSTER, Azure, body, pool

OLD, NEW = ("1.36.2", NODE_IMAGES[0]), ("1.36.3", NODE_IMAGES[-1])


def listed(azure: Azure) -> list[RecentVersions]:
    return list(recently_used(azure.call(GetPoolUpgradeProfile(CLUSTER, "system"))))


def put(azure: Azure, version: str, image: str) -> None:
    properties = pool(mode="System", count=2, orchestratorVersion=version, nodeImageVersion=image)
    azure.call(PutPool(CLUSTER, "system", properties, etag=azure.pool("system")["eTag"]))
    azure.clock.advance(2)


def runs(azure: Azure) -> tuple[str, str]:
    found = azure.pool("system")
    return found["currentOrchestratorVersion"], found["nodeImageVersion"]


def upgraded(azure: Azure) -> Azure:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.2"), etag=None))
    azure.clock.advance(4)
    azure.world.interventions.set_node_image(CLUSTER, "system", OLD[1])
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.3"), etag=azure.seen()["eTag"]))
    azure.clock.advance(4)
    put(azure, "1.36.3", OLD[1])
    assert runs(azure) == NEW
    return azure


def test_a_pool_that_was_never_upgraded_lists_nothing(azure: Azure) -> None:
    assert listed(azure.with_cluster()) == []


def test_the_last_versions_come_back_by_one_write_and_no_second_step_follows(azure: Azure) -> None:
    upgraded(azure)
    (found,) = listed(azure)
    assert (found.kubernetes, found.image) == OLD
    assert timedelta() <= azure.clock() - found.last_used < timedelta(minutes=1)
    put(azure, *OLD)
    assert (runs(azure), azure.state(), listed(azure)) == (OLD, "Succeeded", [])
    with pytest.raises(InvalidManifest, match="not among the recently used versions"):
        put(azure, "1.36.2", NODE_IMAGES[-1])


def test_only_versions_that_are_listed_together_come_back(azure: Azure) -> None:
    upgraded(azure)
    for version, image in (("1.36.3", OLD[1]), ("1.36.2", "AKSUbuntu-2204gen2containerd-202501.01.0")):
        with pytest.raises(InvalidManifest, match="not among the recently used versions"):
            put(azure, version, image)
    assert runs(azure) == NEW


def test_the_image_that_a_pool_has_may_be_sent_back(azure: Azure) -> None:
    upgraded(azure)
    put(azure, *NEW)
    assert (runs(azure), len(listed(azure))) == (NEW, 1)


def test_after_seven_days_and_with_a_channel_for_upgrades_it_is_refused(azure: Azure) -> None:
    upgraded(azure)
    channel = {"autoUpgradeProfile": {"upgradeChannel": "patch"}}
    azure.call(PutCluster(CLUSTER, body(kubernetesVersion="1.36.3", **channel), etag=azure.seen()["eTag"]))
    azure.clock.advance(4)
    with pytest.raises(InvalidManifest, match="the auto-upgrade channel is 'patch'"):
        put(azure, *OLD)
    azure.clock.advance(timedelta(days=7).total_seconds())
    with pytest.raises(InvalidManifest, match="for 7 days after the upgrade"):
        put(azure, *OLD)
    assert runs(azure) == NEW
