"""Clusters come in pages, so no response grows with the fleet; blocked deletes show how to approve them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import cloud_with, push, record_of

pytestmark = pytest.mark.lives

BAD_SELECTIONS = [{"phase": "failed"}, {"phase": "Ready,Gone"}, {"sort": "age"}]
NAMES = ["five", "four", "one", "three", "two"]


def call(cloud: MemoryCloud, function: str, route: dict[str, str] | None = None, **params: str) -> Any:
    request = func.HttpRequest(
        "GET", "/api", body=b"", route_params=route or {}, params=params, headers=ADMIN
    )
    reply = functions(cloud.ports)[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(fleet_files.fleet(*NAMES))


@pytest.mark.parametrize(
    ("function", "names", "key"),
    [("clusters", "clusters", "name"), ("recorded", "clusters", "name"), ("plan", "items", "cluster")],
)
def test_all_pages_together_have_every_cluster_once(
    cloud: MemoryCloud, function: str, names: str, key: str
) -> None:
    route, listed, after = {"commit": cloud.state.fleet().commit}, list[str](), ""
    for _ in range(3):
        status, body = call(cloud, function, route, limit="2", after=after)
        assert (status, len(body[names]) <= 2) == (200, True)
        listed += [document[key] for document in body[names]]
        after = body["next"]
    assert listed == NAMES
    assert after is None


def test_the_size_of_a_page_is_limited(cloud: MemoryCloud) -> None:
    route, refused = {"commit": cloud.state.fleet().commit}, (400, {"error": "limit must be 1 to 500"})
    for function in ("clusters", "recorded", "plan", "drift"):
        for limit in ("0", "501", "-1", "x", "1e3"):
            assert call(cloud, function, route, limit=limit) == refused, (function, limit)


def test_every_view_shows_what_needs_approval_and_how_to_approve_it(cloud: MemoryCloud) -> None:
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    blocked = ["five", "four", "three"]
    _, plan = call(cloud, "plan", {"commit": commit})
    assert (plan["needsApproval"], plan["needsApprovalCount"]) == (blocked, 3)
    assert plan["howToApprove"].startswith(
        f"roadstead approve {commit[:8]}, or POST api/plans/{commit}/approve"
    )
    _, plans = call(cloud, "plans")
    assert [plan["needsApprovalCount"] for plan in plans["plans"]] == [3, 0]
    _, fleet = call(cloud, "clusters")
    assert [cluster["name"] for cluster in fleet["clusters"] if cluster["plan"]["needsApproval"]] == blocked
    _, one = call(cloud, "cluster", {"name": "four"})
    assert one["plan"]["reason"].startswith("the commit removes 3 clusters, guards.deleteBudget")
    _, recorded = call(cloud, "recorded")
    assert [cluster["name"] for cluster in recorded["clusters"] if cluster["needsApproval"]] == blocked


def test_an_approval_is_shown_while_it_is_carried_out(cloud: MemoryCloud) -> None:
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    approve(commit, ["five", "four", "three"], "ada", cloud.ports)
    cloud.run(until=lambda: any(record.deleting for record in cloud.state.clusters()))
    _, recorded = call(cloud, "recorded")
    given = {cluster["name"] for cluster in recorded["clusters"] if cluster["approved"]}
    assert given
    assert given <= {"five", "four", "three"}
    assert (recorded["approval"]["by"], recorded["approval"]["clusterCount"]) == ("ada", 3)
    cloud.run()
    _, plan = call(cloud, "plan", {"commit": commit})
    assert (plan["howToApprove"], plan["needsApprovalCount"], plan["approval"]["by"]) == ("", 0, "ada")


def test_clusters_are_filtered_sorted_and_counted(cloud: MemoryCloud) -> None:
    broken = record_of(cloud, "three")
    cloud.state.save(replace(broken, phase=Phase.FAILED))

    def names(**params: str) -> list[str]:
        status, body = call(cloud, "clusters", None, **params)
        assert status == 200
        assert (body["counts"]["total"], body["counts"]["phases"]) == (5, {"Failed": 1, "Ready": 4})
        assert body["counts"]["matching"] == len(body["clusters"]) or body["next"]
        return [cluster["name"] for cluster in body["clusters"]]

    assert names(phase="Failed,Stalled") == ["three"]
    assert names(prefix="f") == ["five", "four"]
    assert names(sort="phase", limit="2") == ["three", "five"]
    _, body = call(cloud, "clusters", sort="phase", limit="2")
    assert names(sort="phase", limit="2", after=body["next"]) == ["four", "one"]
    assert names(sort="-name") == ["two", "three", "one", "four", "five"]
    assert names(location="eastus", environment="nowhere") == []
    assert names(phase="Ready", prefix="t") == ["two"]


def test_an_unknown_phase_or_order_is_refused_with_the_known_ones(cloud: MemoryCloud) -> None:
    for wrong in BAD_SELECTIONS:
        status, body = call(cloud, "clusters", None, **wrong)
        assert status == 400, wrong
        assert "Failed" in body["error"], wrong
        assert "sort name, phase, environment" in body["error"], wrong


def test_the_history_of_an_unknown_name_is_no_empty_page(cloud: MemoryCloud) -> None:
    before = "2020-01-01T00:00:00Z"
    assert call(cloud, "events", {"name": "misspelt"})[0] == 404
    assert call(cloud, "events", {"name": "misspelt"}, before=before)[0] == 404
    assert call(cloud, "events", {"name": "one"}, before=before)[1]["events"] == []


def test_a_cluster_that_is_not_created_has_a_history_without_events(cloud: MemoryCloud) -> None:
    invalid = {"clusters/six/cluster.yaml": fleet_files.cluster("six", extra="  colour: red\n")}
    push(cloud, fleet_files.fleet(*NAMES) | invalid)
    cloud.run()
    assert call(cloud, "cluster", {"name": "six"})[1]["phase"] == "NotCreated"
    status, body = call(cloud, "events", {"name": "six"})
    assert (status, body["events"]) == (200, [])
