"""Every act of a caller is a record: who, when, what, from where, why, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import azure.functions as func
import pytest

from handlers.act_route import ActRoute
from handlers.acts import ACTS as ROUTES
from handlers.routes import who_may_call
from localcloud.functions.host_config import read_settings
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.runtime.options import EXAMPLE
from shared.app.api.access import Role
from shared.app.api.acts import WITHOUT_REASON
from shared.app.recovery.housekeeping import record_changed_settings
from shared.cluster.failures.errors import Unavailable
from shared.cluster.history import Act
from shared.configuration.load_settings import load_settings
from shared.ports import FleetConfig
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, call, functions
from tests.support.pipeline_runs import cloud_with, failed, push, ready
from tests.support.replaced_ports import around

VALUES = read_settings(EXAMPLE)
FROM = {"X-Forwarded-For": "6.6.6.6, 10.1.2.3:5555", "User-Agent": "curl/8", "x-roadstead-actor": "mallory"}


def act(cloud: MemoryCloud, function: str, body: dict[str, Any], **route: str) -> int:
    """Call a function as the command does; return the status."""
    method = "GET" if function == "import" else "POST"
    request = func.HttpRequest(
        method,
        "/api",
        body=json.dumps(body).encode(),
        headers={**ADMIN, **FROM, "Content-Type": "application/json"},
        route_params=route,
        params={key: value for key, value in body.items() if isinstance(value, str)},
    )
    status: int = functions(cloud.ports)[function].get_user_function()(request).status_code
    return status


def test_a_replay_is_recorded_with_the_verified_identity_and_shown_everywhere() -> None:
    cloud, _ = failed()
    assert act(cloud, "replay", {"reason": "the quota\nwas raised"}, name="one") == 202
    _, audit = call(cloud.ports, "audit")
    (record,) = audit["acts"]
    assert {**record, "id": "", "at": ""} == {
        "id": "",
        "at": "",
        "action": "replay",
        "target": "one",
        "clusters": ["one"],
        "by": "the key of Admin",
        "byId": "key:Admin",
        "address": "10.1.2.3",
        "client": "curl/8",
        "reason": "the quota\N{REPLACEMENT CHARACTER}was raised",
        "result": "accepted",
    }
    assert call(cloud.ports, "why", name="one")[1]["acts"] == [record]
    events = call(cloud.ports, "events", name="one")[1]["events"]
    replayed = next(event for event in events if event["reason"] == "Replayed")
    assert replayed["message"] == f"replayed by the key of Admin: {record['reason']}"


def test_an_approval_names_who_and_why_in_the_plan_and_in_the_events_of_the_clusters() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two", "three"))
    commit = push(cloud, fleet_files.fleet("three"))
    cloud.run()
    assert act(cloud, "approve", {"clusters": ["one", "two"], "reason": "retired"}, commit=commit) == 202
    cloud.run()
    approval = call(cloud.ports, "plan", commit=commit)[1]["approval"]
    assert (approval["by"], approval["reason"]) == ("the key of Admin", "retired")
    messages = [event.message for event in cloud.state.events("one", 100)]
    assert f"the cluster's removal in commit {commit[:8]}, approved by the key of Admin: retired" in messages
    assert cloud.state.acts(1)[0].clusters == ("one", "two")


@pytest.mark.parametrize(
    ("function", "body", "route"),
    [
        ("replay", {}, {"name": "nope"}),
        ("takeover", {}, {"name": "nope"}),
        ("approve", {"clusters": ["one"]}, {"commit": "0" * 40}),
        ("import", {"resource": "nonsense"}, {}),
    ],
)
def test_a_refused_act_is_recorded_with_its_refusal(
    function: str, body: dict[str, Any], route: dict[str, str]
) -> None:
    cloud = MemoryCloud()
    assert act(cloud, function, body, **route) in (400, 404)
    (record,) = cloud.state.acts(5)
    assert (record.action, record.result[:9]) == (function, "refused: ")


BODIES: Mapping[str, Mapping[str, Any]] = {
    "approve": {"clusters": ["one"]},
    "approve_correction": {"correction": "a"},
    "accept": {"fields": {"tags.a": "x"}},
    "try": {"pull": 7},
    "request": {"name": "two", "class": "small", "lifetime": "8h"},
    "extend": {"for": "24h"},
    "end_try": {"pull": 7},
    "refresh": {"all": True},
    "read_readiness": {"all": True},
    "postpone": {"until": "2099-01-01T00:00:00Z"},
    "dismiss": {"deadLetters": []},
    "replay_letters": {"deadLetters": []},
    "suspend": {"clusters": ["one"], "for": "4h"},
    "notify_test": {"route": "a"},
    "promote": {"from": "a", "to": "b"},
    "rollout_approve": {"stage": "a"},
    "rollout_skip": {"cluster": "one"},
}
"""What a request of each act needs, so that its form is right."""
ACTS = sorted(
    name
    for name, function in functions(MemoryCloud().ports).items()
    if who_may_call(function.get_user_function()) in (Role.OPERATOR, Role.APPROVER, Role.ADMIN)
)


@pytest.mark.parametrize("function", ACTS)
def test_whatever_a_reader_may_not_do_is_recorded_before_it_happens(function: str) -> None:
    cloud, before = ready("one"), list[str]()
    save = cloud.ports.state.save_act

    def noted(act: Act) -> None:
        before.append(act.result)
        save(act)

    around(cloud, "state", save_act=noted)
    request = func.HttpRequest(
        "POST",
        "/api",
        body=json.dumps({"reason": "why", **BODIES.get(function, {})}).encode(),
        headers={**ADMIN, **FROM, "Content-Type": "application/json"},
        route_params={"name": "one", "pool": "system", "commit": cloud.state.fleet().commit},
        params={"clusters": "one", "resource": "a"},
    )
    functions(cloud.ports)[function].get_user_function()(request)
    (record,) = cloud.state.acts(5)
    assert (record.by, record.address, record.client) == ("the key of Admin", "10.1.2.3", "curl/8")
    assert (before[0], record.result != "") == ("", True)


@pytest.mark.lives
@pytest.mark.parametrize(
    "entry", [entry for entry in ROUTES if entry.needs_reason], ids=lambda entry: entry.name
)
def test_an_act_that_needs_a_reason_is_refused_without_one_before_anything_is_recorded(
    entry: ActRoute,
) -> None:
    cloud = ready("one")
    request = func.HttpRequest(
        "POST",
        "/api",
        body=json.dumps({**BODIES.get(entry.name, {}), "reason": " "}).encode(),
        headers={**ADMIN, "Content-Type": "application/json"},
        route_params={"name": "one", "commit": cloud.state.fleet().commit},
    )
    answer = functions(cloud.ports)[entry.name].get_user_function()(request)
    assert (answer.status_code, json.loads(answer.get_body())["error"]) == (400, WITHOUT_REASON)
    assert list(cloud.state.acts(5)) == []


def test_a_dismissal_is_recorded() -> None:
    cloud = MemoryCloud()
    assert act(cloud, "dismiss", {"deadLetters": [{"queue": "jobs", "id": "1:x"}]}) == 200
    assert [(record.action, record.target) for record in cloud.state.acts(5)] == [("dismiss", "jobs/1:x")]


def test_nothing_happens_without_its_record() -> None:
    cloud, _ = failed()

    def broken(_: object) -> None:
        raise Unavailable("Table Storage did not answer")

    before = cloud.state.cluster("one")
    around(cloud, "state", save_act=broken)
    assert act(cloud, "replay", {}, name="one") == 503
    assert cloud.state.cluster("one") == before


def test_reading_is_no_act() -> None:
    cloud = MemoryCloud()
    for function in ("clusters", "plans", "recorded", "dead_letters", "audit"):
        assert call(cloud.ports, function)[0] == 200
    assert list(cloud.state.acts(5)) == []


def config(**changes: str) -> FleetConfig:
    return load_settings(VALUES | changes).fleet_config


def test_settings_that_were_seen_to_change_are_an_act_without_a_secret() -> None:
    cloud = MemoryCloud()
    for changes in ({}, {}, {"POLL_SECONDS": "7", "GITHUB_TOKEN": "another-token"}):
        ports = replace(cloud.ports, config=config(**changes))
        record_changed_settings(ports)
    (record,) = cloud.state.acts(5)
    assert "POLL_SECONDS: 1.0 -> 7.0" in record.target
    assert "GITHUB_TOKEN: secret " in record.target
    stored = f"{record} {cloud.state.settings_seen()}"
    assert not [name for name, value in VALUES.items() if "API_KEY_" in name and value in stored]
    assert "another-token" not in stored
    assert VALUES["GITHUB_TOKEN"] not in stored


def test_all_pages_together_have_every_act_once_also_those_of_one_second() -> None:
    cloud = MemoryCloud()
    began, saved = cloud.clock().replace(microsecond=0), []
    for number, milliseconds in enumerate((0, 100, 500, 500, 500, 900, 1000)):
        at = began + timedelta(milliseconds=milliseconds, microseconds=number)
        saved.append(Act(str(number), at, "refresh", "all", "ann"))
        cloud.state.save_act(saved[-1])
    listed, before = list[str](), ""
    while before is not None:
        _, page = call(cloud.ports, "audit", query={"limit": "2", "before": before})
        listed += [document["id"] for document in page["acts"]]
        before = page["next"]
    assert sorted(listed) == [act.id for act in saved]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin", "none", ""])
@pytest.mark.parametrize("function", ["import", "importable", "live"])
def test_a_page_of_another_site_has_no_act_done_in_the_name_of_who_opens_it(function: str, site: str) -> None:
    """A browser sends the session with an image of another site, and says so: W3C, Fetch Metadata."""
    cloud = MemoryCloud()
    request = func.HttpRequest(
        "GET",
        "/api",
        body=b"",
        headers={**ADMIN, **({"Sec-Fetch-Site": site} if site else {})},
        params={"resource": "x", "clusters": "one"},
    )
    reply = functions(cloud.ports)[function].get_user_function()(request)
    foreign = site in ("cross-site", "same-site")
    assert (reply.status_code == 403) == foreign
    assert len(cloud.state.acts(5)) == (0 if foreign else 1)


@pytest.mark.parametrize("state_fails", [False, True])
def test_an_act_that_a_failed_service_ended_says_so(*, state_fails: bool) -> None:
    cloud = MemoryCloud()
    save, saved = cloud.ports.state.save_act, list[Act]()

    def save_act(one: Act) -> None:
        saved.append(one)
        if state_fails and len(saved) > 1:
            raise Unavailable("Table Storage did not answer")
        save(one)

    def read_head(_: str) -> None:
        raise Unavailable("GitHub did not answer")

    around(cloud, "git_host", read_head=read_head)
    around(cloud, "state", save_act=save_act)
    assert act(cloud, "sync", {}) == 503
    (record,) = cloud.state.acts(5)
    assert record.result == ("" if state_fails else "failed: Unavailable: GitHub did not answer")
