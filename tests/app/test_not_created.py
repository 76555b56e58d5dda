"""What git has, invalid, while a cluster is deleted, is shown then and afterwards."""

from __future__ import annotations

from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, ready, status


def test_a_cluster_that_comes_back_invalid_is_shown_once_its_deletion_has_finished() -> None:
    cloud = ready("one")
    push(cloud, fleet_files.fleet())
    cloud.run(until=lambda: phases(cloud) == {"one": Phase.DELETING})
    cloud.clock.advance(60)
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": b"kind: Cluster\nspec: {locaton: x}\n"})
    cloud.run(until=lambda: len(cloud.state.plans_since(cloud.clock().replace(year=2020))) == 3)
    assert phases(cloud) == {"one": Phase.DELETING}
    assert fleet_view(cloud.ports)["notCreated"] == []
    cloud.run(3600)
    view, why = fleet_view(cloud.ports), why_view("one", cloud.ports)
    assert (view["clusters"], view["notCreated"], view["notCreatedCount"]) == ([], ["one"], 1)
    assert why is not None
    assert (why["phase"], why["suggestedAction"] != "") == ("NotCreated", True)


def test_an_invalid_fleet_file_is_no_success_when_it_has_no_cluster_to_stop() -> None:
    cloud = ready("one")
    push(cloud, fleet_files.fleet())
    cloud.run(until=lambda: phases(cloud) == {"one": Phase.DELETING})
    cloud.clock.advance(60)
    commit = push(cloud, {"fleet.yaml": b"kind: Fleet\nspec: {defautls: {}}\n"})
    cloud.run(3600)
    state, description = status(cloud, commit)
    assert (state, description.startswith("fleet.yaml:")) == ("failure", True)
