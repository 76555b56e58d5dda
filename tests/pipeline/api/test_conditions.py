"""What the API shows of conditions: for which generation, and how old the fact is."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.pipeline.api import schema
from shared.pipeline.api.views.clusters import cluster_detail, fleet_view
from tests.support.one_cluster import ONE, files, ready
from tests.support.pipeline_runs import push
from tests.support.sweeps import delete_by_hand, sweep


def condition(cloud: MemoryCloud, kind: str) -> schema.Condition:
    (listed,) = fleet_view(cloud.ports)["clusters"]
    detail: Any = cluster_detail("one", cloud.ports)
    assert detail["conditions"] == listed["conditions"]
    (found,) = [each for each in listed["conditions"] if each["type"] == kind]
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


def test_a_sweep_verifies_nothing_of_a_cluster_that_is_not_ready() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    sweep(cloud)
    lost = condition(cloud, "Ready")
    assert (lost["status"], lost["reason"]) == ("False", "ClusterMissing")
    before = lost["lastVerifiedTime"]
    assert before == lost["lastTransitionTime"]
    sweep(cloud)
    assert condition(cloud, "Ready")["lastVerifiedTime"] == before


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
