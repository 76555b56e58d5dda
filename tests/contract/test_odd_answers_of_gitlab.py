"""Whatever GitLab answers, a call has a result or an error of ours, and nothing loops or goes elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.common.front_door import ScriptedFault
from localcloud.git.world.people import REVIEWER
from localcloud.gitlab.wire.gitlab_server import GitLabServer
from shared.adapters import answers
from shared.adapters.gitlab import GitLabHost
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Withheld,
)
from shared.ports import CommitStatus, PullText
from tests.support.odd_bodies import JSON, odd_bodies, takes_any
from tests.support.receivers import Inbox, slow_server

COMMIT = "c0ffee00" * 5
USER = {"id": 7, "username": "ann", "name": "Ann", "email": "ann@example.com", "state": "active"}
REQUEST = {
    "iid": 3,
    "state": "closed",
    "sha": COMMIT,
    "target_branch": "main",
    "source_project_id": 5,
    "target_project_id": 5,
    "web_url": "https://gitlab.example.com/acme/fleet/-/merge_requests/3",
    "labels": ["shop"],
    "merge_commit_sha": COMMIT,
    "squash_commit_sha": None,
    "merged_at": "2026-01-01T12:00:00.000Z",
    "author": USER,
    "changes_count": "1",
}
NODES = [
    {
        "message": "m",
        "authorEmail": "a@b.c",
        "committerEmail": "a@b.c",
        "author": {"id": "gid://gitlab/User/7"},
    }
]
COMMITS = {"nodes": NODES, "pageInfo": {"hasNextPage": False, "endCursor": None}}
COMMITTERS = {"nodes": [{"id": "gid://gitlab/User/7"}]}
AUTHORS = {"data": {"project": {"mergeRequest": {"commits": COMMITS, "committers": COMMITTERS}}}}
HOOK = {"id": 1, "url": "https://x/api/webhook", "alert_status": "executable", "disabled_until": None}
RULE = {"name": "roadstead/pin/*", "push_access_levels": [{"access_level": 40}]}
Call = Callable[[GitLabHost], Any]
CALLS: dict[str, tuple[Call, Any]] = {
    "status": (
        lambda gitlab: gitlab.set_status(COMMIT, CommitStatus("success", "fine", "roadstead", "")),
        {"id": 1, "status": "success"},
    ),
    "checks": (
        lambda gitlab: gitlab.conclusions(COMMIT, "test"),
        [{"id": 1, "name": "test", "status": "success", "ref": "main"}],
    ),
    "open": (lambda gitlab: gitlab.open_pulls("main"), [REQUEST]),
    "one": (lambda gitlab: gitlab.pull(3), REQUEST),
    "note": (
        lambda gitlab: gitlab.comment(3, "mark"),
        [{"id": 1, "body": "mark", "author": USER, "system": False}],
    ),
    "merged": (lambda gitlab: gitlab.merged_as(COMMIT), [{**REQUEST, "state": "merged"}]),
    "authors": (lambda gitlab: gitlab.pull_authors(3), AUTHORS),
    "members": (lambda gitlab: gitlab.team_members("acme/ops"), [USER]),
    "issue": (
        lambda gitlab: gitlab.find_issue("mark"),
        [{"iid": 1, "author": USER, "description": "mark"}],
    ),
    "new issue": (lambda gitlab: gitlab.open_issue("title", "body"), {"iid": 1}),
    "guarded": (lambda gitlab: gitlab.is_guarded("roadstead/pin/a"), [RULE]),
    "webhooks": (lambda gitlab: gitlab.deliveries(), [HOOK]),
}


@pytest.fixture
def gitlab(inbox: Inbox) -> Iterator[GitLabHost]:
    adapter = GitLabHost(f"{inbox.url}/acme/fleet", "", "glpat-secret")
    inbox.answers.append((200, JSON, json.dumps(USER)))
    assert adapter._client.user.id == 7
    yield adapter
    adapter.close()


@pytest.mark.lives
@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_a_result_or_an_error_of_ours(name: str, gitlab: GitLabHost, inbox: Inbox) -> None:
    ask, body = CALLS[name]
    inbox.default = (200, JSON, json.dumps(body))
    ask(gitlab)
    takes_any(lambda: ask(gitlab), inbox, body)


@pytest.mark.lives
def test_reviews_and_files_are_results_or_errors_of_ours(gitlab: GitLabHost, inbox: Inbox) -> None:
    at = "2026-01-01T12:00:00.000Z"
    answers: list[Any] = [
        {"approved_by": [{"user": USER, "approved_at": at}]},
        [{"user": USER, "state": "requested_changes", "created_at": at}],
        [{"created_at": at, "head_commit_sha": COMMIT}],
    ]
    files: list[Any] = [
        {**REQUEST, "changes_count": "1"},
        [{"old_path": "a", "deleted_file": True, "renamed_file": False}],
    ]
    for given, ask in ((answers, gitlab.reviews), (files, gitlab.removed_files)):
        for place, right in enumerate(given):
            for odd in (json.dumps(right).encode(), *odd_bodies(right, 20)):
                inbox.answers[:] = [(200, JSON, json.dumps(body)) for body in given]
                inbox.answers[place] = (200, JSON, odd)
                try:
                    ask(3)
                except ReconcileError:
                    continue


@pytest.mark.lives
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 502])
def test_a_refusal_is_an_error_of_ours_whatever_it_says(
    status: int, gitlab: GitLabHost, inbox: Inbox
) -> None:
    error = {"message": {"title": ["is too long"]}, "error": "x", "error_description": "y", "scope": "api"}
    page = b"<html><head><title>GitLab is not responding</title></head></html>"
    for odd in (page, *odd_bodies(error, 20)):
        inbox.default = (status, JSON, odd)
        for name in ("open", "new issue"):
            with pytest.raises(ReconcileError):
                CALLS[name][0](gitlab)


REFUSALS: list[tuple[int, dict[str, str], Any, type[ReconcileError], str]] = [
    (
        401,
        {},
        {"error": "invalid_token", "error_description": "Token was revoked."},
        Unauthenticated,
        "revoked",
    ),
    (403, {}, {"error": "insufficient_scope", "scope": "api"}, Unauthorized, "insufficient_scope: api"),
    (
        404,
        {},
        {"message": "404 Project Not Found"},
        Dependency,
        "no issues, or the credential cannot read it",
    ),
    (409, {}, {"message": ["in the way"]}, Conflict, "in the way"),
    (400, {}, {"message": {"title": ["is too long", "no"]}}, InvalidManifest, "title is too long, no"),
    (429, {"Retry-After": "42"}, "Retry later", Throttled, "gave no reason"),
    (
        301,
        {"Location": "https://elsewhere.example/acme/fleet"},
        {},
        Withheld,
        "set GIT_URL to its present address",
    ),
    (503, {}, "<html>", Unavailable, "GitLab answered 503"),
]


@pytest.mark.parametrize(("status", "headers", "body", "kind", "said"), REFUSALS)
def test_a_refusal_says_what_to_do_next(
    status: int,
    headers: dict[str, str],
    body: Any,
    kind: type[ReconcileError],
    said: str,
    gitlab: GitLabHost,
    inbox: Inbox,
) -> None:
    inbox.default = (status, {**JSON, **headers}, body if isinstance(body, str) else json.dumps(body))
    with pytest.raises(kind, match=said) as refused:
        CALLS["new issue"][0](gitlab)
    assert "glpat-secret" not in str(refused.value)
    if isinstance(refused.value, Throttled):
        assert refused.value.retry_after == 42
    assert len(inbox.got) == 2, "it is asked once, and nobody else is"


def test_a_limit_ends_when_gitlab_says_so_by_its_own_clock(gitlab: GitLabHost, inbox: Inbox) -> None:
    for reset, seconds in (("1767268830", 30.0), ("x", 60.0), ("9" * 400, 60.0), ("0", 1.0)):
        headers = {"RateLimit-Reset": reset, "Date": "Thu, 01 Jan 2026 12:00:00 GMT"}
        inbox.default = (429, headers, "Retry later")
        with pytest.raises(Throttled) as refused:
            CALLS["open"][0](gitlab)
        assert refused.value.retry_after == seconds


def test_a_page_of_html_and_an_answer_that_is_too_large_are_no_answers(
    gitlab: GitLabHost, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.default = (200, {"Content-Type": "text/html"}, "<html>Sign in</html>")
    for name in CALLS.keys() - {"status"}:
        with pytest.raises(Unavailable, match="cannot be parsed"):
            CALLS[name][0](gitlab)
    monkeypatch.setattr(answers, "MOST_BYTES", 1000)
    inbox.default = (200, JSON, json.dumps([{**REQUEST, "title": "x" * 2000}]))
    with pytest.raises(Unavailable, match="the answer of GitLab is larger"):
        CALLS["open"][0](gitlab)


def test_a_list_that_goes_on_elsewhere_is_not_followed(gitlab: GitLabHost, inbox: Inbox) -> None:
    page = json.dumps([{**USER, "id": number} for number in range(100)])
    inbox.default = (200, {**JSON, "Link": '<https://elsewhere.example/next>; rel="next"'}, page)
    assert gitlab.team_members("acme/ops") is None, "ten pages are the most"
    assert len(inbox.got) == 11


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitLabServer]:
    with GitLabServer(tmp_path, token="local") as served:
        served.create_repository("acme/platform/fleet").commit({"a.yaml": b"1\n"})
        yield served


def read(server: GitLabServer, credential: str = "local") -> GitLabHost:
    return GitLabHost(f"{server.url}/acme/platform/fleet", "", credential)


def test_a_project_in_groups_is_read_by_its_whole_path(server: GitLabServer) -> None:
    host = read(server)
    project = server.repository("acme/platform/fleet")
    assert host.read_head("main").repository == project.id
    number = host.open_issue("One", "text")
    assert host.find_issue("text") == number
    host.close()


def test_a_token_without_the_scope_hears_so_and_an_unknown_one_too(server: GitLabServer) -> None:
    server.api.scopes = ["read_api"]
    host = read(server)
    with pytest.raises(Unauthorized, match="insufficient_scope: The request requires higher privileges"):
        host.open_issue("One", "text")
    host.close()
    host = read(server, "wrong")
    with pytest.raises(Unauthenticated):
        host.read_head("main")
    with pytest.raises(Unauthenticated, match="give GIT_PASSWORD an access token"):
        host.open_issue("One", "text")
    host.close()


def test_an_instance_that_does_not_say_when_somebody_approved_has_it_in_its_notes(
    server: GitLabServer,
) -> None:
    project = server.repository("acme/platform/fleet")
    project.reset(project.head("main"), "next")
    seen = project.commit({"b.yaml": b"1\n"}, branch="next")
    number = project.pulls.open("Two", "next", "main").number
    host = read(server)
    old = {"approved_by": [{"user": {"id": 3, "username": "reviewer"}}]}
    server.door.faults = [ScriptedFault("GET .*/approvals", status=200, body=old, times=None)]
    (unknown,) = host.reviews(number) or ()
    assert unknown.commit == "", "nobody knows what they saw"
    record = project.pulls.get(number)
    assert record is not None
    project.pulls.reviews.submit(record, REVIEWER, "APPROVE")
    project.commit({"b.yaml": b"2\n"}, branch="next")
    (review,) = host.reviews(number) or ()
    assert review.commit == seen
    host.close()


def test_a_server_that_sends_a_byte_now_and_then_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_SECONDS", 0.5)
    began = time.monotonic()
    with slow_server(200) as url:
        asked = GitLabHost(f"{url}/acme/fleet", "", "glpat-secret")
        with pytest.raises(Unavailable, match="takes longer"):
            asked.open_pulls("main")
        asked.close()
    assert time.monotonic() - began < 5


def test_a_merge_request_of_a_fork_with_a_branch_of_our_name_is_not_ours(
    gitlab: GitLabHost, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitlab, "branches", lambda _: {"roadstead/pin/a": COMMIT, "main": COMMIT[::-1]})
    monkeypatch.setattr(gitlab, "is_descendant", lambda *_: False)
    own = {**REQUEST, "state": "opened"}
    listed = [{**own, "iid": 4, "source_project_id": 6}, own]
    exists = {"message": ["Another open merge request already exists for this source branch: !3"]}
    inbox.answers += [(409, JSON, json.dumps(exists)), (200, JSON, json.dumps(listed))]
    assert gitlab.open_pull("roadstead/pin/a", "main", PullText("title", "body")).number == 3
