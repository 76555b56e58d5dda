"""ARM bodies: the smallest write, and none when nothing differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.world.azure import AzureWorld
from localcloud.world.azure_ports import WorldManagedClusters, WorldResourceGroups
from localcloud.world.clock import ManualClock
from localcloud.world.plane import NullPlane
from shared.fleet.azure import (
    ImmutableChange,
    Owner,
    cluster_body,
    group_body,
    pool_body,
    version_satisfies,
)
from shared.fleet.desired import Desired
from shared.fleet.manifests import ClusterSpec
from tests.fleet.test_plan import desired

OWNER = Owner("example", "example/fleet", "one")


def changed(cluster: Desired, **fields: Any) -> Desired:
    """Return the cluster with some fields of its spec replaced (names as in the manifest)."""
    return replace(cluster, spec=ClusterSpec.model_validate(cluster.document()["spec"] | fields))


def pool(**fields: Any) -> dict[str, Any]:
    return {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1} | fields


def created(cluster: Desired) -> dict[str, Any]:
    """Return the cluster as Azure shows it after its creation."""
    clock = ManualClock()
    world = AzureWorld(clock, plane=NullPlane())
    WorldResourceGroups(world).put(
        cluster.id.subscription, cluster.id.resource_group, group_body(cluster, OWNER)
    )
    clusters = WorldManagedClusters(world)
    body = cluster_body(cluster, OWNER, None)
    assert body is not None
    clusters.put(cluster.id, body, etag=None)
    clock.advance(60)
    live = clusters.get(cluster.id)
    assert live is not None
    return dict(live)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"nodePools": [pool(count=None, minCount=1, maxCount=3)]},
        {
            "nodePools": [
                pool(nodeLabels={"a": "b"}, nodeTaints=["k=v:NoSchedule"], availabilityZones=["2", "1"])
            ]
        },
        {"nodePools": [pool(), pool(name="apps", mode="User", maxPods=50, osDiskSizeGB=64)]},
        {
            "networkProfile": {
                "networkPluginMode": "overlay",
                "networkPolicy": "cilium",
                "networkDataplane": "cilium",
            }
        },
        {"tags": {"a": "b"}, "sku": {"tier": "Free"}, "dnsPrefix": "Other"},
    ],
)
def test_what_azure_shows_after_a_creation_needs_no_write(fields: dict[str, Any]) -> None:
    cluster = changed(desired("one"), **fields)
    live = created(cluster)
    assert cluster_body(cluster, OWNER, live) is None
    profiles = {profile["name"]: profile for profile in live["properties"]["agentPoolProfiles"]}
    for wanted in cluster.spec.node_pools:
        assert pool_body(wanted, cluster, OWNER, profiles[wanted.name]) is None


def test_tags_and_tier_are_changed_in_place_and_foreign_tags_stay() -> None:
    live = created(desired("one"))
    live["tags"] = {**live["tags"], "policy": "set by Azure"}
    body = cluster_body(changed(desired("one"), tags={"a": "b"}, sku={"tier": "Premium"}), OWNER, live)
    assert body is not None
    assert body["tags"] == {"a": "b", "policy": "set by Azure", **OWNER.tags}
    assert body["sku"]["tier"] == "Premium"
    assert "provisioningState" not in body["properties"]


def test_the_live_count_of_an_autoscaled_pool_belongs_to_the_autoscaler() -> None:
    cluster = changed(desired("one"), nodePools=[pool(count=None, minCount=1, maxCount=5)])
    profile = dict(created(cluster)["properties"]["agentPoolProfiles"][0]) | {"count": 4}
    assert pool_body(cluster.spec.node_pools[0], cluster, OWNER, profile) is None
    wider = changed(cluster, nodePools=[pool(count=None, minCount=2, maxCount=5)])
    body = pool_body(wider.spec.node_pools[0], wider, OWNER, profile)
    assert body is not None
    assert (body["properties"]["count"], body["properties"]["minCount"]) == (4, 2)


def test_labels_and_taints_that_git_drops_are_taken_away() -> None:
    cluster = changed(desired("one"), nodePools=[pool(nodeLabels={"a": "b"}, nodeTaints=["k=v:NoSchedule"])])
    profile = created(cluster)["properties"]["agentPoolProfiles"][0]
    plain = desired("one")
    body = pool_body(plain.spec.node_pools[0], plain, OWNER, profile)
    assert body is not None
    assert (body["properties"]["nodeLabels"], body["properties"]["nodeTaints"]) == ({}, [])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"networkProfile": {"podCidr": "10.1.0.0/16"}}, "networkProfile.podCidr cannot be changed"),
        ({"dnsPrefix": "else"}, "dnsPrefix cannot be changed from one to else"),
    ],
)
def test_a_fixed_field_of_the_cluster_is_refused_with_the_way_out(fields: dict[str, Any], words: str) -> None:
    live = created(changed(desired("one"), networkProfile={"podCidr": "10.9.0.0/16"}))
    with pytest.raises(ImmutableChange, match=words):
        cluster_body(changed(desired("one"), **fields), OWNER, live)


def test_a_vm_size_is_never_changed_under_a_pool() -> None:
    profile = created(desired("one"))["properties"]["agentPoolProfiles"][0]
    bigger = changed(desired("one"), nodePools=[pool(vmSize="Standard_D8s_v5")])
    with pytest.raises(ImmutableChange, match="node pool system: vmSize cannot be changed"):
        pool_body(bigger.spec.node_pools[0], bigger, OWNER, profile)


def test_a_failed_cluster_gets_a_write_without_a_difference() -> None:
    live = created(desired("one"))
    live["properties"] = {**live["properties"], "provisioningState": "Failed"}
    assert cluster_body(desired("one"), OWNER, live) is not None


@pytest.mark.parametrize(
    ("wanted", "current", "met"),
    [
        ("1.33", "1.33.4", True),
        ("1.33", "1.3.3", False),
        ("1.33.4", "1.33.4", True),
        ("1.33.4", "1.33.5", False),
        ("1.34", "1.33.4", False),
        ("1.33", "", False),
    ],
)
def test_a_minor_alone_is_met_by_any_of_its_patches(wanted: str, current: str, met: bool) -> None:
    assert version_satisfies(wanted, current) is met


def test_only_a_resource_with_all_our_tags_is_ours() -> None:
    assert OWNER.owns({"tags": {**OWNER.tags, "more": "x"}})
    assert not OWNER.owns({"tags": {**OWNER.tags, "roadstead-fleet": "other"}})
    assert not OWNER.owns({})
