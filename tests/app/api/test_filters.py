"""Lists of clusters by class, label, condition, and by the commit that they have; what else a list shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.cluster_list import ClusterSelection
from shared.app.api.views.clusters import fleet_view
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import phases, push, record_of
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def manifest(name: str, labels: str, *, count: int = 1) -> bytes:
    text = fleet_files.cluster(name, count=count).decode()
    return text.replace(f"  name: {name}\n", f"  name: {name}\n  labels: {labels}\n", 1).encode()


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a fleet with a failed cluster and two Ready ones, of which one has the newest commit only."""
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next("three", "InvalidParameter", "no vCPUs are left")
    files = fleet_files.fleet("three") | {
        "clusters/one/cluster.yaml": manifest("one", "{team: shop, tier: gold}"),
        "clusters/two/cluster.yaml": manifest("two", "{team: bank}"),
    }
    push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "three": Phase.FAILED, "two": Phase.READY}
    return cloud


def names(cloud: MemoryCloud, **filters: str) -> Any:
    """Return the names that the API lists, or its status and error."""
    reply = functions(cloud.ports)["clusters"].get_user_function()(
        func.HttpRequest("GET", "/api/clusters", body=b"", params=filters, headers=ADMIN)
    )
    if reply.status_code != 200:
        return reply.status_code, reply.get_body().decode()
    view = json.loads(reply.get_body())
    assert view["counts"]["matching"] == len(view["clusters"])
    return [cluster["name"] for cluster in view["clusters"]]


def test_clusters_are_listed_by_their_labels(cloud: MemoryCloud) -> None:
    assert names(cloud, label="team") == ["one", "two"]
    assert names(cloud, label="team=shop") == ["one"]
    assert names(cloud, label="team=shop,tier=gold") == ["one"]
    assert names(cloud, label="team=bank,tier") == []
    assert names(cloud, label="team=") == []


def test_clusters_are_listed_by_their_conditions(cloud: MemoryCloud) -> None:
    assert names(cloud, condition="Ready") == names(cloud, condition="Ready=True") == ["one", "two"]
    assert names(cloud, condition="Ready=False") == names(cloud, condition="Stalled") == ["three"]
    assert names(cloud, condition="Ready=False,ResourceGroupReady=True") == ["three"]
    assert names(cloud, condition="Nothing=True") == []
    assert names(cloud, condition="Ready=False", label="team=shop") == []
    for wrong in ("Ready=false", "=True", "Ready="):
        assert names(cloud, condition=wrong)[0] == 400


def test_clusters_are_listed_by_their_class(cloud: MemoryCloud) -> None:
    record = record_of(cloud, "one")
    cloud.state.save(replace(record, document={**record.document, "class": "standard"}))
    assert names(cloud, **{"class": "standard"}) == ["one"]
    assert names(cloud, **{"class": "other"}) == []


def test_clusters_are_listed_by_the_commit_that_they_have(cloud: MemoryCloud) -> None:
    first = cloud.state.fleet().commit
    assert names(cloud, commit=first) == ["one", "two"]
    files = fleet_files.fleet("three") | {
        "clusters/one/cluster.yaml": manifest("one", "{team: shop}", count=2),
        "clusters/two/cluster.yaml": manifest("two", "{team: bank}"),
    }
    cloud.azure.interventions.fail_next("three", "InvalidParameter", "no vCPUs are left")
    cloud.azure.interventions.stick_next("one")
    second = push(cloud, files)
    cloud.run(60, until=lambda: False)
    assert cloud.state.fleet().commit == second
    assert phases(cloud)["one"] is Phase.UPDATING
    assert names(cloud, commit=second) == ["two"], "a commit that changes nothing of it is one that it has"
    assert names(cloud, commit=first) == ["one", "two"]
    assert names(cloud, commit="c" * 40) == (
        404,
        f'{{"error": "the commit {"c" * 40} was not planned (give the full id)"}}\n',
    )


def test_a_list_without_such_filters_reads_no_details(cloud: MemoryCloud) -> None:
    asked, summaries = list[bool](), cloud.state.summaries

    def watched(*, details: bool = False) -> Any:
        asked.append(details)
        return summaries(details=details)

    around(cloud, "state", summaries=watched)
    fleet_view(cloud.ports)
    fleet_view(cloud.ports, selection=ClusterSelection(environment="dev"))
    assert asked == [False, False]


def test_a_cluster_shows_what_runs_where_and_how_far_its_job_is(cloud: MemoryCloud) -> None:
    one, three, _ = fleet_view(cloud.ports)["clusters"]
    commit = cloud.state.fleet().commit
    assert (one["kubernetesVersion"], one["runningVersion"][:5], one["nodes"]) == ("1.36", "1.36.", 1)
    assert one["fluxRevision"] == f"roadstead/pin/example/{commit}@sha1:{commit}"
    assert (one["labels"], one["clusterClass"]) == ({"team": "shop", "tier": "gold"}, "")
    assert (one["step"], one["stepNumber"], one["stepCount"]) == ("", 12, 12)
    assert (three["step"], three["stepNumber"], three["stepCount"]) == ("cluster", 2, 12)
    assert (three["runningVersion"], three["nodes"], three["fluxRevision"]) == ("", 0, "")
    assert three["jobStartedAt"] == three["createdAt"]


def test_the_nodes_are_those_of_all_pools_at_the_last_verification(cloud: MemoryCloud) -> None:
    apps = b"    - {name: apps, vmSize: Standard_D4s_v5, count: 4}\n"
    files = fleet_files.fleet("three") | {
        "clusters/one/cluster.yaml": manifest("one", "{team: shop}", count=3) + apps,
        "clusters/two/cluster.yaml": manifest("two", "{team: bank}"),
    }
    push(cloud, files)
    cloud.run()
    assert [
        cluster["nodes"] for cluster in fleet_view(cloud.ports)["clusters"] if cluster["name"] == "one"
    ] == [7]
