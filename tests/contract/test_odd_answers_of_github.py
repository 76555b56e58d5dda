"""Whatever GitHub answers, a call has a result or an error of ours, and nothing loops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shared.adapters.github import GitHubHost, github_auth
from shared.cluster.failures.errors import InvalidManifest, ReconcileError, Unavailable
from shared.ports import CommitStatus, NewCommit, PullText
from tests.support.odd_bodies import refuses_any, takes_any
from tests.support.receivers import Inbox

pytestmark = pytest.mark.lives

COMMIT = "c0ffee00" * 5
DATE = {"Content-Type": "application/json", "Date": "Thu, 01 Jan 2026 12:00:00 GMT"}
USER = {"login": "ann", "id": 7}
REPO = {"id": 5, "full_name": "acme/fleet"}
PULL = {
    "number": 3,
    "state": "open",
    "html_url": "https://github.com/acme/fleet/pull/3",
    "head": {"sha": COMMIT, "repo": REPO},
    "base": {"ref": "main", "repo": REPO},
    "mergeable": True,
    "merge_commit_sha": COMMIT,
    "merged_at": "2026-01-01T12:00:00Z",
    "labels": [{"name": "shop"}],
    "user": USER,
}
PERSON = {"email": "ann@example.com"}
LISTED = {"sha": COMMIT, "commit": {"author": PERSON, "committer": PERSON, "message": "m"}, "parents": []}
REVIEW = {
    "id": 1,
    "user": USER,
    "state": "APPROVED",
    "commit_id": COMMIT,
    "submitted_at": "2026-01-01T12:00:00Z",
    "html_url": "https://github.com/x",
    "body": "",
}
FILE = {"path": "a.yaml", "mode": "100644", "type": "blob", "sha": COMMIT, "size": 3}
REFERENCE = {"object": {"sha": COMMIT}, "id": 5}
TEXT = PullText("title", "body")
NEW = NewCommit({"clusters/a.yaml": b"a: 1"}, "message", (COMMIT,))
Call = Callable[[GitHubHost], Any]
CALLS: dict[str, tuple[Call, Any]] = {
    "head": (lambda github: github.read_head("main"), REFERENCE),
    "descendant": (lambda github: github.is_descendant(COMMIT, "b" * 40), {"status": "ahead"}),
    "changes": (lambda github: github.changes(COMMIT, "a", 5), [LISTED]),
    "changes since": (
        lambda github: github.changes_since(COMMIT, "b" * 40, 100),
        {"total_commits": 1, "commits": [LISTED]},
    ),
    "branches": (lambda github: github.branches("roadstead/pin/"), [{"ref": "refs/heads/a", **REFERENCE}]),
    "guarded": (lambda github: github.is_guarded("roadstead/pin/a"), [{"type": "update"}]),
    "files between": (lambda github: github.files_between(COMMIT, "b" * 40), {"files": [{"filename": "a"}]}),
    "tree": (lambda github: github.tree(COMMIT), {"truncated": False, "tree": [FILE]}),
    "blob": (lambda github: github.blob("b" * 40), {"content": "YQ==", "encoding": "base64"}),
    "status": (
        lambda github: github.set_status(COMMIT, CommitStatus("success", "fine", "roadstead", "")),
        {"id": 1, "state": "success"},
    ),
    "open pulls": (lambda github: github.open_pulls("main"), [PULL]),
    "pull": (lambda github: github.pull(3), PULL),
    "comment": (lambda github: github.comment(3, "mark"), [{"id": 1, "body": "mark", "user": USER}]),
    "check runs": (
        lambda github: github.conclusions(COMMIT, "test"),
        {
            "check_runs": [
                {"id": 1, "name": "test", "status": "completed", "conclusion": None, "app": {"id": 2}}
            ]
        },
    ),
    "merged": (lambda github: github.merged_as(COMMIT), [PULL]),
    "reviews": (lambda github: github.reviews(3), [REVIEW]),
    "files": (lambda github: github.removed_files(3), [{"status": "removed", "filename": "a"}]),
    "authors": (
        lambda github: github.pull_authors(3),
        [{"author": USER, "committer": None, "commit": {"message": "m"}}],
    ),
    "members": (lambda github: github.team_members("acme/ops"), [USER]),
    "issue": (lambda github: github.find_issue("mark"), [{"number": 1, "user": USER, "body": "mark"}]),
    "issues of people": (
        lambda github: github.newest_issues(),
        {
            "data": {
                "repository": {
                    "issues": {
                        "nodes": [
                            {
                                "number": 1,
                                "body": "text",
                                "createdAt": "2026-01-01T00:00:00Z",
                                "lastEditedAt": None,
                                "author": {"__typename": "User", "login": "ann", "databaseId": 7},
                            }
                        ]
                    }
                }
            }
        },
    ),
    "new issue": (lambda github: github.open_issue("title", "body"), {"number": 1}),
    "tip": (lambda github: github.tip("roadstead/x"), REFERENCE),
    "commit": (lambda github: github.add_commit(NEW), {"sha": COMMIT, "tree": {"sha": COMMIT}}),
    "new pull": (lambda github: github.open_pull("roadstead/x", "main", TEXT), PULL),
}


@pytest.fixture
def github(inbox: Inbox) -> Iterator[GitHubHost]:
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=inbox.url)
    inbox.answers.append((200, DATE, json.dumps(USER)))
    assert adapter._client.login == "ann"
    yield adapter
    adapter.close()


def again(github: GitHubHost) -> None:
    """Empty its caches."""
    for known in (github._compared, github._changes, github._files, github._trees):
        known.cache_clear()
    github._answers._known.clear()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_a_result_or_an_error_of_ours(name: str, github: GitHubHost, inbox: Inbox) -> None:
    ask, body = CALLS[name]
    inbox.default = (200, DATE, json.dumps(body))
    if name != "blob":  # its content is not that of its id
        ask(github)
    takes_any(lambda: ask(github), inbox, body, headers=DATE, before=lambda: again(github))


ERROR = {
    "message": "Validation Failed",
    "errors": [{"resource": "Status", "code": "custom", "message": "too long"}],
    "documentation_url": "https://docs.github.com/rest",
    "block": {"reason": "dmca", "html_url": "https://github.com/x"},
}


@pytest.mark.parametrize("status", [403, 404, 422, 451, 500])
def test_a_refusal_is_an_error_of_ours_whatever_it_says(
    status: int, github: GitHubHost, inbox: Inbox
) -> None:
    refuses_any(lambda: CALLS["status"][0](github), inbox, status, ERROR, DATE)


def test_a_refusal_whose_errors_are_no_list_has_its_message(github: GitHubHost, inbox: Inbox) -> None:
    inbox.default = (422, DATE, json.dumps({"message": "Validation Failed", "errors": 5}))
    with pytest.raises(InvalidManifest, match="acme/fleet: Validation Failed"):
        CALLS["status"][0](github)


@pytest.mark.parametrize("reset", ["", "x", "-1", "9" * 400, "1e9"])
@pytest.mark.parametrize(
    "date", ["", "x", "Thu, 01 Jan 2026 12:00:00 -0000", "Thu, 01 Jan 9999 23:59:59 -2359"]
)
def test_a_limit_with_an_unreadable_end_is_one(
    reset: str, date: str, github: GitHubHost, inbox: Inbox
) -> None:
    headers = {**DATE, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset, "Date": date}
    for more in ({}, {"Retry-After": reset}, {"Retry-After": date}):
        inbox.default = (403, headers | more, "{}")
        with pytest.raises(ReconcileError):
            CALLS["head"][0](github)


@pytest.mark.parametrize("date", ["x", "Thu, 01 Jan 2026 12:00:00 -0000"])
def test_a_head_without_a_time_is_none(date: str, github: GitHubHost, inbox: Inbox) -> None:
    inbox.default = (200, {**DATE, "Date": date}, json.dumps(REFERENCE))
    with pytest.raises(Unavailable):
        CALLS["head"][0](github)


def test_a_pull_request_of_a_fork_of_the_same_owner_is_not_ours(github: GitHubHost, inbox: Inbox) -> None:
    fork = {**PULL, "number": 4, "head": {"sha": COMMIT, "repo": {"full_name": "acme/fleet-fork"}}}
    own = {**PULL, "head": {"sha": COMMIT, "repo": {"full_name": "acme/fleet"}}}
    exists = {"message": "Validation Failed", "errors": [{"message": "A pull request already exists for x"}]}
    inbox.answers += [(422, DATE, json.dumps(exists)), (200, DATE, json.dumps([fork, own]))]
    assert github.open_pull("roadstead/x", "main", TEXT).number == own["number"]
