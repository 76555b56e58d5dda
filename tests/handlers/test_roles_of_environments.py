"""A role in one environment: its holder acts on what is there, and on nothing else."""

from __future__ import annotations

import base64
import json
from typing import Any

import azure.functions as func
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.act_route import ActRoute
from handlers.acts import ACTS
from handlers.sign_in import SignIn
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.access import (
    LIMITED,
    MAX_ROLE,
    Principal,
    Role,
    decide,
    limited_roles,
    may_somewhere,
)
from tests.support import fleet_files
from tests.support.function_calls import started
from tests.support.pipeline_runs import cloud_with, push

pytestmark = pytest.mark.lives

WHERE = {"one": "development", "two": "production", "three": ""}
"""The clusters of the fleet, each with its environment."""


def fleet() -> dict[str, bytes]:
    names = {name: f"  environment: {where}\n" if where else "" for name, where in WHERE.items()}
    manifests = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=line) for name, line in names.items()
    }
    return fleet_files.fleet(budget=9) | manifests


THREE = {"clusters/three/cluster.yaml": fleet()["clusters/three/cluster.yaml"]}


@pytest.fixture(scope="module")
def cloud() -> MemoryCloud:
    made = MemoryCloud()
    push(made, fleet())
    made.run(until=lambda: len(made.state.clusters()) == len(WHERE))
    return made


def ask(
    cloud: MemoryCloud, function: str, body: dict[str, Any], *roles: str, **route: str
) -> tuple[int, str]:
    """Call a function as a person with app roles of Entra; return the status and the error."""
    claims = [{"typ": "oid", "val": "7"}, {"typ": "preferred_username", "val": "ada@example.com"}]
    claims += [{"typ": "roles", "val": role} for role in roles]
    principal = base64.b64encode(json.dumps({"auth_typ": "aad", "claims": claims}).encode()).decode()
    request = func.HttpRequest(
        "POST",
        "/api",
        body=json.dumps(body).encode(),
        headers={"X-MS-CLIENT-PRINCIPAL": principal, "Content-Type": "application/json"},
        route_params=route,
        params={},
    )
    sign_in = SignIn("entra", platform_verifies=True)
    app = started(cloud.ports, sign_in)
    reply = app[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body()).get("error", "")


@pytest.mark.parametrize("role", ["Operator", "Admin"])
@pytest.mark.parametrize(
    ("name", "allowed"), [("one", True), ("two", False), ("three", False), ("no", False)]
)
def test_an_operator_of_development_acts_on_its_clusters_alone(
    cloud: MemoryCloud, role: str, name: str, allowed: bool
) -> None:
    for function, body in (("replay", {}), ("accept", {"fields": {"tags.a": "x"}})):
        status, error = ask(cloud, function, body, f"{role}.development", name=name)
        assert (status != 403) == allowed, (function, status, error)


def test_an_approver_of_development_is_none_of_production(cloud: MemoryCloud) -> None:
    body = {"correction": "a"}
    assert ask(cloud, "approve_correction", body, "Approver.development", name="one")[0] != 403
    status, error = ask(cloud, "approve_correction", body, "Approver.development", name="two")
    assert status == 403
    assert error == (
        "this needs the role Approver, or Approver.production; ada@example.com has Approver.development"
    )


def test_what_several_clusters_need_is_the_role_in_each_of_their_environments(cloud: MemoryCloud) -> None:
    both = ("Operator.development", "Operator.production")
    one_and_two = {"clusters": ["one", "two"]}
    assert ask(cloud, "refresh", {"clusters": ["one"]}, "Operator.development")[0] != 403
    status, error = ask(cloud, "refresh", one_and_two, "Operator.development")
    assert (status, "or Operator.development and Operator.production;" in error) == (403, True)
    assert ask(cloud, "refresh", one_and_two, *both)[0] != 403
    assert ask(cloud, "refresh", {"all": True}, *both)[0] == 403
    assert ask(cloud, "refresh", {"clusters": ["one", "three"]}, *both)[0] == 403


@pytest.mark.parametrize(
    "function", ["sync", "pause", "resume", "examine", "takeover_repository", "dismiss", "replay_letters"]
)
def test_what_concerns_the_fleet_needs_the_role_of_the_fleet(cloud: MemoryCloud, function: str) -> None:
    status, error = ask(cloud, function, {}, "Admin.development", "Admin.production")
    assert (status, error.startswith("this needs the role ")) == (403, True)


