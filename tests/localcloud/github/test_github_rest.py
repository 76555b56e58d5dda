"""GitHub's REST API as the adapter sees it: one request a call, errors by class, limits, ETags."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import httpx
import pytest

from localcloud.common.clock import ManualClock, system_clock
from localcloud.common.front_door import ScriptedFault
from localcloud.common.plain_http import NO_TLS
from localcloud.github.wire.github_server import GitHubServer
from shared.adapters.github import GitHubHost, github_auth
from shared.adapters.github.client import LastAnswers
from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Withheld,
)
from shared.ports import CommitStatus
from tests.support.github_app import APP, KEY

pytestmark = pytest.mark.lives

SECRET = "a webhook secret"


def get(server: GitHubServer, path: str, **headers: str) -> httpx.Response:
    sent = {"Authorization": "Bearer local", **headers}
    return httpx.get(f"{server.url}{path}", headers=sent, verify=NO_TLS)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path / "host", token="local", webhook_secret=SECRET) as served:
        served.create_repository("acme/fleet")
        yield served


def test_a_head_costs_two_requests_each_other_call_one_and_a_blob_is_read_once(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    git.commit({"a.yaml": b"1"})
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    server.door.requests.clear()
    commit = adapter.read_head("main").commit
    assert adapter.is_descendant(commit, commit)
    (entry,) = adapter.tree(commit)
    threads = [threading.Thread(target=adapter.blob, args=(entry.sha,)) for _ in range(4)]
    adapter.blob(entry.sha)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    adapter.set_status(commit, CommitStatus("success", "Ready", "roadstead"))
    adapter.close()
    root = "/repos/acme/fleet"
    assert [f"{r['method']} {r['path']}" for r in server.door.requests] == [
        f"GET {root}/git/ref/heads/main",
        f"GET {root}",
        f"GET {root}/compare/{commit}...{commit}",
        f"GET {root}/git/trees/{commit}",
        f"GET {root}/git/blobs/{entry.sha}",
        f"POST {root}/statuses/{commit}",
    ]
    combined = get(server, f"{root}/commits/main/status").json()
    assert (combined["state"], combined["statuses"][0]["context"]) == ("success", "roadstead")


def test_two_commits_are_compared_once_and_an_unknown_one_is_asked_for_again(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    first, second = git.commit({"a.yaml": b"1"}), git.commit({"a.yaml": b"2"})
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    server.door.requests.clear()
    assert [adapter.is_descendant(second, first) for _ in range(3)] == [True] * 3
    assert [adapter.is_descendant(first, second) for _ in range(3)] == [False] * 3
    assert len(server.door.requests) == 2
    assert [adapter.is_descendant("0" * 40, first) for _ in range(3)] == [False] * 3
    assert len(server.door.requests) == 5
    adapter.close()


def test_the_adapter_translates_errors_and_never_shows_the_token(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    git.commit({"a.yaml": b"1"})
    secret = "ghp_verysecret"
    wrong = GitHubHost("acme/fleet", github_auth(token=secret), base_url=server.url)
    with pytest.raises(Unauthenticated, match="acme/fleet: Bad credentials") as refused:
        wrong.read_head("main")
    assert secret not in repr(refused.value)
    assert refused.value.request_id
    wrong.close()
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    script = [
        ({"status": 403, "body": {"message": "Resource not accessible by integration"}}, Unauthorized, None),
        ({"status": 403, "headers": {"Retry-After": "7"}}, Throttled, 7),
        ({"status": 429, "headers": {"Retry-After": "3"}}, Throttled, 3),
        ({"status": 403, "body": {"message": "You have exceeded a secondary rate limit."}}, Throttled, 60),
        ({"status": 502, "body": {"message": "Server Error"}}, Unavailable, None),
    ]
    for rule, kind, seconds in script:
        faults = [{"match": "GET .*/git/ref/", **rule}]
        httpx.put(f"{server.url}/_local/faults", json=faults).raise_for_status()
        with pytest.raises(kind) as failed:
            adapter.read_head("main")
        assert getattr(failed.value, "retry_after", None) == seconds
    server.rate_limit.limit = 0
    with pytest.raises(Throttled, match="rate limit exceeded") as throttled:
        adapter.read_head("main")
    assert 3500 < (throttled.value.retry_after or 0) <= 3600
    adapter.close()


def test_a_github_that_cannot_be_reached_is_unavailable(tmp_path: Path) -> None:
    with GitHubServer(tmp_path, token="local", webhook_secret=SECRET) as server:
        url = server.url
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=url)
    with pytest.raises(Unavailable, match="did not answer"):
        adapter.read_head("main")
    adapter.close()


def test_a_github_app_signs_in_and_its_token_ends_after_an_hour(tmp_path: Path) -> None:
    clock = ManualClock(system_clock())
    with GitHubServer(tmp_path, token="local", webhook_secret=SECRET, app=APP, clock=clock) as server:
        commit = server.create_repository("acme/fleet").commit({"a.yaml": b"1"})

        def adapter(**changed: str) -> GitHubHost:
            credentials = {"app_id": "4711", "private_key": KEY, "installation_id": "42", **changed}
            return GitHubHost("acme/fleet", github_auth(**credentials), base_url=server.url)

        good = adapter(private_key=KEY.replace("\n", "\\n"))
        assert (good.read_head("main").commit, good.read_head("main").commit) == (commit, commit)
        asked = [r["path"] for r in server.door.requests]
        assert asked.count("/app/installations/42/access_tokens") == 1
        with pytest.raises(Unauthenticated, match="not an RSA key"):
            adapter(private_key="nonsense").read_head("main")
        with pytest.raises(Dependency):
            adapter(installation_id="43").read_head("main")
        clock.advance(timedelta(hours=1).total_seconds())
        with pytest.raises(Unauthenticated):
            good.read_head("main")
        with pytest.raises(Unauthenticated, match="must be in the future"):
            adapter().read_head("main")  # the client's clock is an hour late now
        good.close()


def test_an_answer_that_did_not_change_is_a_304_and_costs_nothing(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    git.commit({"a.yaml": b"1"})
    path = "/repos/acme/fleet/git/ref/heads/main"
    first = get(server, path)
    again = get(server, path, **{"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    git.commit({"a.yaml": b"2"})
    assert get(server, path, **{"If-None-Match": first.headers["etag"]}).status_code == 200


def spent(server: GitHubServer) -> int:
    """Return how many requests GitHub has counted before this one."""
    return int(get(server, "/repos/acme/fleet").headers["x-ratelimit-used"]) - 1


def test_a_hundred_deletes_read_a_head_that_stays_and_nothing_of_that_counts(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    first = git.commit({"a.yaml": b"1"})
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    adapter.read_head("main")
    before, asked = spent(server), len(server.door.requests)
    heads = [adapter.read_head("main") for _ in range(100)]
    assert {head.commit for head in heads} == {first}
    assert len(server.door.requests) - asked == 200  # each of them asks
    assert spent(server) - before == 1  # the request that asked for the number before
    adapter.close()


def test_each_read_shows_what_the_branch_and_the_name_lead_to_now(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    first = git.commit({"a.yaml": b"1"})
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    assert [adapter.read_head("main").commit for _ in range(2)] == [first, first]
    second = git.commit({"a.yaml": b"2"})
    assert [adapter.read_head("main").commit for _ in range(2)] == [second, second]
    git.id += 1  # another repository has taken the name
    assert adapter.read_head("main").repository == git.id
    server.door.faults = [ScriptedFault("/git/ref/", 404, {"message": "Not Found"})]
    with pytest.raises(Dependency, match="no branch main"):
        adapter.read_head("main")
    assert adapter.read_head("main").commit == second
    adapter.close()


def test_what_a_304_does_not_state_is_as_it_was_and_its_time_is_that_of_now() -> None:
    """RFC 9110, 15.4.5: a 304 has Date and ETag, and need not have the other headers."""
    answers = iter(
        [
            (200, {"etag": '"1"', "date": "then", "github-authentication-token-expiration": "soon"}, "{}"),
            (304, {"etag": '"1"', "date": "now"}, ""),
        ]
    )
    asked = list[dict[str, str]]()

    def request(_method: str, _url: str, *, headers: dict[str, str]) -> object:
        asked.append(headers)
        return next(answers)

    api: Any = SimpleNamespace(requester=SimpleNamespace(requestJson=request))
    known = LastAnswers()
    known.read(api, "/repos/acme/fleet")
    headers, found = known.read(api, "/repos/acme/fleet")
    assert asked == [{}, {"If-None-Match": '"1"'}]
    assert (headers["date"], headers["github-authentication-token-expiration"], found) == ("now", "soon", {})


def test_the_reading_calls_answer_as_github_does(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    one = git.commit({"clusters/a/cluster.yaml": b"1", "README.md": b"# Fleet"})
    two = git.commit({"clusters/a/cluster.yaml": b"2", "README.md": None})
    root = "/repos/acme/fleet"
    answers = {path: get(server, root + path) for path in ("", "/branches/main", "/commits/main")}
    assert answers[""].json()["default_branch"] == "main"
    assert answers["/branches/main"].json()["commit"]["sha"] == two
    files = {f["filename"]: f["status"] for f in answers["/commits/main"].json()["files"]}
    assert files == {"clusters/a/cluster.yaml": "modified", "README.md": "removed"}
    compared = get(server, f"{root}/compare/{one}...main").json()
    assert (compared["status"], compared["ahead_by"], len(compared["files"])) == ("ahead", 1, 2)
    second = get(server, f"{root}/compare/{one}...main?per_page=1&page=2").json()
    assert (second["status"], second["commits"], second["files"]) == ("ahead", [], [])
    three = git.commit({"clusters/b/cluster.yaml": b"1"})
    oldest = get(server, f"{root}/compare/{one}...main?per_page=1").json()
    assert ([commit["sha"] for commit in oldest["commits"]], oldest["total_commits"]) == ([two], 2)
    every = get(server, f"{root}/compare/{one}...main").json()["commits"]
    assert [document["sha"] for document in every] == [two, three]
    git.reset(two)
    listed = get(server, f"{root}/contents/clusters?ref={one}").json()
    assert [(entry["type"], entry["path"]) for entry in listed] == [("dir", "clusters/a")]
    assert get(server, f"{root}/contents/README.md?ref={one}").json()["size"] == 7
    missing = {"/branches/x": 404, "/commits/x": 422, "/git/commits/x": 404, "/nothing": 404}
    assert {path: get(server, root + path).status_code for path in missing} == missing
    assert httpx.get(server.url + root).status_code == 401
    assert get(server, "/repos/acme/none").status_code == 404


@pytest.mark.long
def test_a_tree_of_more_than_a_hundred_thousand_entries_is_truncated(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    files: dict[str, bytes | None] = {f"{i % 320}/{i}": b"" for i in range(99_680)}
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    assert len(adapter.tree(git.commit(files))) == 99_680  # and 320 folders
    with pytest.raises(Unavailable, match="exceeds GitHub"):
        adapter.tree(git.commit({"one more": b""}))
    adapter.close()


def linger(frame: FrameType, event: str, _: object) -> None:
    """Let the other threads go first wherever PyGithub is about to send what it noted."""
    if event == "call" and frame.f_code.co_name == "getresponse":
        time.sleep(0.001)


def test_threads_that_read_side_by_side_each_get_their_own_answer(server: GitHubServer) -> None:
    contents = {f"{number}.txt": b"content %d" % number for number in range(64)}
    commit = server.repository("acme/fleet").commit(contents)
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    entries = adapter.tree(commit)
    threading.setprofile(linger)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda entry: (entry.path, adapter.blob(entry.sha)), entries))
    finally:
        threading.setprofile(None)
    adapter.close()
    assert dict(found) == contents


def test_a_blob_whose_content_does_not_match_its_id_is_rejected(server: GitHubServer) -> None:
    git = server.repository("acme/fleet")
    (entry,) = git.entries(git.commit({"a.yaml": b"1"}))
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    other = {"sha": entry.sha, "encoding": "base64", "content": base64.b64encode(b"2").decode()}
    server.door.faults = [ScriptedFault("GET .*/git/blobs/", status=200, body=other)]
    with pytest.raises(Unavailable, match=entry.sha):
        adapter.blob(entry.sha)
    assert adapter.blob(entry.sha) == b"1"
    adapter.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_renamed_repository_is_an_error_that_names_the_setting(server: GitHubServer, status: int) -> None:
    commit = server.repository("acme/fleet").commit({"clusters/a/cluster.yaml": b"1"})
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    moved = {"Location": f"{server.url}/repos/acme/fleet/git/trees/{commit}"}
    server.door.faults = [ScriptedFault("/repos/", status=status, headers=moved, times=None)]
    calls: list[Callable[[], object]] = [
        lambda: adapter.read_head("main"),
        lambda: adapter.tree(commit),
        lambda: adapter.blob("1" * 40),
        lambda: adapter.set_status(commit, CommitStatus("success", "", "c")),
    ]
    for call in calls:
        with pytest.raises(Withheld, match=r"acme/fleet.*renamed.*GITHUB_REPOSITORY"):
            call()
    assert len(server.door.requests) == len(calls)
    adapter.close()


INTEGRATION = {"message": "Resource not accessible by integration"}
TOO_MANY = {"message": "Validation Failed", "errors": [{"message": "maximum number of statuses"}]}


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (
            ScriptedFault("POST", 422, TOO_MANY),
            InvalidManifest,
            "Validation Failed: maximum number of statuses",
        ),
        (
            ScriptedFault("POST", 422, {"message": "No commit found for SHA: 1"}),
            InvalidManifest,
            "No commit found",
        ),
        (ScriptedFault("POST", 403, INTEGRATION), Unauthorized, "not accessible by integration"),
        (ScriptedFault("POST", 404, {"message": "Not Found"}), Dependency, "the credential cannot read it"),
        (ScriptedFault("POST", 429, {}, {"Retry-After": "9"}), Throttled, "gave no reason"),
    ],
)
def test_a_refused_status_has_the_message_of_github(
    server: GitHubServer, fault: ScriptedFault, kind: type[ReconcileError], message: str
) -> None:
    commit = server.repository("acme/fleet").commit({"a.yaml": b"1"})
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
    server.door.faults = [fault]
    with pytest.raises(kind, match=message) as refused:
        adapter.set_status(commit, CommitStatus("success", "", "c"))
    assert getattr(refused.value, "retry_after", None) == (9 if kind is Throttled else None)
    adapter.close()
