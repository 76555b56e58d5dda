"""One suite for the node pools of clusters: the world in memory, and the adapter over HTTPS."""

from __future__ import annotations

import pytest

from shared.cluster.failures.errors import Conflict, InvalidManifest
from shared.ports.azure import (
    DeletePool,
    PutCluster,
    PutPool,
)
from tests.support.azure_ports import CLUSTER, Azure, body, pool


def test_a_cluster_that_is_written_without_its_pools_keeps_them_as_they_are(azure: Azure) -> None:
    azure.with_cluster()
    before = azure.seen()
    azure.world.interventions.scale(CLUSTER, "system", 5)
    unchanged = {key: value for key, value in before["properties"].items() if key != "agentPoolProfiles"}
    azure.call(PutCluster(CLUSTER, {**before, "properties": unchanged}, etag=before["eTag"]))
    azure.clock.advance(2)
    assert azure.pool("system")["count"] == 5


def test_pools_are_added_changed_and_removed_without_touching_the_clusters_etag(azure: Azure) -> None:
    azure.with_cluster()
    etag = azure.seen()["eTag"]
    wanted = pool(nodeLabels={"tier": "web"}, nodeTaints=["web=yes:NoSchedule"], availabilityZones=["1"])
    azure.call(PutPool(CLUSTER, "web", wanted, etag=None))
    assert azure.pool("web")["provisioningState"] == "Creating"
    azure.clock.advance(2)
    assert azure.pool("web")["provisioningState"] == "Succeeded"
    node = azure.plane.nodes[CLUSTER][-1]
    assert node.labels["tier"] == "web"
    assert node.labels["topology.kubernetes.io/zone"] == "westeurope-1"
    assert node.taints == ({"key": "web", "value": "yes", "effect": "NoSchedule"},)

    grown = {"properties": {"enableAutoScaling": True, "minCount": 1, "maxCount": 5, "count": 3}}
    azure.call(PutPool(CLUSTER, "web", grown, etag=azure.pool("web")["eTag"]))
    azure.clock.advance(1)
    assert (azure.pool("web")["count"], azure.pool("web")["nodeLabels"]) == (3, {"tier": "web"})
    with pytest.raises(Conflict):
        azure.call(PutPool(CLUSTER, "web", pool(), etag=None, only_new=True))

    azure.call(DeletePool(CLUSTER, "web", etag=None))
    assert azure.pool("web")["provisioningState"] == "Deleting"
    azure.clock.advance(1)
    azure.call(DeletePool(CLUSTER, "web", etag=None))
    assert [p["name"] for p in azure.seen()["properties"]["agentPoolProfiles"]] == ["system"]
    assert azure.seen()["eTag"] == etag
    with pytest.raises(InvalidManifest, match="system"):
        azure.call(DeletePool(CLUSTER, "system", etag=None))


def test_a_pool_that_fails_shows_why_and_has_no_nodes(azure: Azure) -> None:
    azure.with_cluster()
    azure.world.interventions.fail_next(CLUSTER.name, "SkuNotAvailable", "No such size in the zone.")
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(2)
    assert azure.pool("web")["provisioningState"] == "Failed"
    assert azure.pool("web")["status"]["provisioningError"]["code"] == "SkuNotAvailable"
    assert azure.state() == "Succeeded"
    azure.world.interventions.scale(CLUSTER, "system", 3)
    assert [node.pool for node in azure.plane.nodes[CLUSTER]] == ["system"] * 3
    azure.call(PutPool(CLUSTER, "web", pool(), etag=azure.pool("web")["eTag"]))
    azure.clock.advance(1)
    assert azure.pool("web")["provisioningState"] == "Succeeded"
    assert [node.pool for node in azure.plane.nodes[CLUSTER]] == ["system", "system", "system", "web"]


def test_the_node_count_belongs_to_the_autoscaler_once_it_is_on(azure: Azure) -> None:
    azure.with_cluster()
    bounds = {"enableAutoScaling": True, "minCount": 1, "maxCount": 5}
    azure.call(PutPool(CLUSTER, "web", pool(**bounds), etag=None))
    azure.clock.advance(2)
    azure.world.interventions.scale(CLUSTER, "web", 4)
    assert azure.pool("web")["count"] == 4
    azure.call(PutPool(CLUSTER, "web", pool(count=1, **bounds), etag=azure.pool("web")["eTag"]))
    azure.clock.advance(1)
    assert azure.pool("web")["count"] == 4
    azure.call(
        PutPool(CLUSTER, "web", pool(enableAutoScaling=False, count=2), etag=azure.pool("web")["eTag"])
    )
    azure.clock.advance(1)
    assert azure.pool("web")["count"] == 2
    assert "minCount" not in azure.pool("web")


def test_pools_come_and_go_only_through_pool_operations(azure: Azure) -> None:
    azure.with_cluster()
    azure.call(PutPool(CLUSTER, "web", pool(), etag=None))
    azure.clock.advance(2)
    with pytest.raises(InvalidManifest, match="Removing agent pools"):
        azure.call(PutCluster(CLUSTER, body(), etag=azure.seen()["eTag"]))
    seen = azure.seen()
    profiles = seen["properties"]["agentPoolProfiles"]
    fewer = {**body(), "properties": {"agentPoolProfiles": [*profiles, pool(name="new")["properties"]]}}
    with pytest.raises(InvalidManifest, match="Adding agent pools"):
        azure.call(PutCluster(CLUSTER, fewer, etag=seen["eTag"]))
    azure.call(PutCluster(CLUSTER, seen, etag=seen["eTag"]))
    azure.clock.advance(2)
    assert [p["name"] for p in azure.seen()["properties"]["agentPoolProfiles"]] == ["system", "web"]
