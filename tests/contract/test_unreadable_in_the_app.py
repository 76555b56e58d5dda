"""The app on records in Azurite that cannot be read: each stops nobody, and everybody says it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.app.health import Health, health_view
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.app.recovery.housekeeping import purge_expired
from shared.app.recovery.missed_work import plan_missed_head, resend_overdue
from shared.cluster.record_parts import Phase
from shared.ports.state.app import ACTS
from shared.ports.state.clusters import CLUSTERS, EVENTS, FLEETS
from shared.ports.state.plans import PLANS
from tests.support import fleet_files
from tests.support.damaged_records import Entity, without
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import cloud_with, push, record_of, status
from tests.support.sample import sample
from tests.support.unreadable_records import CUT_OFF, FORMS, Stored

pytestmark = pytest.mark.lives


def cloud_on(stored: Stored) -> MemoryCloud:
    """Return the app on tables in Azurite, and everything else in memory."""
    cloud = MemoryCloud(state=cast("MemoryState", stored.state))
    push(cloud, fleet_files.fleet("one", "three", "two"))
    cloud.run()
    assert {record.phase for record in cloud.state.clusters()} == {Phase.READY}
    return cloud


def ask(cloud: MemoryCloud, function: str, method: str = "GET", **route: str) -> tuple[int, Any]:
    headers = {**ADMIN, "Content-Type": "application/json"}
    request = func.HttpRequest(method, f"/api/{function}", body=b"{}", headers=headers, route_params=route)
    reply = functions(cloud.ports)[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


def in_health(cloud: MemoryCloud) -> Any:
    """Return the records that health names; a busy machine may take longer than one answer waits."""
    return health_view(Health(cloud.ports, answer_seconds=60).read()).body["unreadable"]


def larger(*names: str) -> dict[str, bytes]:
    """Return the fleet with another number of nodes in some clusters."""
    files = fleet_files.fleet("one", "three", "two")
    return files | {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=4) for name in names}


@pytest.mark.parametrize(("damage", "problem"), sample("unreadable records", FORMS, 2))
def test_one_unreadable_record_stops_nobody_and_everybody_says_it(
    stored: Stored, damage: Callable[[Entity], Entity], problem: str
) -> None:
    cloud = cloud_on(stored)
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", damage)
    http, fleet = ask(cloud, "clusters")
    assert (http, [cluster["name"] for cluster in fleet["clusters"]]) == (200, ["one", "two"])
    assert [(record["key"], problem in record["problem"]) for record in fleet["unreadable"]] == [
        ("three", True)
    ]
    http, recorded = ask(cloud, "recorded")
    assert (http, [record["key"] for record in recorded["unreadable"]]) == (200, ["three"])
    assert [(record["key"], record["table"]) for record in in_health(cloud)] == [("three", CLUSTERS)]
    http, detail = ask(cloud, "cluster", name="three")
    assert (http, problem in detail["error"]) == (503, True)

    accepted = len(cloud.azure.accepted)
    commit = push(cloud, larger("one", "three"))
    cloud.run()
    assert cloud.dead_letters == []
    assert cloud.state.fleet().commit == commit
    state, description = status(cloud, commit)
    assert (state, description.startswith("three: ")) == ("failure", True)
    changed = {write["resource"].rsplit("/", 1)[-1] for write in cloud.azure.accepted[accepted:]}
    assert "three" not in " ".join(changed)
    one = record_of(cloud, "one")
    assert (one.phase, one.observed_generation) == (Phase.READY, 2)
    assert ask(cloud, "sync", "POST")[1]["queued"] is False

    repair()
    assert ask(cloud, "sync", "POST")[1]["queued"] is True
    cloud.clock.advance(60)
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    three = record_of(cloud, "three")
    assert (three.phase, three.observed_generation) == (Phase.READY, 2)


def test_an_unreadable_cluster_that_git_no_longer_has_is_neither_deleted_nor_created_again(
    stored: Stored,
) -> None:
    cloud = cloud_on(stored)
    before = len(cloud.azure.accepted)
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", without("uid"))
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    assert status(cloud, commit)[0] == "failure"
    assert cloud.azure.accepted[before:] == []
    push(cloud, fleet_files.fleet("one", "three", "two"))
    cloud.run()
    assert cloud.azure.accepted[before:] == []
    repair()
    cloud.clock.advance(60)
    assert plan_missed_head(cloud.ports)
    cloud.run()
    assert {record.name: record.phase for record in cloud.state.clusters()} == dict.fromkeys(
        ("one", "three", "two"), Phase.READY
    )


def test_a_job_whose_record_cannot_be_read_waits_and_goes_on_by_itself(stored: Stored) -> None:
    cloud = cloud_on(stored)
    push(cloud, larger("one", "three"))
    while not cloud.state.continuations():
        assert cloud.step()
    repair = stored.tables.edit(CLUSTERS, stored.fleet, "three", without("uid"))
    for _ in range(200):
        if not cloud.step():
            cloud.clock.advance(5)
    assert cloud.dead_letters == []
    resend_overdue(cloud.ports)
    repair()
    cloud.run()
    three = record_of(cloud, "three")
    assert (three.phase, three.observed_generation) == (Phase.READY, 2)


def test_the_timers_go_on_without_a_record_that_cannot_be_read(stored: Stored) -> None:
    cloud = cloud_on(stored)
    stored.tables.edit(
        CLUSTERS, stored.fleet, "three", lambda record: {**without("uid")(record), "summary": "{"}
    )
    events = len(stored.tables.keys(EVENTS, f"{stored.fleet}|three"))
    for timer in ("sweep", "check", "resend_overdue"):
        functions(cloud.ports)[timer].get_user_function()(func.timer.TimerRequest())
    cloud.clock.advance(86400 * 60)
    purge_expired(cloud.ports)
    cloud.run()
    assert cloud.dead_letters == []
    assert len(stored.tables.keys(EVENTS, f"{stored.fleet}|three")) == events
    assert not [orphan for listing in cloud.state.sweep().listings for orphan in listing.orphans]


def test_the_record_of_the_fleet_that_cannot_be_read_is_said_on_the_commit(stored: Stored) -> None:
    cloud = cloud_on(stored)
    repair = stored.tables.edit(FLEETS, "fleet", stored.fleet, without("commit"))
    repair_again = stored.tables.edit(FLEETS, "fleet", stored.fleet, CUT_OFF)
    http, body = ask(cloud, "clusters")
    assert (http, "roadsteadfleets" in body["error"]) == (503, True)
    commit = push(cloud, larger("one"))
    for _ in range(300):
        if not cloud.step():
            cloud.clock.advance(10)
    assert cloud.dead_letters == []
    state, description = status(cloud, commit)
    assert (state, "roadsteadfleets" in description or "Unreadable" in description) == ("error", True)
    del repair_again
    repair()
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_plan_that_cannot_be_read_is_made_again(stored: Stored) -> None:
    cloud = cloud_on(stored)
    commit = cloud.state.fleet().commit
    stored.tables.edit(PLANS, stored.fleet, commit, CUT_OFF)
    assert ask(cloud, "clusters")[0] == 200
    assert ask(cloud, "sync", "POST")[1]["queued"] is True
    cloud.run()
    assert cloud.state.plan(commit) is not None
    assert in_health(cloud) == []


def test_the_audit_has_the_acts_that_can_be_read(stored: Stored) -> None:
    cloud = cloud_on(stored)
    for _ in range(2):
        cloud.clock.advance(1)
        ask(cloud, "sync", "POST")
    stored.tables.edit(ACTS, stored.fleet, stored.tables.keys(ACTS, stored.fleet)[0], CUT_OFF)
    http, audit = ask(cloud, "audit")
    assert (http, len(audit["acts"])) == (200, 1)
    assert [record["kind"] for record in in_health(cloud)] == ["act"]


def test_a_fleet_of_unreadable_records_alone_creates_nothing() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    text_before, before = cloud.state.damage("one", "["), len(cloud.azure.accepted)
    commit = push(cloud, larger("one"))
    cloud.run()
    assert cloud.azure.accepted[before:] != []  # of the two others, which are new
    assert not [
        write for write in cloud.azure.accepted[before:] if "one" in write["resource"].rsplit("/", 1)[-1]
    ]
    assert status(cloud, commit)[0] == "failure"
    assert cloud.state.fleet().expects.unreadable == ("one",)
    cloud.state.damage("one", text_before)
    cloud.clock.advance(60)
    assert plan_missed_head(cloud.ports)
    cloud.run()
    assert cloud.state.fleet().expects.unreadable == ()
    assert status(cloud, commit)[0] == "success"


def test_the_dead_letter_of_a_job_whose_record_cannot_be_read_does_not_come_back() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    while not cloud.state.clusters():
        assert cloud.step()
    cloud.state.damage("one", "[")
    body = b'{"kind": "job", "cluster": "one", "uid": "u", "generation": 1, "sequence": 1}'
    received = ReceivedDeadLetter("jobs", "m1", cloud.clock(), body, body.decode())
    handle_dead_letter(received, cloud.ports)
    assert [letter.id for letter in cloud.state.dead_letters(5)] == ["m1"]


def test_a_rollout_that_cannot_be_read_starts_nothing_more_and_goes_on_once_it_can(stored: Stored) -> None:
    cloud = cloud_on(stored)
    commit = push(cloud, larger("one", "three", "two"))
    while cloud.state.fleet().rollout != commit or not cloud.state.continuations():
        assert cloud.step()
    repair = stored.tables.edit(FLEETS, f"rollouts|{stored.fleet}", commit, CUT_OFF)
    for _ in range(300):
        if not cloud.step():
            cloud.clock.advance(10)
    assert cloud.dead_letters == []
    assert [record["kind"] for record in in_health(cloud)] == ["rollout"]
    assert ask(cloud, "clusters")[0] == 200
    assert status(cloud, commit)[0] == "failure"
    assert "roadsteadfleets" in status(cloud, commit)[1]
    assert sorted(record.generation for record in cloud.state.clusters()) == [1, 1, 2]
    repair()
    resend_overdue(cloud.ports)
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    assert {record.observed_generation for record in cloud.state.clusters()} == {2}
