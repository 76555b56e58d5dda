"""Each body that somebody sends, with each part missing, null, of every other type, huge or deep.

An answer is no server error and says what is wrong. A message of a queue is carried out, or raises until it
is a dead letter, and that is saved: none is lost, and none comes back indefinitely.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import azure.functions as func
import pytest
from pydantic import ValidationError

from handlers.act_route import ActRoute
from handlers.acts import ACTS
from handlers.sign_in import PRINCIPAL, SignIn
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.cluster.history import FoundBy
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.message_parts import (
    Approval,
    HeadConfirmation,
    MissedHead,
    PromotionOrder,
    RolloutAct,
)
from shared.cluster.queues.messages import (
    ActRequest,
    CheckMessage,
    IssueRequest,
    PlanRequest,
    PreviewRequest,
    PromotionRequest,
    ProposeRequest,
    ReadinessMessage,
    SweepRequest,
)
from tests.support.function_calls import ADMIN, function_app, functions
from tests.support.host_deliveries import HOSTS
from tests.support.odd_bodies import odd_bodies
from tests.support.pipeline_runs import ready
from tests.support.reporting_flux import event, reporting
from tests.support.reporting_flux import signed as signed_event
from tests.support.signed_approvals import KEY, statement
from tests.support.signed_approvals import signed as signed_statement
from tests.support.webhook_deliveries import COMMIT, sign

pytestmark = pytest.mark.lives

BRANCH = {"ref": "main", "sha": COMMIT}
REPOSITORY = {"full_name": "example/fleet", "id": 5, "pushed_at": 1767225600}
DELIVERIES: Mapping[str, Any] = {
    "push": {"ref": "refs/heads/main", "after": COMMIT, "deleted": False, "repository": REPOSITORY},
    "pull_request": {
        "action": "edited",
        "number": 7,
        "pull_request": {"head": BRANCH, "base": BRANCH, "merged": False},
        "changes": {"base": {"ref": {"from": "old"}}},
        "repository": REPOSITORY,
    },
    "pull_request_review": {
        "action": "submitted",
        "review": {"state": "approved"},
        "pull_request": {"base": BRANCH, "merge_commit_sha": COMMIT, "merged_at": "2026-01-01T12:00:00Z"},
        "repository": REPOSITORY,
    },
    "issues": {
        "action": "opened",
        "issue": {
            "number": 3,
            "body": "### Name of the cluster\n\none\n",
            "user": {"login": "octocat", "id": 9, "type": "User"},
        },
        "repository": REPOSITORY,
    },
}
REQUESTS: Mapping[str, Any] = {
    "approve": {"clusters": ["one"], "reason": "why"},
    "approve_correction": {"correction": "abc", "reason": "why"},
    "accept": {"fields": {"tags.owner": '"x"'}, "reason": "why"},
    "wake": {"reason": "why"},
    "sleep": {"reason": "why"},
    "postpone": {"until": "2099-01-01T00:00:00Z", "reason": "why"},
    "takeover": {"reason": "why"},
    "refresh": {"clusters": ["one"]},
    "read_readiness": {"clusters": ["one"]},
    "suspend": {"clusters": ["one"], "for": "7d", "owner": "team-shop", "reason": "why"},
    "sync": {"reason": "why"},
    "examine": {"reason": "why"},
    "pause": {"reason": "why", "until": "2099-01-01T00:00:00Z"},
    "resume": {"reason": "why"},
    "dismiss": {"deadLetters": [{"queue": "jobs", "id": "7:m"}]},
    "replay_letters": {"deadLetters": [{"queue": "jobs", "id": "7:m"}]},
    "replay": {"override": False, "reason": "why"},
    "try": {"pull": 7, "for": "4h", "reason": "why"},
    "request": {"name": "new", "class": "small", "lifetime": "8h", "reason": "why"},
    "extend": {"for": "4h", "hold": True, "reason": "why"},
    "end_try": {"pull": 7},
    "promote": {"from": "test", "to": "production", "what": ["kubernetesVersion"]},
    "notify_test": {"route": "team"},
    "rollout_approve": {"stage": "first"},
    "rollout_skip": {"cluster": "one"},
    "rollout_pause": {"reason": "why"},
}
CLAIMS = {
    "auth_typ": "aad",
    "claims": [{"typ": "oid", "val": "7"}, {"typ": "roles", "val": "Reader"}, {"typ": "azp", "val": "a"}],
}


def takes_more_than_nothing(act: ActRoute) -> bool:
    """Return whether an act refuses an empty body."""
    try:
        act.body.model_validate({})
    except ValidationError:
        return act.method == "POST"
    return False


def send(function: Any, body: bytes, headers: Mapping[str, str], **route: str) -> None:
    """Send a body to a function: its answer is a success, or has a reason and is no server error."""
    reply = function(func.HttpRequest("POST", "/api", body=body, route_params=route, headers=dict(headers)))
    said = json.loads(reply.get_body())
    assert reply.status_code < 400 or (reply.status_code < 500 and said["error"]), (body[:200], said)


def of_app(cloud: MemoryCloud, name: str) -> Any:
    return functions(cloud.ports)[name].get_user_function()


def test_an_event_of_flux_is_taken_or_refused_with_a_reason() -> None:
    cloud = reporting()
    flux = of_app(cloud, "flux")
    times = ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1e999", "2026-01-01T12:00:00")
    odd = [event(cloud, timestamp=at) for at in times] + [event(cloud, timestamp=10**30)]
    for body in (*odd, *odd_bodies(json.loads(event(cloud)))):
        cloud.clock.advance(1)  # its cluster has a token each second
        send(flux, body, signed_event(body), cluster="one")


@pytest.mark.parametrize("kind", DELIVERIES)
def test_a_delivery_of_github_is_taken_or_refused_with_a_reason(kind: str) -> None:
    github = of_app(ready("one"), "github")
    for body in odd_bodies(DELIVERIES[kind]):
        headers = {"x-hub-signature-256": sign(body), "x-github-event": kind, "x-github-delivery": "d1"}
        send(github, body, headers)


@pytest.mark.parametrize("name", sorted({*HOSTS} - {"github"}))
@pytest.mark.parametrize("event", [0, 1])
def test_a_delivery_of_another_host_is_taken_or_refused_with_a_reason(name: str, event: int) -> None:
    host = HOSTS[name]
    app = function_app(ready("one").ports, webhook_secret=host.secrets[1], git_host=name)
    made = {str(found.get_function_name()): found.get_user_function() for found in app.get_functions()}
    for body in odd_bodies((host.push, host.pull)[event]):
        headers, _ = host.sent(body, event=host.events[event], secret=host.secrets[1])
        send(made["webhook"], body, headers)


def test_a_statement_of_a_system_is_taken_or_refused_with_a_reason() -> None:
    cloud = ready("one")
    approval = of_app(cloud, "system_approval")
    for body in odd_bodies(json.loads(statement(COMMIT))):
        if b"\xff" in body:  # the library of the sender signs texts
            continue
        send(approval, body, signed_statement(cloud, body, key=KEY), system="CHANGES")


@pytest.mark.parametrize("function", REQUESTS)
def test_a_request_of_the_api_is_taken_or_refused_with_a_reason(function: str) -> None:
    asked = of_app(ready("one"), function)
    headers = {**ADMIN, "Content-Type": "application/json"}
    for body in odd_bodies(REQUESTS[function]):
        send(asked, body, headers, name="one", commit=COMMIT)


@pytest.mark.parametrize("function", [act.name for act in ACTS if takes_more_than_nothing(act)])
def test_what_is_wrong_with_an_empty_body_names_what_its_act_takes(function: str) -> None:
    headers = {**ADMIN, "Content-Type": "application/json"}
    route = {"name": "one", "commit": COMMIT}
    request = func.HttpRequest("POST", "/api", body=b"", route_params=route, headers=headers)
    error = json.loads(of_app(ready("one"), function)(request).get_body())["error"]
    assert error.partition("; the fields are ")[0]
    assert {*error.partition("; the fields are ")[2].split(", ")} >= {*REQUESTS[function]}


def test_no_claims_of_a_caller_end_with_a_server_error() -> None:
    sign_in = SignIn("entra", platform_verifies=True)
    for body in odd_bodies(CLAIMS):
        caller = sign_in.caller({PRINCIPAL: base64.b64encode(body).decode()})
        assert caller is None or caller.name


def messages() -> list[tuple[str, Any]]:
    cloud = ready("one")
    (record,), now = cloud.state.clusters(), cloud.clock()
    request = PlanRequest(
        commit=COMMIT,
        reason="push",
        approval=Approval(commit=COMMIT, clusters=("one",), by="ann", at=now),
        confirmation=HeadConfirmation(head=COMMIT, planned=COMMIT, reads=1),
        at=now,
        read_from=now,
        found=MissedHead(by=next(iter(FoundBy)), at=now),
    )
    act = RolloutAct(commit=COMMIT, kind="pause", by="ann", at=now)
    asked = PromotionOrder(source="test", target="production", by="ann", at=now)
    sweep = SweepRequest(sweep="1", reservations={"a": (now,)})
    sent = [
        ("jobs", job_message(record, now)),
        ("jobs", CheckMessage(check="1", clusters=("one",), at=now)),
        ("jobs", ReadinessMessage(reading="1", cluster="one")),
        ("plans", request),
        ("plans", ActRequest(act=act)),
        ("plans", PromotionRequest(promotion=asked)),
        ("plans", IssueRequest(number=3, login="octocat", account=9, body="### Name of the cluster")),
        ("plans", sweep),
        ("plans", ProposeRequest(beyond="one")),
        ("previews", PreviewRequest(pull=7, head=COMMIT)),
    ]
    return [(queue, json.loads(message.model_dump_json())) for queue, message in sent]


@pytest.mark.parametrize(("queue", "body"), messages(), ids=lambda given: str(given)[:40])
def test_a_message_is_carried_out_or_becomes_a_dead_letter_that_is_kept(queue: str, body: Any) -> None:
    cloud = ready("one")
    trigger = {"jobs": "worker", "plans": "planner", "previews": "previewer"}[queue]
    handle = of_app(cloud, trigger)
    for number, odd in enumerate(odd_bodies(body)):
        failed = False
        try:
            handle(func.ServiceBusMessage(body=odd))
        except Exception:  # noqa: BLE001  # the host takes any
            failed = True
        if failed:
            shown, kept = odd.decode(errors="replace"), cloud.state.count_dead_letters()
            given_up = ReceivedDeadLetter(queue, f"{number}:m", cloud.clock(), odd, shown, "no reason")
            handle_dead_letter(given_up, cloud.ports)
            assert cloud.state.count_dead_letters() > kept or cloud.state.fleet().problem
