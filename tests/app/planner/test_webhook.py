"""What a webhook delivery means, from its headers and raw body alone."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.github_webhook import read_delivery
from shared.app.intake.webhook import (
    MAX_BODY_BYTES,
    Delivery,
    DeliveryRefusal,
    IgnoredDelivery,
    PullChange,
    Push,
)
from shared.ports import Message
from tests.support import fleet_files
from tests.support.pipeline_runs import phases
from tests.support.replaced_ports import Around, around
from tests.support.webhook_deliveries import COMMIT, payload, sign

NO_COMMITS = (3, "", "c0ffee", "x" * 40, "A" * 40, "f" * 1_000_000, "\ud800" * 40)


def pull(action: str | None = "opened", base: str = "main", **changes: Any) -> bytes:
    body = {
        "action": action,
        "number": 7,
        "pull_request": {"head": {"sha": COMMIT}, "base": {"ref": base}},
        "repository": {"full_name": "example/fleet"},
    }
    return json.dumps(body | changes).encode()


def read(body: bytes, *, secrets: tuple[str, ...] = ("new", "old"), **headers: str) -> Delivery:
    given = {
        "X-Hub-Signature-256": sign(body),
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": "d1",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    return read_delivery(given, body, secrets=secrets, repository="example/fleet", branch="main")


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize(
    ("pushed_at", "at"),
    [
        (1767225600, datetime(2026, 1, 1, tzinfo=UTC)),
        *((invalid, None) for invalid in (None, "2026-01-01T00:00:00Z", True, -1, 1 << 60)),
    ],
)
def test_the_time_of_a_push_is_read_where_it_is_valid(pushed_at: object, at: datetime | None) -> None:
    body = payload(repository={"full_name": "example/fleet", "pushed_at": pushed_at})
    assert read(body) == Push("d1", digest(body), COMMIT, at)


def test_a_push_to_the_tracked_branch_is_accepted() -> None:
    assert read(payload()) == Push("d1", digest(payload()), COMMIT)


def test_the_previous_secret_is_accepted_during_a_rotation() -> None:
    assert read(payload(), X_Hub_Signature_256=sign(payload(), "old")) == Push(
        "d1", digest(payload()), COMMIT
    )


@pytest.mark.parametrize(
    ("signature", "secrets", "reason"),
    [
        (sign(payload(), "wrong"), ("new",), "signature is wrong"),
        (sign(payload(other=1), "new"), ("new",), "or something between has changed the body"),
        ("", ("new",), "is missing"),
        ("sha1=abc", ("new",), "signature is wrong"),
        ("sha256=é", ("new",), "signature is wrong"),
        (sign(payload(), ""), (), "no webhook secret is configured"),
        (sign(payload(), ""), ("", ""), "no webhook secret is configured"),
    ],
)
def test_a_delivery_without_a_valid_signature_is_refused(
    signature: str, secrets: tuple[str, ...], reason: str
) -> None:
    answer = read(payload(), secrets=secrets, X_Hub_Signature_256=signature)
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 401
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"X-Hub-Signature": "sha1=0928dc6c"}, "only X-Hub-Signature"),
        (
            {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "new"},
            "GitLab sent this, and GIT_HOST is github",
        ),
        ({"X-Event-Key": "repo:push", "X-Hub-Signature": "sha256=0"}, "Bitbucket sent this"),
        ({"Authorization": "Basic eDpuZXc="}, "set the webhook's secret in GitHub"),
    ],
)
def test_a_delivery_without_a_signature_is_told_from_one_without_a_secret(
    headers: dict[str, str], reason: str
) -> None:
    answer = read_delivery(headers, b"{}", secrets=("new",), repository="example/fleet", branch="main")
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 401
    assert reason in answer.reason


def test_nothing_is_parsed_before_the_signature_is_checked() -> None:
    answer = read(b"not json", X_Hub_Signature_256=sign(b"other"))
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 401


def test_a_body_over_the_limit_is_refused_before_it_is_hashed() -> None:
    answer = read(b" " * (MAX_BODY_BYTES + 1), X_Hub_Signature_256="")
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000, *(payload(after=after) for after in NO_COMMITS)]
)
def test_a_signed_body_that_is_not_a_push_is_a_bad_request(body: bytes) -> None:
    answer = read(body)
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 400


@pytest.mark.parametrize("delivery", ["", "x" * 101, "a b", "\ud800", "é"])
def test_a_delivery_without_a_usable_id_is_a_bad_request(delivery: str) -> None:
    answer = read(payload(), X_GitHub_Delivery=delivery)
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 400


@pytest.mark.parametrize(
    ("body", "event", "reason"),
    [
        (payload(), "ping", "pong"),
        (payload(), "fork", "the event fork is none of push, pull_request, pull_request_review, issues"),
        (payload(ref="refs/tags/v1"), "push", "refs/tags/v1 is not a branch"),
        (payload(ref="refs/heads/topic"), "push", "the branch topic is not main"),
        (
            payload(deleted=True, after="0" * 40),
            "push",
            "the branch main was deleted; the fleet stays as it is",
        ),
        (
            payload(repository={"full_name": "other/fleet"}),
            "push",
            "the repository other/fleet is not example/fleet",
        ),
    ],
)
def test_a_delivery_that_needs_no_plan_is_ignored_with_the_reason(
    body: bytes, event: str, reason: str
) -> None:
    assert read(body, X_GitHub_Event=event) == IgnoredDelivery(reason)


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened"])
def test_a_pull_request_into_the_tracked_branch_is_accepted_when_it_has_new_commits(action: str) -> None:
    body = pull(action)
    expected = PullChange("d1", digest(body), 7, COMMIT, action)
    assert read(body, X_GitHub_Event="pull_request") == expected


@pytest.mark.parametrize("action", ["closed", "reopened"])
def test_a_proposal_of_drift_is_looked_at_when_somebody_closes_or_reopens_it(action: str) -> None:
    proposed = {"head": {"sha": COMMIT, "ref": "roadstead/drift/example/one"}, "base": {"ref": "main"}}
    body = pull(action, pull_request=proposed)
    expected = PullChange("d1", digest(body), 7, COMMIT, action, proposal=True)
    assert read(body, X_GitHub_Event="pull_request") == expected
    cloud = MemoryCloud()
    assert accept(expected, cloud.ports).status == 202
    assert cloud.broker.counts("plans").scheduled == 1
    assert cloud.broker.counts("previews").scheduled == 1


def test_a_pull_request_that_is_closed_ends_its_tries() -> None:
    cloud = MemoryCloud()
    closed = read(pull("closed"), X_GitHub_Event="pull_request")
    assert isinstance(closed, PullChange)
    assert accept(closed, cloud.ports).status == 202
    assert cloud.broker.counts("previews").scheduled == 1
    assert cloud.broker.counts("plans").scheduled == 0


def test_an_edited_pull_request_is_accepted_only_when_its_base_changed() -> None:
    rebased = pull("edited", changes={"base": {"ref": {"from": "next"}}})
    assert read(rebased, X_GitHub_Event="pull_request") == PullChange(
        "d1", digest(rebased), 7, COMMIT, "edited"
    )
    renamed = pull("edited", changes={"title": {"from": "Old"}})
    assert read(renamed, X_GitHub_Event="pull_request") == IgnoredDelivery(
        "a pull request that was edited needs no plan"
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (pull("labeled"), "a pull request that was labeled needs no plan"),
        (pull(base="next"), "the pull request goes into next, not main"),
        (
            pull(repository={"full_name": "other/fleet"}),
            "the repository other/fleet is not example/fleet",
        ),
    ],
)
def test_a_pull_request_that_needs_no_plan_is_ignored_with_the_reason(body: bytes, reason: str) -> None:
    assert read(body, X_GitHub_Event="pull_request") == IgnoredDelivery(reason)


@pytest.mark.parametrize(
    "body",
    [
        pull(number="7"),
        pull(number=True),
        pull(number=0),
        pull(number=1 << 31),
        *(pull(pull_request={"head": {"sha": sha}, "base": {"ref": "main"}}) for sha in NO_COMMITS),
        pull(action=None),
        pull(pull_request=[]),
        pull(pull_request={"head": None, "base": {"ref": "main"}}),
        pull(repository=None),
    ],
)
def test_a_signed_body_that_is_not_a_pull_request_is_a_bad_request(body: bytes) -> None:
    answer = read(body, X_GitHub_Event="pull_request")
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 400


def test_a_pull_request_is_queued_for_the_previewer() -> None:
    cloud = MemoryCloud()
    receipt = accept(PullChange("d1", "digest", 7, COMMIT, "opened"), cloud.ports)
    assert (receipt.status, receipt.body["commit"]) == (202, COMMIT)
    assert cloud.broker.counts("previews").scheduled == 1
    assert accept(PullChange("d1", "digest", 7, COMMIT, "opened"), cloud.ports).status == 200


def test_the_same_delivery_five_times_is_one_plan_request() -> None:
    cloud = MemoryCloud()
    commit = cloud.repository.push(fleet_files.fleet("one"))
    answers = [accept(Push("d1", "same", commit), cloud.ports).status for _ in range(5)]
    assert answers == [202, 200, 200, 200, 200]
    assert cloud.broker.counts("plans").active == 1


def test_a_recorded_delivery_under_new_ids_queues_nothing_and_is_stored_once() -> None:
    cloud = MemoryCloud()
    body = payload()
    first = read(body)
    assert accept(first, cloud.ports).status == 202
    stored: list[str] = []
    around(cloud, "state", remember_delivery=lambda digest, *_, **__: stored.append(digest))
    for number in range(20):
        replayed = read(body, X_GitHub_Delivery=f"forged-{number}")
        assert accept(replayed, cloud.ports).status == 200
    assert (cloud.broker.counts("plans").active, stored) == (1, [])


def test_a_delivery_is_remembered_only_after_its_request_is_queued() -> None:
    cloud = MemoryCloud()
    commit = cloud.repository.push(fleet_files.fleet("one"))

    def broken(*messages: Message) -> None:
        raise ConnectionError(messages[0].id)

    ports = replace(cloud.ports, plans=Around(cloud.ports.plans, send=broken))
    with pytest.raises(ConnectionError):
        accept(Push("d1", "digest", commit), ports)
    assert not cloud.state.delivery_seen("digest")
    assert accept(Push("d1", "digest", commit), cloud.ports).status == 202
    cloud.run()
    assert list(phases(cloud)) == ["one"]


def test_a_refused_delivery_queues_nothing() -> None:
    cloud = MemoryCloud()
    assert accept(DeliveryRefusal(401, "no"), cloud.ports).status == 401
    assert cloud.broker.counts("plans").active == 0


def form(body: bytes) -> bytes:
    return urlencode({"payload": body.decode()}).encode()


FORM = "application/x-www-form-urlencoded; charset=utf-8"


def test_a_form_which_is_what_github_sends_by_default_has_the_payload() -> None:
    body = form(payload())
    pushed = read(body, Content_Type=FORM)
    assert isinstance(pushed, Push)
    assert (pushed.commit, pushed.digest) == (COMMIT, digest(body))
    assert read(form(b'{"zen": 1}'), Content_Type=FORM, X_GitHub_Event="ping") == IgnoredDelivery("pong")


def test_the_body_says_whether_it_is_a_form_whatever_a_relay_has_made_of_its_content_type() -> None:
    for body in (payload(), form(payload())):
        for content_type in (FORM, "application/json", "text/plain", ""):
            pushed = read(body, X_Hub_Signature_256=sign(body), Content_Type=content_type)
            assert isinstance(pushed, Push)
            assert pushed.commit == COMMIT


@pytest.mark.parametrize("body", [b"", b"payload=", b"payload=[]", b"a=1", b"payload=%FF", b"a=1&" * 20])
def test_a_body_that_no_push_could_be_read_from_is_refused_already_when_the_webhook_is_saved(
    body: bytes,
) -> None:
    for event in ("ping", "push"):
        for content_type in (FORM, "application/json"):
            refused = read(body, Content_Type=content_type, X_GitHub_Event=event)
            assert isinstance(refused, DeliveryRefusal)
            assert refused.status == 400


@pytest.mark.parametrize(
    ("events", "repository", "answer"),
    [
        (["push", "pull_request", "pull_request_review"], "example/fleet", IgnoredDelivery("pong")),
        (["*"], "Example/Fleet", IgnoredDelivery("pong")),
        (["push"], None, IgnoredDelivery("pong; it sends no pull_request and no pull_request_review")),
        (
            ["pull_request"],
            "example/fleet",
            DeliveryRefusal(
                400, "the webhook sends no pushes; add the events push, pull_request_review to it"
            ),
        ),
        (
            ["push"],
            "other/fleet",
            DeliveryRefusal(
                400, "the webhook is one of other/fleet; set it in example/fleet, which is planned"
            ),
        ),
    ],
)
def test_a_ping_says_what_the_deliveries_of_the_webhook_would_lack(
    events: list[str], repository: str | None, answer: Delivery
) -> None:
    ping = {"zen": "Keep it logically awesome.", "hook": {"type": "Repository", "events": events}}
    body = json.dumps(ping | ({"repository": {"full_name": repository}} if repository else {})).encode()
    assert read(body, X_GitHub_Event="ping") == answer
    assert read(form(body), Content_Type=FORM, X_GitHub_Event="ping") == answer


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        (
            {"hook": {"type": "Repository", "events": ["*"], "active": False}},
            DeliveryRefusal(400, "the webhook is not active, so it sends nothing; make it active"),
        ),
        (
            {"repository": {"full_name": "example/fleet", "default_branch": "master"}},
            IgnoredDelivery("pong; main is planned, and the default branch is master"),
        ),
        ({"repository": {"full_name": "example/fleet", "default_branch": "main"}}, IgnoredDelivery("pong")),
    ],
)
def test_a_ping_says_why_no_push_of_the_webhook_would_be_planned(
    changes: dict[str, Any], answer: Delivery
) -> None:
    ping = {"hook": {"type": "Repository", "events": ["*"], "active": True}}
    assert read(json.dumps(ping | changes).encode(), X_GitHub_Event="ping") == answer
