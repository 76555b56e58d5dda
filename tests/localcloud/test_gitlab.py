"""The local GitLab: its webhook, as GitLab's documentation has it, and its limits."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.common.clock import ManualClock
from localcloud.common.http_server import HttpServer
from localcloud.gitlab.wire.gitlab_server import GitLabServer
from localcloud.gitlab.wire.gitlab_webhooks import Hook
from tests.support.receivers import Inbox

SECRET = b"0123456789abcdef0123456789abcdef"
TOKEN = f"whsec_{base64.b64encode(SECRET).decode()}"
API = "/api/v4/projects/acme%2Fteams%2Ffleet"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    with HttpServer(inbox.app) as server:
        inbox.url = server.url
        yield inbox


@pytest.fixture
def gitlab(tmp_path: Path, inbox: Inbox) -> Iterator[GitLabServer]:
    hook = Hook(f"{inbox.url}/api/gitlab", "the-secret-token", TOKEN)
    with GitLabServer(tmp_path / "projects", token="local", hook=hook) as server:
        project = server.create_repository("acme/teams/fleet")
        project.reset(project.commit({"a.yaml": b"1\n"}), "next")
        project.commit({"b.yaml": b"1\n"}, branch="next")
        yield server


def call(server: GitLabServer, method: str, path: str, **options: Any) -> httpx.Response:
    headers = {"PRIVATE-TOKEN": "local"}
    return httpx.request(method, server.url + path, headers=headers, trust_env=False, **options)


def deliveries(server: GitLabServer, count: int) -> list[dict[str, Any]]:
    end = time.monotonic() + 20
    while True:
        found = call(server, "GET", "/_local/deliveries").json()
        if len(found) >= count and all(attempt["status"] is not None for attempt in found):
            return list(found)
        assert time.monotonic() < end, found
        time.sleep(0.05)


def pushed(server: GitLabServer, folder: Path, branch: str) -> str:
    """Push a commit to a branch over the wire, and return it."""
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    for arguments in (
        ["clone", "--quiet", "--branch", branch, server.clone_url("acme/teams/fleet"), str(folder)],
        ["-C", str(folder), *who, "commit", "--quiet", "--allow-empty", "-m", "Another"],
        ["-C", str(folder), "push", "--quiet"],
    ):
        subprocess.run(["git", *arguments], check=True)
    return server.repository("acme/teams/fleet").head(branch)


def test_a_push_is_delivered_with_the_token_and_signed_as_standard_webhooks_says(
    gitlab: GitLabServer, inbox: Inbox, tmp_path: Path
) -> None:
    commit = pushed(gitlab, tmp_path / "clone", "main")
    deliveries(gitlab, 1)
    ((path, headers, body),) = inbox.got
    assert (path, headers["x-gitlab-event"], headers["x-gitlab-token"]) == (
        "/api/gitlab",
        "Push Hook",
        "the-secret-token",
    )
    assert headers["webhook-id"] == headers["idempotency-key"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    event = json.loads(body)
    assert (event["object_kind"], event["ref"], event["after"]) == ("push", "refs/heads/main", commit)
    assert event["project"]["path_with_namespace"] == "acme/teams/fleet"
    assert [change["id"] for change in event["commits"]] == [commit]


@pytest.mark.lives
@pytest.mark.parametrize(("branches", "announced"), [(3, 3), (4, 0)])
def test_a_push_of_more_than_three_branches_is_not_announced(
    branches: int, announced: int, gitlab: GitLabServer, tmp_path: Path
) -> None:
    clone, url = tmp_path / "clone", gitlab.clone_url("acme/teams/fleet")
    subprocess.run(["git", "clone", "-q", url, str(clone)], check=True)
    moves = [f"HEAD:refs/heads/b{number}" for number in range(branches)]
    subprocess.run(["git", "-C", str(clone), "push", "-q", "origin", *moves], check=True)
    assert len(deliveries(gitlab, announced)) == announced


@pytest.mark.lives
def test_the_life_of_a_merge_request_is_delivered(gitlab: GitLabServer, tmp_path: Path) -> None:
    body = {"source_branch": "next", "target_branch": "main", "title": "Two"}
    number = call(gitlab, "POST", f"{API}/merge_requests", json=body).json()["iid"]
    assert call(gitlab, "POST", f"{API}/merge_requests", json=body).status_code == 409
    head = pushed(gitlab, tmp_path / "clone", "next")
    review = {"number": number, "login": "reviewer", "event": "APPROVE"}
    call(gitlab, "POST", "/_local/reviews", json=review).raise_for_status()
    merged = call(gitlab, "PUT", f"{API}/merge_requests/{number}/merge").json()
    sent = {attempt["id"]: attempt for attempt in deliveries(gitlab, 6)}
    events = [sent[number]["payload"] for number in sorted(sent)]
    actions = [event.get("object_attributes", {}).get("action", "push") for event in events]
    assert actions == ["open", "push", "update", "approved", "push", "merge"]
    update, last = events[2]["object_attributes"], events[-1]["object_attributes"]
    assert (update["last_commit"]["id"], len(update["oldrev"])) == (head, 40)
    assert (last["state"], last["merge_commit_sha"]) == ("merged", merged["merge_commit_sha"])


def test_four_failures_disable_the_webhook_for_a_while_and_forty_for_good() -> None:
    now = ManualClock()
    hook = Hook("https://fleet.example/api/gitlab")
    for _ in range(3):
        hook = hook.after(500, now())
    assert hook.status(now()) == "executable"
    hook = hook.after(0, now())
    assert hook.status(now()) == "temporarily_disabled"
    assert hook.status(now() + timedelta(minutes=1)) == "executable"
    assert hook.after(200, now()).failures == 0
    while hook.failures < 40:
        hook = hook.after(404, now())
    assert hook.status(now() + timedelta(days=30)) == "disabled"
    assert hook.as_json(1, now())["disabled_until"] is None


def test_a_disabled_webhook_gets_nothing_and_a_lost_delivery_is_remembered(
    gitlab: GitLabServer, inbox: Inbox
) -> None:
    call(gitlab, "PUT", "/_local/webhooks", json={"drop": 1}).raise_for_status()
    body = {"source_branch": "next", "target_branch": "main", "title": "Two"}
    number = call(gitlab, "POST", f"{API}/merge_requests", json=body).json()["iid"]
    gitlab.hooks.hook = Hook(gitlab.hooks.hook.url, failures=40)
    call(gitlab, "PUT", f"{API}/merge_requests/{number}", json={"state_event": "close"}).raise_for_status()
    (lost,) = call(gitlab, "GET", "/_local/deliveries").json()
    assert (lost["event"], lost["status"], inbox.got) == ("Merge Request Hook", None, [])


def test_more_requests_than_the_limit_of_a_minute_are_refused_with_the_time_to_wait(
    gitlab: GitLabServer,
) -> None:
    gitlab.api.throttle.limit = 1
    assert call(gitlab, "GET", API).headers["ratelimit-remaining"] == "0"
    refused = call(gitlab, "GET", API)
    assert (refused.status_code, refused.text) == (429, "Retry later\n")
    assert 0 < int(refused.headers["retry-after"]) <= 60


def test_a_status_takes_no_state_twice_and_no_commit_without_a_branch(gitlab: GitLabServer) -> None:
    project = gitlab.repository("acme/teams/fleet")
    path = f"{API}/statuses/{project.head('main')}"

    def said(state: str, where: str = path) -> tuple[int, str]:
        answer = call(gitlab, "POST", where, json={"state": state, "name": "plan"})
        return answer.status_code, str(answer.json().get("message", ""))

    assert said("pending")[0] == said("running")[0] == 201
    again = said("running")
    assert again == (
        400,
        'Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")',
    )
    assert said("pending")[1].startswith("Cannot transition status via :enqueue from :running")
    assert said("success")[0] == said("pending")[0] == 201
    lonely = project.add({"c.yaml": b"1\n"}, "Lonely", [project.head("main")])
    assert said("pending", f"{API}/statuses/{lonely}") == (404, "404 References for commit Not Found")
