"""The drill says what a loss of the tables would do to each cluster, and a loss then does just that."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.azure import drill
from shared.app.api.acts.cluster import take_over
from shared.cluster.record_parts import Phase, Removals
from shared.ports.azure import ListClusters
from shared.ports.process import in_threads
from tests.support import fleet_files
from tests.support.lost_tables import CONFIG, ID, lose, ready
from tests.support.one_cluster import ONE, files
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import SUBSCRIPTIONS, delete_by_hand, several, tag_by_hand

pytestmark = pytest.mark.lives(4)


def drilled(cloud: MemoryCloud) -> dict[str, Any]:
    before, state = accepted(cloud), cloud.state.clusters()
    result = drill(cloud.ports)
    assert result.status == 200
    assert (accepted(cloud), cloud.state.clusters()) == (before, state)
    return dict(result.body)


def outcomes(view: dict[str, Any]) -> dict[str, str]:
    return {cluster["name"]: cluster["outcome"] for cluster in view["clusters"]}


def test_a_fleet_in_sync_would_be_rebuilt_by_itself() -> None:
    cloud = ready(fleet_files.example())
    view = drilled(cloud)
    assert set(outcomes(view).values()) == {"rebuilt"}
    assert [cluster["unlike"] for cluster in view["clusters"]] == [[], [], []]
    assert (view["orphans"], view["invalid"], view["unread"]) == ([], [], [])
    assert (view["installation"], view["commit"]) == (ID, cloud.state.fleet().commit)


def test_what_the_drill_says_is_what_a_loss_does() -> None:
    cloud = ready(fleet_files.fleet("one", "two", "three", budget=3))
    tag_by_hand(cloud, ONE, **{"managed-by": "somebody"})
    delete_by_hand(cloud, replace(ONE, resource_group="rg-two", name="two"))
    assert outcomes(drilled(cloud)) == {"one": "differs", "two": "create", "three": "rebuilt"}
    [one] = [cluster for cluster in drilled(cloud)["clusters"] if cluster["name"] == "one"]
    assert one["differs"] == ["tags.managed-by"]
    created = accepted(cloud)["create", "two"]
    lose(cloud)
    assert phases(cloud) == {"one": Phase.PROVISIONING, "two": Phase.PROVISIONING, "three": Phase.READY}
    assert [record.contested for record in cloud.state.clusters()] == [True, False, True]
    assert take_over("two", "jo", cloud.ports).status == 202
    cloud.run(seconds=1800)
    assert phases(cloud)["two"] is Phase.READY
    assert accepted(cloud)["create", "two"] == created + 1


@pytest.mark.parametrize("removed", [Removals(companions=("x",)), Removals(configurations=("apps",))])
def test_what_is_still_to_be_removed_would_be_forgotten(removed: Removals) -> None:
    cloud = ready(files())
    (known,) = cloud.state.clusters()
    cloud.state.save(replace(known, removals=removed))
    [one] = drilled(cloud)["clusters"]
    assert one["unlike"] == ["what accepted commits took from it is still to be removed"]


def test_clusters_with_a_former_id_would_wait_for_a_takeover() -> None:
    cloud = ready(files(), replace(CONFIG, installation=""))
    assert outcomes(drilled(cloud)) == {"one": "takeover"}
    cloud.with_ports(lambda ports: replace(ports, config=CONFIG))
    [one] = drilled(cloud)["clusters"]
    assert one["reason"] == f"its tags name {cloud.state.fleet().app.installation}@main"
    lose(cloud)
    assert [cluster.contested for cluster in cloud.state.clusters()] == [True]


def test_a_cluster_that_git_does_not_have_would_be_reported_and_stay() -> None:
    cloud = ready(fleet_files.fleet("one", "two"))
    world = fleet_files.fleet("one", "two")
    world["clusters/two/cluster.yaml"] = fleet_files.cluster("two", extra="  deletionProtection: true\n")
    push(cloud, world)
    cloud.run()
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    [orphan] = drilled(cloud)["orphans"]
    assert (orphan["name"], orphan["deleting"]) == ("two", False)


def test_a_subscription_that_cannot_be_listed_decides_nothing() -> None:
    cloud = ready(files())
    cloud.azure.engine.subscriptions = ()
    view = drilled(cloud)
    assert outcomes(view) == {"one": "unknown"}
    assert len(view["unread"]) == 1


def test_before_the_first_plan_there_is_nothing_to_drill() -> None:
    assert drill(MemoryCloud().ports).status == 409


def test_several_subscriptions_are_listed_at_a_time() -> None:
    cloud = several()
    call, all_at_once = cloud.ports.azure.call, Barrier(len(SUBSCRIPTIONS), timeout=5)

    def listed(operation: ListClusters) -> object:
        all_at_once.wait()  # of 250 one after the other, the caller would not wait for the end
        return call(operation)

    on_azure(cloud, ListClusters, listed)
    cloud.with_ports(lambda ports: replace(ports, together=in_threads))
    view = drilled(cloud)
    assert view["unread"] == []
    assert set(outcomes(view)) == {"a", "b", "c"}
