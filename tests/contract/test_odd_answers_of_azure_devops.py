"""Whatever Azure DevOps answers, a call has a result or an error of ours, and shows no token."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from shared.adapters import answers
from shared.adapters.azure_devops import AzureDevOpsHost
from shared.adapters.azure_devops.client import DevOpsClient, RepositoryAddress
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.ports import CommitStatus
from shared.ports.pull_requests import Comment, PullText
from tests.support.azure_ports import StaticCredential
from tests.support.odd_bodies import JSON, refuses_any, takes_any
from tests.support.receivers import Inbox, slow_server

COMMIT = "c0ffee00" * 5
TOKEN = "a-token"
ID = str(UUID(int=7))
WHO = {"id": ID, "displayName": "Ann", "uniqueName": "ann@example.com"}
PULL = {
    "pullRequestId": 3,
    "status": "completed",
    "mergeStatus": "succeeded",
    "targetRefName": "refs/heads/main",
    "repository": {"id": ID},
    "createdBy": WHO,
    "closedDate": "2026-01-01T12:00:00.1234567Z",
    "lastMergeSourceCommit": {"commitId": COMMIT},
    "lastMergeCommit": {"commitId": COMMIT},
    "labels": [{"name": "shop", "active": True}],
}
PROPERTIES = {
    "CodeReviewThreadType": {"$value": "VoteUpdate"},
    "CodeReviewVoteResult": {"$value": "10"},
    "CodeReviewVotedByIdentity": {"$value": "1"},
}
THREAD = {
    "id": 5,
    "publishedDate": "2026-01-01T12:00:00Z",
    "comments": [{"content": "mark", "author": WHO, "commentType": "system"}],
    "properties": PROPERTIES,
    "identities": {"1": WHO},
}
ITERATION = {
    "id": 1,
    "createdDate": "2026-01-01T11:00:00Z",
    "author": WHO,
    "sourceRefCommit": {"commitId": COMMIT},
}
LISTED = {"author": WHO | {"email": "ann@example.com"}, "committer": {"email": ""}, "comment": "m"}
RULE = {"isEnabled": True, "isBlocking": True}
STATUS = {"state": "succeeded", "context": {"genre": "ci", "name": "test"}}
MOVE = {"name": "refs/heads/main", "newObjectId": COMMIT}
Call = Callable[[AzureDevOpsHost], Any]
CALLS: dict[str, tuple[Call, Any]] = {
    "status": (lambda host: host.set_status(COMMIT, CommitStatus("success", "fine", "roadstead")), STATUS),
    "pushed": (
        lambda host: host.pushed_at("main", COMMIT),
        {"value": [{"date": "2014-01-29T23:34:00.1018737Z", "refUpdates": [MOVE]}]},
    ),
    "open pulls": (lambda host: host.open_pulls("main"), {"value": [PULL]}),
    "pull": (lambda host: host.pull(3), PULL),
    "comment": (lambda host: host.comment(3, "mark"), {"value": [THREAD]}),
    "statuses": (lambda host: host.conclusions(COMMIT, "test"), {"value": [STATUS]}),
    "merged": (lambda host: host.merged_as(COMMIT), {"results": [{COMMIT: [PULL]}], "value": []}),
    "votes": (
        lambda host: host.reviews(3),
        {"value": [THREAD | ITERATION | {"id": "7".zfill(32), "vote": 10}]},
    ),
    "files": (
        lambda host: host.removed_files(3),
        {"value": [ITERATION], "changeEntries": [{"changeType": "delete", "item": {"path": "/a"}}]},
    ),
    "authors": (lambda host: host.pull_authors(3), {"value": [ITERATION | LISTED | {"id": ID}]}),
    "members": (lambda host: host.team_members("acme/ops"), {"value": [{"identity": WHO}]}),
    "guarded": (lambda host: host.is_guarded("roadstead/pin/a"), {"id": ID, "value": [RULE]}),
    "edit": (lambda host: host.edit_pull(3, PullText("title", "body")), PULL),
    "close": (lambda host: host.close_pull(3), PULL),
    "edited comment": (lambda host: host.write_comment(3, "body", over=Comment(5, "mark")), {"id": 1}),
}


@pytest.fixture
def host(inbox: Inbox) -> Iterator[AzureDevOpsHost]:
    found = AzureDevOpsHost(f"{inbox.url}/acme/fleet/_git/fleet", StaticCredential())
    found._client._user = ID
    yield found
    found.close()


@pytest.mark.lives
@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_a_result_or_an_error_of_ours(name: str, host: AzureDevOpsHost, inbox: Inbox) -> None:
    ask, body = CALLS[name]
    inbox.default = (200, JSON, json.dumps(body))
    ask(host)
    takes_any(lambda: ask(host), inbox, body)


@pytest.mark.lives
@pytest.mark.parametrize("status", [400, 403, 404, 409, 500])
def test_a_refusal_is_an_error_of_ours_whatever_it_says(
    status: int, host: AzureDevOpsHost, inbox: Inbox
) -> None:
    body = {"message": "TF401019: The repository does not exist.", "typeKey": "x"}
    refuses_any(lambda: CALLS["status"][0](host), inbox, status, body)


PAGE = "<html><title>Azure DevOps Services | Sign In</title></html>"


@pytest.mark.lives
@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "says"),
    [
        (203, {}, PAGE, Unauthenticated, "sign-in page"),
        (302, {"Location": "https://login.example"}, PAGE, Unauthenticated, "sign-in page"),
        (200, {}, PAGE, Unavailable, "cannot be read"),
        (401, {}, "", Unauthenticated, "access level Basic"),
        (401, {}, '{"message": "TF400813: The user is not authorized"}', Unauthorized, "access level Basic"),
        (403, {}, '{"message": "TF401027: You need the Git permission"}', Unauthorized, "Contribute to pull"),
        (404, {}, '{"message": "TF401019: The Git repository"}', Dependency, "cannot read it"),
        (409, {}, '{"message": "TF401192: it has changed"}', Conflict, "TF401192"),
        (400, {}, '{"message": "Invalid argument value."}', InvalidManifest, "Invalid argument"),
        (413, {}, "", TooLarge, "413"),
        (429, {"Retry-After": "7"}, '{"message": "TF400733: canceled"}', Throttled, "TF400733"),
        (429, {}, "", Throttled, "429"),
        (503, {}, "", Unavailable, "503"),
    ],
)
def test_an_error_says_what_the_caller_does_next(
    status: int,
    headers: dict[str, str],
    body: str,
    kind: type[ReconcileError],
    says: str,
    host: AzureDevOpsHost,
    inbox: Inbox,
) -> None:
    inbox.default = (status, headers, body)
    with pytest.raises(kind, match=says) as refused:
        CALLS["status"][0](host)
    assert type(refused.value) is kind
    assert TOKEN not in str(refused.value)
    if isinstance(refused.value, Throttled):
        assert refused.value.retry_after == (7 if headers else 60)
    if status in (203, 302, 401, 429, 503):  # git answers the same in another form
        with pytest.raises(ReconcileError) as of_git:
            host.tip("main")
        assert TOKEN not in str(of_git.value) + repr(of_git.value.__context__)


def test_an_answer_that_never_ends_is_not_read_to_its_end(
    host: AzureDevOpsHost, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 1000)
    inbox.default = (200, JSON, json.dumps({"value": ["x" * 2000]}))
    with pytest.raises(Unavailable):
        CALLS["open pulls"][0](host)


@pytest.mark.parametrize(
    ("url", "organization", "identities", "names"),
    [
        (
            "https://dev.azure.com/acme/My%20Fleet/_git/fleet",
            "https://dev.azure.com/acme",
            "https://vssps.dev.azure.com/acme",
            ("My Fleet", "fleet"),
        ),
        (
            "https://acme.visualstudio.com/fleets/_git/fleet/",
            "https://acme.visualstudio.com",
            "https://acme.vssps.visualstudio.com",
            ("fleets", "fleet"),
        ),
        (
            "https://tfs.example.com/tfs/Default/fleets/_git/fleet",
            "https://tfs.example.com/tfs/Default",
            "https://tfs.example.com/tfs/Default",
            ("fleets", "fleet"),
        ),
    ],
)
def test_an_address_has_an_organization_a_project_and_a_repository(
    url: str, organization: str, identities: str, names: tuple[str, str]
) -> None:
    found = RepositoryAddress.of(url)
    assert (found.organization, found.identities) == (organization, identities)
    assert (found.project, found.repository) == names
    assert found.url == url.rstrip("/")


@pytest.mark.parametrize(
    "url", ["", "https://dev.azure.com/acme", "https://dev.azure.com/_git/x", "x/y/_git/"]
)
def test_another_address_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="not the address"):
        RepositoryAddress.of(url)


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        ("platform/apps", "https://dev.azure.com/acme/platform/_git/apps"),
        ("acme/platform/_git/apps", "https://dev.azure.com/acme/platform/_git/apps"),
        ("acme/_git/apps", "https://dev.azure.com/acme/apps/_git/apps"),
        ("acme/My%20Platform/_git/apps", "https://dev.azure.com/acme/My%20Platform/_git/apps"),
        ("other/platform/_git/apps", "https://dev.azure.com/other/platform/_git/apps"),
    ],
)
def test_another_repository_is_that_of_its_own_organization(repository: str, address: str) -> None:
    fleet = AzureDevOpsHost("https://dev.azure.com/acme/fleet/_git/fleet", StaticCredential())
    other = fleet.other(repository)
    assert isinstance(other, AzureDevOpsHost)
    assert other._client.address.url == address
    fleet.close()


def test_a_credential_without_a_token_is_said_without_its_text() -> None:
    class Nobody:
        def get_token(self, *_: str, **__: Any) -> Any:
            from azure.core.exceptions import ClientAuthenticationError

            raise ClientAuthenticationError("the secret is hunter2")

    asked = DevOpsClient(RepositoryAddress("https://dev.azure.com/acme", "a", "b"), Nobody())
    with pytest.raises(Unauthenticated, match="no token for Azure DevOps") as refused:
        asked.authorization()
    assert "hunter2" not in str(refused.value)
    asked.close()


def test_a_server_that_sends_a_byte_now_and_then_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_SECONDS", 0.5)
    began = time.monotonic()
    with slow_server(200) as url:
        asked = AzureDevOpsHost(f"{url}/acme/fleet/_git/fleet", StaticCredential())
        with pytest.raises(Unavailable, match="takes longer"):
            asked.pull(3)
        asked.close()
    assert time.monotonic() - began < 5


def test_a_pull_request_of_a_fork_with_a_branch_of_our_name_is_not_ours(
    host: AzureDevOpsHost, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "branches", lambda _: {"roadstead/pin/a": COMMIT, "main": COMMIT[::-1]})
    monkeypatch.setattr(host, "is_descendant", lambda *_: False)
    own = {**PULL, "status": "active"}
    listed = {
        "value": [{**own, "pullRequestId": 4, "forkSource": {"name": "refs/heads/roadstead/pin/a"}}, own]
    }
    exists = {"message": "TF401179: An active pull request for the source and target branch already exists."}
    inbox.answers += [(409, JSON, json.dumps(exists)), (200, JSON, json.dumps(listed))]
    assert host.open_pull("roadstead/pin/a", "main", PullText("title", "body")).number == 3
