"""For any spec: what Azure created from it needs no write, and merging it over again changes nothing.

A spec that Azure refuses is left to ``test_arm_bodies.py``, which lists every such refusal.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, reject

from localcloud.azure.world.azure_ports import WorldAzure
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.azure.changes.comparison import overlay
from shared.azure.changes.writes import ImmutableChange
from shared.cluster.failures.errors import InvalidManifest
from tests.support.arm_bodies import OWNER, bodies, cluster_body, created, desired, pool
from tests.support.azure_ports import Azure
from tests.support.azure_writes import put
from tests.support.cluster_specs import SPECS
from tests.support.hypothesis_settings import GENERATED

pytestmark = pytest.mark.lives


@GENERATED
@given(SPECS)
def test_a_cluster_that_azure_created_from_a_spec_needs_no_write(spec: dict[str, Any]) -> None:
    cluster = desired(**spec)
    try:
        live = created(cluster)
    except InvalidManifest:
        reject()
    assert bodies(cluster, live) == []


@GENERATED
@given(SPECS, SPECS)
def test_azure_takes_every_change_between_two_specs_that_roadstead_does_not_refuse_before(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    world = AzureWorld(clock := ManualClock(), plane=(plane := NullPlane()))
    azure = Azure(WorldAzure(world), world, plane, clock)
    try:
        put(azure, desired(**before))
        created(desired(**after))
    except InvalidManifest:
        reject()
    with suppress(ImmutableChange):
        put(azure, desired(**after))


def test_azure_takes_the_write_that_turns_the_autoscaler_of_a_stopped_pool_on() -> None:
    world = AzureWorld(clock := ManualClock(), plane=(plane := NullPlane()))
    azure = Azure(WorldAzure(world), world, plane, clock)
    apps = {"name": "apps", "mode": "User"}
    put(azure, desired(nodePools=[pool(), pool(**apps, count=1, powerState={"code": "Stopped"})]))
    put(azure, desired(nodePools=[pool(), pool(**apps, count=None, minCount=1, maxCount=4)]))


@GENERATED
@given(SPECS, SPECS)
def test_a_merge_has_the_values_that_are_merged_over_and_loses_no_others(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    old, new = (cluster_body(desired(**spec), OWNER, None) or {} for spec in (before, after))
    merged, changes = overlay(old, new)
    assert overlay(merged, new) == (merged, [])
    assert bool(changes) == (merged != old)
    assert old.keys() <= merged.keys()
    assert old["properties"].keys() <= merged["properties"].keys()
    assert old["tags"].keys() <= merged["tags"].keys()


def test_auto_provisioning_begins_once_no_pool_has_an_autoscaler_and_says_so() -> None:
    world = AzureWorld(clock := ManualClock(), plane=(plane := NullPlane()))
    azure = Azure(WorldAzure(world), world, plane, clock)
    scaled, fixed = pool(count=None, minCount=1, maxCount=3), pool(count=3)
    network = {"networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"}}
    auto = {**network, "nodeProvisioningProfile": {"mode": "Auto"}}
    put(azure, desired(nodePools=[scaled], **network))
    with pytest.raises(ImmutableChange, match="only once an earlier commit has turned the autoscaler"):
        put(azure, desired(nodePools=[fixed], **auto))
    put(azure, desired(nodePools=[fixed], **network))
    put(azure, desired(nodePools=[fixed], **auto))
