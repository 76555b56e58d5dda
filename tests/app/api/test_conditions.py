"""What the API shows of conditions: for which generation, and how old the fact is."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.views.clusters import cluster_detail, fleet_view
from tests.support.checks import check
from tests.support.one_cluster import ONE, files, ready
from tests.support.pipeline_runs import push
from tests.support.sweeps import LATER, delete_by_hand, sweep, tag_by_hand

OF_THE_CLUSTER = ("InSync", "FluxHealthy", "PlatformHealthy")


def condition(cloud: MemoryCloud, kind: str) -> schema.ConditionView:
    (listed,) = fleet_view(cloud.ports)["clusters"]
    detail: Any = cluster_detail("one", cloud.ports)
    assert detail["conditions"] == listed["conditions"]
    (found,) = [entry for entry in listed["conditions"] if entry["type"] == kind]
    return found


def test_ready_is_verified_by_the_last_step_and_again_by_each_sweep() -> None:
    cloud = ready()
    at_first = condition(cloud, "Ready")
    assert (at_first["status"], at_first["observedGeneration"]) == ("True", 1)
    assert at_first["lastVerifiedTime"] == at_first["lastTransitionTime"]
    sweep(cloud)
    swept = condition(cloud, "Ready")
    listing = cloud.state.sweep().listed_at(ONE.subscription)
    assert listing is not None
    assert (
        swept["lastVerifiedTime"] == listing.isoformat(timespec="seconds") > str(at_first["lastVerifiedTime"])
    )
    assert swept["lastTransitionTime"] == at_first["lastTransitionTime"]


def test_a_sweep_renews_what_an_earlier_one_found() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    lost = condition(cloud, "Ready")
    assert (lost["status"], lost["reason"]) == ("False", "ClusterMissing")
    sweep(cloud)
    renewed = condition(cloud, "Ready")
    assert renewed["lastTransitionTime"] == lost["lastTransitionTime"]
    assert str(renewed["lastVerifiedTime"]) > str(lost["lastVerifiedTime"])


@pytest.mark.parametrize("drifts", [False, True])
def test_a_sweep_renews_whether_a_cluster_is_in_sync(drifts: bool) -> None:
    cloud = ready("  tags: {cost: a}\n")
    if drifts:
        tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    found = condition(cloud, "InSync")
    assert found["status"] == str(not drifts)
    sweep(cloud)
    renewed = condition(cloud, "InSync")
    assert (renewed["status"], renewed["lastTransitionTime"]) == (
        found["status"],
        found["lastTransitionTime"],
    )
    assert str(renewed["lastVerifiedTime"]) > str(found["lastVerifiedTime"])


def test_a_missing_cluster_is_not_in_sync_and_nothing_is_known_of_what_ran_in_it() -> None:
    cloud = ready()
    check(cloud)
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    found = {kind: condition(cloud, kind) for kind in (*OF_THE_CLUSTER, "ClusterReady", "NodePoolsReady")}
    assert {kind: shown_condition["status"] for kind, shown_condition in found.items()} == {
        "InSync": "False",
        "FluxHealthy": "Unknown",
        "PlatformHealthy": "Unknown",
        "ClusterReady": "False",
        "NodePoolsReady": "False",
    }
    assert {shown_condition["reason"] for shown_condition in found.values()} == {"ClusterMissing"}


def test_a_stopped_cluster_is_not_in_sync_until_it_runs_and_was_compared_and_checked_again() -> None:
    cloud = ready()
    check(cloud)
    cloud.azure.interventions.stop(ONE)
    cloud.clock.advance(LATER)
    sweep(cloud)
    assert [condition(cloud, kind)["status"] for kind in OF_THE_CLUSTER] == ["False", "Unknown", "Unknown"]
    cloud.azure.interventions.start(ONE)
    cloud.clock.advance(LATER)
    sweep(cloud)
    assert condition(cloud, "InSync")["status"] == "True"
    cloud.run(600)
    assert [condition(cloud, kind)["status"] for kind in OF_THE_CLUSTER] == ["True", "True", "True"]


def test_a_cluster_is_not_ready_from_the_plan_of_its_next_generation_on() -> None:
    cloud = ready()
    push(cloud, files("  tags: {a: b}\n"))
    cloud.step()
    updating = condition(cloud, "Ready")
    assert (updating["status"], updating["reason"], updating["observedGeneration"]) == (
        "False",
        "Updating",
        2,
    )
    assert condition(cloud, "Stalled")["status"] == "False"
    assert condition(cloud, "ClusterReady")["observedGeneration"] == 1
    cloud.run()
    assert condition(cloud, "Ready")["status"] == "True"
