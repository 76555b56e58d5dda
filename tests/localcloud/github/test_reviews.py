"""Merges and reviews at the local GitHub, and the event of a review as GitHub publishes its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.common.http_server import HttpServer
from localcloud.common.plain_http import NO_TLS
from localcloud.github.wire.github_server import GitHubServer
from tests.support.waiting import until
from tests.support.webhook_receiver import Receiver

REVIEW = frozenset(
    {"id", "node_id", "user", "body", "commit_id", "submitted_at", "state", "html_url", "pull_request_url"}
    | {"author_association", "_links"}
)
EVENT = frozenset({"action", "review", "pull_request", "repository", "sender"})
SUBMITTED = ("commented", "changes_requested", "approved")
"""The members of the event and of its review, and its states: github.com/octokit/webhooks,
payload-schemas/api.github.com/pull_request_review/submitted.schema.json, which allows no others."""


class Site:
    """A server with a pull request, and the receiver of its webhook."""

    def __init__(self, server: GitHubServer, receiver: Receiver) -> None:
        self.server, self.receiver = server, receiver
        self.git = server.create_repository("acme/fleet")
        self.git.commit({"a.yaml": b"1"})
        self.git.reset(self.git.head("main"), "next")
        self.head = self.git.commit({"a.yaml": None}, branch="next")
        self.number = self.git.pulls.open("Remove a", "next", "main").number

    def call(self, method: str, path: str, **body: Any) -> httpx.Response:
        url, headers = f"{self.server.url}/repos/acme/fleet{path}", {"Authorization": "Bearer local"}
        return httpx.request(method, url, headers=headers, json=body or {}, trust_env=False, verify=NO_TLS)

    def review(self, event: str, login: str = "reviewer", body: str = "x") -> httpx.Response:
        wanted = {"number": self.number, "login": login, "event": event, "body": body}
        return httpx.post(f"{self.server.url}/_local/reviews", json=wanted, trust_env=False, verify=NO_TLS)

    def events(self, name: str, number: int) -> list[dict[str, Any]]:
        def found() -> list[dict[str, Any]]:
            seen = [(headers["x-github-event"], body) for headers, body in self.receiver.seen]
            return [json.loads(body) for event, body in seen if event == name]

        until(lambda: len(found()) >= number)
        return found()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    receiver = Receiver()
    http = HttpServer(receiver.app)
    with GitHubServer(tmp_path, token="local", webhook_secret="s", webhook_url=http.url) as server:
        yield Site(server, receiver)
    http.close()


def test_the_event_of_a_review_has_the_members_and_states_of_the_published_schema(site: Site) -> None:
    for kind in ("COMMENT", "REQUEST_CHANGES", "APPROVE"):
        assert site.review(kind).status_code == 201
    events = site.events("pull_request_review", 3)
    assert {event["review"]["state"] for event in events} == {*SUBMITTED}
    for event in events:
        assert ({*event}, {*event["review"]}, event["action"]) == ({*EVENT}, {*REVIEW}, "submitted")
        assert (event["review"]["user"]["login"], event["review"]["commit_id"]) == ("reviewer", site.head)
        assert (event["pull_request"]["merged_at"], "merged" in event["pull_request"]) == (None, False)


def test_a_review_after_the_merge_names_the_merge_and_can_be_dismissed(site: Site) -> None:
    merged = site.call("PUT", f"/pulls/{site.number}/merge").json()
    assert merged["merged"]
    assert site.git.head("main") == merged["sha"]
    (push,) = site.events("push", 1)
    assert push["after"] == merged["sha"]
    review = site.review("APPROVE").json()
    dismissal = f"/pulls/{site.number}/reviews/{review['id']}/dismissals"
    assert site.call("PUT", dismissal, message="no").json()["state"] == "DISMISSED"
    assert site.call("PUT", dismissal, message="no").status_code == 422
    events = site.events("pull_request_review", 2)
    assert {(e["action"], e["review"]["state"]) for e in events} == {
        ("submitted", "approved"),
        ("dismissed", "dismissed"),
    }
    assert all(e["pull_request"]["merge_commit_sha"] == merged["sha"] for e in events)


def test_github_refuses_reviews_and_merges_as_documented(site: Site) -> None:
    own = site.review("APPROVE", "operator")
    assert (own.status_code, "approve your own pull request" in own.text) == (422, True)
    assert site.review("COMMENT", "operator").status_code == 201
    assert site.review("REQUEST_CHANGES", body="").status_code == 422
    assert site.review("LIKE").status_code == 422
    assert site.call("POST", f"/pulls/{site.number}/reviews", event="APPROVE").status_code == 422
    assert site.call("PUT", f"/pulls/{site.number}/merge", sha="0" * 40).status_code == 409
    assert site.call("PUT", f"/pulls/{site.number}/merge", merge_method="rebase").status_code == 405
    assert site.call("PUT", f"/pulls/{site.number}/merge", merge_method="squash").status_code == 200
    assert site.call("PUT", f"/pulls/{site.number}/merge").status_code == 405
    assert site.call("GET", "/pulls/99/reviews").status_code == 404
