"""The effects of changes: the data names real fields, and the local cloud agrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from localcloud.azure.world import agent_pools, managed_clusters
from shared.fleet.aks.change_effects import FIELD_EFFECTS, Effect, effect_of, planned_effect
from shared.fleet.manifests.base import models_in
from shared.fleet.manifests.cluster import ClusterSpec
from shared.fleet.manifests.node_pool import NodePool
from shared.fleet.manifests.untyped import OWNED_BY_AZURE

NOT_TYPED = {"fqdnSubdomain", "enableRBAC", "nodePools[].type", "nodePools[].virtualMachinesProfile"}
FIXED = (Effect.RECREATION, Effect.REPLACEMENT)


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = prefix + (info.alias or name)
        yield path
        for below in models_in(info.annotation):
            yield from paths(below, f"{path}.")


def typed() -> set[str]:
    return {*paths(ClusterSpec), *paths(NodePool, "nodePools[].")}


def test_every_entry_names_a_field() -> None:
    asked = {entry.pattern for entry in FIELD_EFFECTS if entry.effect is not Effect.AZURE}
    assert asked - typed() == NOT_TYPED


def test_no_typed_field_is_azures_own() -> None:
    own = {entry.pattern for entry in FIELD_EFFECTS if entry.effect is Effect.AZURE}
    assert own & typed() == set()
    assert "provisioningState" in OWNED_BY_AZURE["cluster"]
    assert "nodeImageVersion" in OWNED_BY_AZURE["pool"]


@pytest.mark.parametrize(
    ("path", "old", "new", "effect"),
    [
        ("spec.tags.cost", "a", "b", Effect.IN_PLACE),
        ("spec.networkProfile.podCidr", "10.1.0.0/16", "10.2.0.0/16", Effect.RECREATION),
        ("networkProfile.networkPolicy", "calico", "cilium", Effect.IN_PLACE),
        ("networkProfile.networkPolicy", "cilium", "calico", Effect.RECREATION),
        ("networkProfile.networkPluginMode", None, "overlay", Effect.IN_PLACE),
        ("spec.azure.properties.fqdnSubdomain", "a", "b", Effect.RECREATION),
        ("spec.nodePools[apps].vmSize", "Standard_D2s_v5", "Standard_D4s_v5", Effect.REPLACEMENT),
        ("nodePools[].kubeletConfig.podMaxPids", 1, 2, Effect.REPLACEMENT),
        ("spec.nodePools[apps].osSKU", "Ubuntu", "AzureLinux", Effect.IN_PLACE),
        ("spec.nodePools[apps].osSKU", "Windows2019", "Windows2022", Effect.REPLACEMENT),
        ("spec.nodePools[apps].azure.properties.nodeImageVersion", "", "x", Effect.AZURE),
        ("oidcIssuerProfile.enabled", False, True, Effect.IN_PLACE),
        ("oidcIssuerProfile.enabled", True, False, Effect.RECREATION),
        ("apiServerAccessProfile.subnetId", None, "/subscriptions/x", Effect.IN_PLACE),
    ],
)
def test_the_effect_of_a_change(path: str, old: Any, new: Any, effect: Effect) -> None:
    assert effect_of(path, old, new) is effect


@pytest.mark.parametrize(
    ("path", "old", "new", "effect"),
    [
        ("spec.networkProfile.podCidr", "10.1.0.0/16", "", Effect.UNMANAGED),
        ("spec.networkProfile.podCidr", "", "10.1.0.0/16", Effect.CHECKED),
        ("spec.networkProfile.podCidr", "10.1.0.0/16", "10.2.0.0/16", Effect.RECREATION),
        ("spec.nodePools[apps].maxPods", "", "30", Effect.MAY_REPLACE),
        ("spec.nodePools[apps].nodeLabels.a", "b", "", Effect.IN_PLACE),
        ("spec.nodePools[apps]", "apps", "", Effect.IN_PLACE),
        ("spec.nodePools[apps]", "", "apps", Effect.IN_PLACE),
        ("spec.tags.cost", "a", "", Effect.UNMANAGED),
        ("spec.nodePools[apps].availabilityZones", "['1']", "[]", Effect.UNMANAGED),
        ("spec.nodePools[apps].availabilityZones", "[]", "['1']", Effect.MAY_REPLACE),
        ("spec.nodePools[apps].vmSize", "Standard_d4s_v5", "Standard_D4s_v5", Effect.IN_PLACE),
    ],
)
def test_the_effect_of_a_change_between_two_manifests(path: str, old: str, new: str, effect: Effect) -> None:
    assert planned_effect(path, old, new) is effect


def test_the_local_cloud_refuses_fixed_fields_and_accepts_the_allowed_changes() -> None:
    fixed = [*managed_clusters.IMMUTABLE, *(f"nodePools[].{name}" for name in agent_pools.IMMUTABLE)]
    assert managed_clusters.IMMUTABLE
    assert agent_pools.IMMUTABLE
    assert managed_clusters.WAYS
    assert [path for path in fixed if effect_of(path, "one", "other") not in FIXED] == []
    assert [way for way in managed_clusters.WAYS if effect_of(*way) is not Effect.IN_PLACE] == []
