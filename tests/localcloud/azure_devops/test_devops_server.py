"""The local Azure DevOps refuses what Azure DevOps refuses, and delivers events with their sign-in."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.azure_devops.devops_server import DevOpsServer
from localcloud.common.http_server import HttpServer
from localcloud.git.world.git_repository import GitRepository
from tests.support.receivers import Inbox

MISSING = "0" * 40


class Served:
    """A repository with a branch, and a client that is signed in."""

    def __init__(self, server: DevOpsServer, git: GitRepository, api: httpx.Client) -> None:
        self.server, self.git, self.api = server, git, api
        self.main = git.commit({"a.yaml": b"1\n"})
        git.reset(self.main, "next")
        self.head = git.commit({"a.yaml": b"2\n"}, branch="next")

    def call(self, method: str, path: str, body: Any = None, version: str = "7.1") -> httpx.Response:
        query = {"api-version": version} if version else {}
        return self.api.request(method, f"repositories/fleet{path}", params=query, json=body)

    def opened(self) -> int:
        body = {"sourceRefName": "refs/heads/next", "targetRefName": "refs/heads/main", "title": "Next"}
        return int(self.call("POST", "/pullrequests", body).json()["pullRequestId"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    headers = {"Authorization": "Bearer a-token"}
    with DevOpsServer(tmp_path, accepts=lambda token: token == "a-token") as server:
        git = server.create_repository("acme/fleet")
        base = f"{server.organization}/acme/_apis/git"
        with httpx.Client(base_url=base, headers=headers, trust_env=False) as api:
            yield Served(server, git, api)


def test_it_refuses_with_the_codes_of_the_service(served: Served) -> None:
    number = served.opened()
    again = {"sourceRefName": "refs/heads/next", "targetRefName": "refs/heads/main", "title": "x"}
    refused: list[tuple[httpx.Response, int, str]] = [
        (served.api.get("repositories/none", params={"api-version": "7.1"}), 404, "TF401019"),
        (served.call("GET", f"/commits/{MISSING}"), 404, "TF401035"),
        (served.call("GET", "/pullrequests/99"), 404, "TF401180"),
        (served.call("POST", "/pullrequests", again), 409, "TF401179"),
        (served.call("PATCH", f"/pullrequests/{number}", {"title": "x" * 401}), 400, "400 characters"),
        (served.call("PATCH", f"/pullrequests/{number}", {"description": "x" * 4001}), 400, "4000"),
        (
            served.call(
                "POST", f"/pullRequests/{number}/threads", {"comments": [{"content": "x" * 150_001}]}
            ),
            400,
            "150000",
        ),
        (served.call("PATCH", f"/pullrequests/{number}", {"status": "completed"}), 409, "TF401192"),
        (served.call("POST", "/pullrequests", again, version=""), 400, "api-version"),
        (served.call("GET", "", version="8.0"), 400, "out of range"),
        (httpx.get(f"{served.server.organization}/_apis/connectionData", trust_env=False), 401, "TF400813"),
    ]
    for answer, status, text in refused:
        assert (answer.status_code, text in answer.json()["message"]) == (status, True), answer.text
    seen = {"status": "completed", "lastMergeSourceCommit": {"commitId": served.head}}
    done = served.call("PATCH", f"/pullrequests/{number}", seen).json()
    assert (done["status"], done["lastMergeCommit"]["commitId"]) == ("completed", served.git.head("main"))
    assert "TF401181" in served.call("PATCH", f"/pullrequests/{number}", {"title": "x"}).text


def test_a_vote_is_shown_with_its_thread_and_a_reset_takes_it_back(served: Served) -> None:
    number = served.opened()
    reviewer = "00000000-0000-0000-0000-000000000003"
    path = f"/pullRequests/{number}/reviewers"
    assert served.call("PUT", f"{path}/{reviewer}", {"vote": 10}).json()["vote"] == 10
    served.call("PUT", f"{path}/{reviewer}", {"vote": 0})
    (shown,) = served.call("GET", path).json()["value"]
    (thread,) = served.call("GET", f"/pullRequests/{number}/threads").json()["value"]
    assert (shown["id"], shown["vote"]) == (reviewer, 0)
    assert thread["properties"]["CodeReviewVoteResult"]["$value"] == "10"
    assert thread["comments"][0]["commentType"] == "system"


def test_an_event_is_delivered_with_its_sign_in_and_may_be_lost(served: Served) -> None:
    inbox = Inbox()
    with HttpServer(inbox.app) as receiver:
        inbox.url = receiver.url
        control = f"{served.server.url}/_local/webhooks"
        wanted = {"url": f"{inbox.url}/api/hook", "username": "roadstead", "password": "p"}
        httpx.put(control, json={"drop": 1}, trust_env=False).raise_for_status()
        httpx.put(control, json=wanted | {"headers": {"X-Key": "k"}}, trust_env=False).raise_for_status()
        number = served.opened()
        served.call("PATCH", f"/pullrequests/{number}", {"status": "abandoned"})
        end = time.monotonic() + 20
        while not inbox.got:
            assert time.monotonic() < end
            time.sleep(0.05)
        check_delivery(inbox)
    kinds = [sent.event for sent in served.server.hooks.deliveries()]
    assert kinds == ["git.pullrequest.created", "git.pullrequest.updated"]


def check_delivery(inbox: Inbox) -> None:
    path, headers, body = inbox.got[0][:3]
    event = json.loads(body)
    assert path.startswith("/api/hook")
    assert headers["authorization"] == f"Basic {base64.b64encode(b'roadstead:p').decode()}"
    assert (headers["x-key"], event["eventType"]) == ("k", "git.pullrequest.updated")
    assert (event["publisherId"], event["resourceVersion"]) == ("tfs", "1.0")
    assert event["resource"]["status"] == "abandoned"
