"""``POST /api/refresh``: who is compared with Azure, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.one_cluster import ONE, ready, record
from tests.support.pipeline_runs import failed, push
from tests.support.sweeps import delete_by_hand


def ask(cloud: MemoryCloud, body: object) -> tuple[int, Any]:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**ADMIN, "Content-Type": "application/json"}
    request = func.HttpRequest("POST", "/api/refresh", body=sent, headers=headers)
    reply = functions(cloud.ports)["refresh"].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


def test_a_refresh_of_one_cluster_reads_that_cluster_and_is_audited() -> None:
    cloud = ready()
    delete_by_hand(cloud, ONE)
    status, receipt = ask(cloud, {"clusters": ["one"], "reason": "I deleted it"})
    assert (status, receipt["clusters"], receipt["all"]) == (202, ["one"], False)
    cloud.run()
    assert record(cloud).finding == "ClusterMissing"
    (act,) = [act for act in cloud.state.acts(5) if act.action == "refresh"]
    assert (act.target, act.clusters, act.reason, act.result) == ("one", ("one",), "I deleted it", "accepted")
    assert cloud.state.sweep().started is None


def test_a_refresh_of_all_is_a_sweep() -> None:
    cloud = ready()
    assert ask(cloud, {"all": True})[0] == 202
    cloud.run()
    assert cloud.state.sweep().finished is not None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"all": False},
        {"all": 1},
        {"clusters": []},
        {"clusters": "one"},
        {"clusters": [1]},
        {"clusters": ["x"] * 101},
        b"{",
        [],
    ],
)
def test_a_refresh_of_nothing_says_what_a_body_has(body: object) -> None:
    status, answer = ask(MemoryCloud(), body)
    assert status == 400
    assert answer["error"].startswith(("give clusters, or all", "clusters", "all: "))


def test_a_cluster_whose_job_runs_is_left_to_the_job() -> None:
    cloud = MemoryCloud()
    cloud.azure.interventions.stick_next("one")
    push(cloud, fleet_files.fleet("one"))
    cloud.run(seconds=60)
    status, reply = ask(cloud, {"clusters": ["one"]})
    assert status == 409
    assert reply["error"].startswith("one is not refreshed, because its job reads Azure itself: it waits in")


def test_an_unknown_cluster_and_one_whose_job_failed_are_refused() -> None:
    cloud, _ = failed()
    assert ask(cloud, {"clusters": ["nope"]}) == (
        404,
        {"error": "there is no cluster nope in the fleet example"},
    )
    status, reply = ask(cloud, {"clusters": ["two", "one"]})
    assert status == 409
    assert reply["error"].startswith("one is not refreshed: it failed in the step cluster")
    assert reply["error"].endswith("; `roadstead replay one` starts its job again")
    assert not cloud.broker.peek("plans")
