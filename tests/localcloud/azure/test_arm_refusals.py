"""Every rule of the tables of refusals: a write that breaks it, and that AKS' answer names it."""

from __future__ import annotations

import pytest

from localcloud.azure.world.arm_errors import AksError, ArmError
from localcloud.azure.world.refusals import (
    capacity_rules,
    cluster_rules,
    extension_rules,
    fixed,
    maintenance_rules,
    network_rules,
    pool_rules,
)
from shared.resource_ids import ClusterId
from tests.support.azure_cloud import CLUSTER, Cloud, rule
from tests.support.refused_companions import CONFIGURATIONS, EXTENSIONS, MAINTENANCE, VALID
from tests.support.refused_specs import ANSWERS
from tests.support.refused_writes import CREATED, POOLS, POOLS_OF, POOLS_UPDATED, SUBSCRIPTION, UPDATED

ELSEWHERE = {
    *("cilium-without-windows", "stops-when-ready", "system-pools-run"),
    "no-stop-with-auto-provisioning",
}
"""Rules with a test of their own."""
HOW = (
    "add what AKS refuses of a new cluster to tests/language/refusals.yaml, with its source and a request "
    "that it takes; what it refuses of a change to tests/support/refused_writes.py"
)


def test_every_rule_has_an_example_and_a_source() -> None:
    rules = [
        *(network_rules.RULES + cluster_rules.RULES + pool_rules.RULES + maintenance_rules.RULES),
        *(capacity_rules.RULES + extension_rules.EXTENSIONS + extension_rules.CONFIGURATIONS),
    ]
    names = [refusal.name for refusal in rules]
    examples = {*CREATED, *UPDATED, *POOLS, *POOLS_OF, *POOLS_UPDATED, *MAINTENANCE, *ELSEWHERE}
    examples |= {*EXTENSIONS, *CONFIGURATIONS, *(answer.rule for answer in ANSWERS if answer.rule)}
    assert sorted(names) == sorted(set(names))
    assert set(names) - examples == set(), HOW
    assert examples - set(names) == set(), "no rule has these names"
    assert [refusal.name for refusal in rules if not refusal.source or not refusal.message] == []
    assert [path for path, source in {**fixed.CLUSTER, **fixed.POOL}.items() if not source] == []


@pytest.mark.parametrize("name", CREATED)
def test_a_creation_that_breaks_a_rule_is_refused(name: str) -> None:
    with pytest.raises(AksError) as refused:
        Cloud().create(CREATED[name])
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", UPDATED)
def test_an_update_that_breaks_a_rule_is_refused(name: str) -> None:
    before, update = UPDATED[name]
    cloud = Cloud().create(before)
    with pytest.raises(AksError) as refused:
        cloud.update(update)
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", [*POOLS, *POOLS_OF])
def test_a_pool_that_breaks_a_rule_is_refused(name: str) -> None:
    cluster, pool = POOLS_OF[name] if name in POOLS_OF else ({}, POOLS[name])
    cloud = Cloud().create(cluster)
    with pytest.raises(AksError) as refused:
        cloud.put_pool(pool)
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", POOLS_UPDATED)
def test_an_update_of_a_pool_that_breaks_a_rule_is_refused(name: str) -> None:
    before, after = POOLS_UPDATED[name]
    cloud = Cloud().create({}).put_pool(before)
    with pytest.raises(AksError) as refused:
        cloud.put_pool(after)
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", MAINTENANCE)
def test_a_maintenance_configuration_that_breaks_a_rule_is_refused(name: str) -> None:
    configuration, properties = MAINTENANCE[name]
    cloud = Cloud().create({})
    with pytest.raises(AksError) as refused:
        cloud.world.put_maintenance(CLUSTER, configuration, {"properties": properties})
    assert rule(refused.value) == name


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_that_breaks_a_rule_is_refused(name: str) -> None:
    properties = {"extensionType": "microsoft.flux", **EXTENSIONS[name]}
    cloud = Cloud().create({})
    with pytest.raises(ArmError) as refused:
        cloud.world.put_extension(CLUSTER, "flux", {"properties": properties})
    assert rule_behind(refused.value) == name


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_of_flux_that_breaks_a_rule_is_refused(name: str) -> None:
    configuration, properties = CONFIGURATIONS[name]
    cloud = Cloud().create({})
    cloud.world.put_flux_configuration(CLUSTER, "flux-system", {"properties": VALID})
    cloud.clock.advance(10)
    with pytest.raises(ArmError) as refused:
        cloud.world.put_flux_configuration(CLUSTER, configuration, {"properties": properties})
    assert rule_behind(refused.value) == name


def rule_behind(error: ArmError) -> str:
    """Return the rule of a refusal in the envelope of Azure Resource Manager."""
    assert set(error.body()) == {"error"}
    assert isinstance(error.__cause__, AksError)
    return error.__cause__.rule


def test_a_cluster_for_whose_nodes_aks_would_need_a_longer_group_name_is_refused() -> None:
    world, cluster = Cloud().world, ClusterId(SUBSCRIPTION, "g" * 62, "name")
    world.put_group(SUBSCRIPTION, cluster.resource_group, {"location": "westeurope"})
    pool = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5"}
    properties: dict[str, object] = {"dnsPrefix": "one", "agentPoolProfiles": [pool]}
    body = {"location": "westeurope", "identity": {"type": "SystemAssigned"}, "properties": properties}
    with pytest.raises(AksError, match="maximum length is 80 and the length of the value provided is 81"):
        world.put_cluster(cluster, body)
    properties["nodeResourceGroup"] = "nodes"
    world.put_cluster(cluster, body)
    shown = world.get_cluster(cluster)
    assert shown is not None
    assert shown["properties"]["nodeResourceGroup"] == "nodes"
    kubelet = shown["properties"]["identityProfile"]["kubeletidentity"]["resourceId"]
    assert "/resourceGroups/nodes/" in kubelet
