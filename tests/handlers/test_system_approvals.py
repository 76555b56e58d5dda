"""Approvals of an external system: signed, for one fleet, commit and stage, and the same one again is one."""

from __future__ import annotations

from datetime import timedelta

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.function_calls import ADMIN, functions
from tests.support.pipeline_runs import push
from tests.support.signed_approvals import signed, statement
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

STAGES = """\
  rollout:
    stages:
      - {{name: first, select: {{environments: [development]}}, groups: [{{maxConcurrency: "100%"}}]}}
      - {{name: second, approval: true, {asks}, groups: [{{maxConcurrency: "100%"}}]}}
"""


def waiting(asks: str = "approvalSystem: CHANGES") -> tuple[MemoryCloud, str]:
    """Return a fleet whose second stage waits for an approval, and the commit."""
    rollout = STAGES.format(asks=asks)
    cloud = ready_fleet(rollout)
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV}
    return cloud, commit


def send(cloud: MemoryCloud, body: bytes, headers: dict[str, str], system: str = "CHANGES") -> int:
    """Send a statement, let the app work, and return the status of its answer."""
    request = func.HttpRequest(
        "POST", "/api/approvals", body=body, route_params={"system": system}, headers=headers
    )
    reply = functions(cloud.ports)["system_approval"].get_user_function()(request)
    cloud.run(seconds=300)
    return int(reply.status_code)


def test_a_system_approves_a_stage_and_its_approval_is_recorded_and_audited_once() -> None:
    cloud, commit = waiting()
    body = statement(commit)
    headers = signed(cloud, body)
    assert send(cloud, body, {**headers, "X-Forwarded-For": "6.6.6.6, 10.1.2.3:5555"}) == 202
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert send(cloud, body, headers) == 202, "its sender had no answer, and sends it again"
    (approval,) = rollout_of(cloud, commit).people.approved
    assert (approval.by, approval.reason) == ("CHANGES (webhook)", "ann: CHG-1")
    acts = cloud.state.acts(5)
    assert [act.address for act in acts] == ["", "10.1.2.3"]
    assert {(act.action, act.by_id, act.result) for act in acts} == {
        ("rollout-approve", "webhook:CHANGES", "accepted")
    }


def test_a_system_and_a_person_are_two_approvers() -> None:
    cloud, commit = waiting("approvers: 2, approvalSystem: CHANGES")
    body = statement(commit)
    assert send(cloud, body, signed(cloud, body)) == 202
    assert changed(cloud, "one") == {*DEV}
    assert rollout_of(cloud, commit).missing_approvals(1, cloud.clock()) == 1


def test_an_approval_with_a_key_is_stored_as_that_of_no_person() -> None:
    cloud, commit = waiting("approvers: 2")
    headers = {**ADMIN, "Content-Type": "application/json"}
    body, route = b'{"stage": "second"}', {"commit": commit}
    request = func.HttpRequest("POST", "/api/rollouts", body=body, route_params=route, headers=headers)
    reply = functions(cloud.ports)["rollout_approve"].get_user_function()(request)
    cloud.run(seconds=300)
    (approval,) = rollout_of(cloud, commit).people.approved
    assert (reply.status_code, approval.by, approval.person) == (202, "the key of Admin", False)


def test_what_is_not_signed_with_the_key_of_its_system_is_refused_and_leaves_no_trace() -> None:
    cloud, commit = waiting()
    body = statement(commit)
    good = signed(cloud, body)
    other = "whsec_" + "b3RoZXIga2V5IG9mIHRoZSBvdGhlciBzeXN0ZW0="
    wrong: list[dict[str, str]] = [
        {},
        {**good, "Webhook-Signature": ""},
        {**good, "Webhook-Signature": good["Webhook-Signature"].replace("v1,", "v1a,")},
        {**good, "Webhook-Id": "msg_2"},
        {**good, "Webhook-Timestamp": str(int(good["Webhook-Timestamp"]) + 1)},
        {**good, "Webhook-Timestamp": "now"},
        signed(cloud, body, key=other),
    ]
    assert [send(cloud, body, headers) for headers in wrong] == [401] * len(wrong)
    assert send(cloud, body.replace(b"CHG-1", b"CHG-2"), good) == 401
    assert send(cloud, body, signed(cloud, body), system="OTHER") == 401
    assert (changed(cloud, "one"), cloud.state.acts(5)) == ({*DEV}, [])


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"fleet": "another"}, 403),
        ({"stage": "first"}, 403),
        ({"commit": "0" * 40}, 404),
        ({"commit": "main"}, 400),
        ({"more": "fields"}, 400),
    ],
)
def test_a_statement_about_anything_else_approves_nothing(changes: dict[str, str], status: int) -> None:
    cloud, commit = waiting()
    body = statement(commit, changes)
    assert send(cloud, body, signed(cloud, body)) == status
    assert changed(cloud, "one") == {*DEV}


def test_a_stage_that_names_no_system_is_approved_by_none() -> None:
    cloud, commit = waiting("approvers: 1")
    body = statement(commit)
    assert send(cloud, body, signed(cloud, body)) == 403


@pytest.mark.parametrize("minutes", [-6, 6])
def test_a_statement_of_another_time_is_refused(minutes: int) -> None:
    cloud, commit = waiting()
    body = statement(commit)
    assert send(cloud, body, signed(cloud, body, at=cloud.clock() + timedelta(minutes=minutes))) == 400
    assert changed(cloud, "one") == {*DEV}


def test_a_statement_that_comes_again_renews_no_approval_that_has_expired() -> None:
    cloud, commit = waiting("approvers: 2, approvalExpires: 1m, approvalSystem: CHANGES")
    body = statement(commit)
    headers = signed(cloud, body)
    assert send(cloud, body, headers) == 202
    for _ in range(2):
        send(cloud, body, headers)
    assert rollout_of(cloud, commit).missing_approvals(1, cloud.clock()) == 2