def test_an_approval_of_deletes_needs_the_role_where_the_clusters_are() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet())
    cloud.run(until=lambda: len(cloud.state.clusters()) == len(WHERE))
    commit = "0" * 40
    body = {"clusters": ["one", "two"]}
    assert ask(cloud, "approve", body, "Approver.development", commit=commit)[0] == 403
    assert ask(cloud, "approve", body, "Approver.development", "Approver.production", commit=commit)[0] == 404
    assert ask(cloud, "approve", {"clusters": []}, "Approver.development", commit=commit)[0] == 403


def test_an_act_on_a_rollout_needs_the_role_where_its_clusters_are() -> None:
    cloud = cloud_with(fleet())
    changed = {path: text.replace(b"count: 1", b"count: 2") for path, text in fleet().items()}
    commit = push(cloud, {path: text for path, text in changed.items() if "three" not in path} | THREE)
    cloud.run(until=lambda: cloud.state.rollout(commit) is not None)
    both = ("Operator.development", "Operator.production")
    assert ask(cloud, "rollout_pause", {}, "Operator.development", commit=commit)[0] == 403
    assert ask(cloud, "rollout_pause", {}, *both, commit=commit)[0] == 202
    for name, allowed in (("one", True), ("two", False)):
        status, error = ask(cloud, "rollout_skip", {"cluster": name}, "Approver.development", commit=commit)
        assert (status != 403) == allowed, error
    for stage, allowed in (("development", True), ("production", False)):
        body = {"stage": stage}
        status, error = ask(cloud, "rollout_approve", body, "Approver.development", commit=commit)
        assert (status != 403) == allowed, error
    assert ask(cloud, "rollout_abort", {}, *both, commit="0" * 40)[0] == 403


def test_a_promotion_needs_the_role_of_its_target(cloud: MemoryCloud) -> None:
    body = {"from": "development", "to": "production", "what": []}
    assert ask(cloud, "promote", body, "Operator.development")[0] == 403
    assert ask(cloud, "promote", body, "Operator.production")[0] != 403


def test_a_replay_that_overrides_a_freeze_needs_an_approver_of_the_same_environment(
    cloud: MemoryCloud,
) -> None:
    body = {"override": True, "reason": "an outage"}
    roles = ("Operator.development", "Approver.production")
    assert ask(cloud, "replay", body, *roles, name="one")[0] == 403
    assert ask(cloud, "replay", body, *roles, "Approver.development", name="one")[0] != 403


def test_somebody_with_a_role_in_an_environment_reads_everything(cloud: MemoryCloud) -> None:
    assert ask(cloud, "clusters", {}, "Approver.development")[0] == 200
    assert ask(cloud, "clusters", {}, "Reader.development")[0] == 403


def test_an_act_without_an_environment_is_one_of_the_fleet() -> None:
    of_fleet = {entry.name for entry in ACTS if entry.concerns is None}
    assert of_fleet == {
        *(
            "takeover_repository",
            "sync",
            "examine",
            "pause",
            "resume",
            "dismiss",
            "replay_letters",
            "notify_test",
        ),
        *("import", "importable", "request"),
    }
    assert all(isinstance(entry, ActRoute) for entry in ACTS)


@pytest.mark.parametrize(
    "value", ["Reader.production", "Approver.", ".production", "approver.production", "Approver", "Owner.x"]
)
def test_a_value_of_another_form_is_no_role(value: str) -> None:
    assert limited_roles([value]) == frozenset()


def test_a_value_that_entra_does_not_have_is_no_role() -> None:
    assert limited_roles(["Admin." + "x" * MAX_ROLE]) == frozenset()


ENVIRONMENTS = st.sampled_from(["development", "production", "a.b", "", "x"])


@given(
    st.frozensets(st.tuples(st.sampled_from(LIMITED), ENVIRONMENTS.filter(bool))),
    st.sampled_from(list(Role)),
    st.frozensets(ENVIRONMENTS),
)
def test_a_limited_role_never_decides_beyond_its_environments(
    limited: frozenset[tuple[Role, str]], required: Role, environments: frozenset[str]
) -> None:
    values = [f"{role}.{where}" for role, where in limited]
    assert limited_roles(values) == limited
    somebody = Principal("7", "ada", frozenset(), limited=limited)
    allowed = decide(somebody, required, environments=environments) is None
    if required is Role.READER:
        assert allowed == bool(limited)
    elif allowed:
        assert environments
        assert all({where for _, where in limited} >= {name} for name in environments)
        assert may_somewhere(somebody, required)
    else:
        assert not environments or any(
            (required, name) not in limited and (Role.ADMIN, name) not in limited for name in environments
        )
