"""The GitHub stand-in with the real git client, a webhook receiver on a socket, and PyGithub."""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from localcloud.common.http_server import HttpServer
from localcloud.common.plain_http import NO_TLS
from localcloud.git.world.git_commands import git_environment
from localcloud.github.wire.github_server import GitHubServer
from shared.adapters.github import GitHubHost, github_auth
from tests.support.waiting import until
from tests.support.webhook_receiver import Receiver

pytestmark = pytest.mark.lives

if TYPE_CHECKING:
    pass

ZERO = "0" * 40
SECRET = "a webhook secret"


@dataclass(frozen=True)
class Local:
    """A server with one repository, its receiver, and a working copy of it."""

    server: GitHubServer
    receiver: Receiver
    copy: Path

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.copy,
            env={**git_environment(), "GIT_ASKPASS": "true"},
            capture_output=True,
            check=True,
            timeout=30,
        )
        return done.stdout.decode().strip()

    def commit(self, path: str, content: bytes) -> str:
        (self.copy / path).parent.mkdir(parents=True, exist_ok=True)
        (self.copy / path).write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Write {path}")
        return self.git("rev-parse", "HEAD")

    def deliveries(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = httpx.get(f"{self.server.url}/_local/deliveries", verify=NO_TLS).json()
        return answer


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    receiver = Receiver()
    with (
        HttpServer(receiver.app) as hook,
        GitHubServer(tmp_path / "host", token="local", webhook_secret=SECRET) as server,
    ):
        server.create_repository("acme/fleet")
        server.webhook_url = f"{hook.url}/api/github"
        (tmp_path / "copy").mkdir()
        case = Local(server, receiver, tmp_path / "copy")
        case.git("clone", "--quiet", server.clone_url("acme/fleet"), ".")
        yield case


def test_a_repository_is_cloned_also_without_the_suffix_of_its_url(local: Local, tmp_path: Path) -> None:
    local.commit("clusters/a/cluster.yaml", b"kind: Cluster\n")
    local.git("push", "--quiet", "origin", "main")
    url = local.server.clone_url("acme/fleet").removesuffix(".git")
    local.git("clone", "--quiet", url, str(tmp_path / "plain"))
    assert (tmp_path / "plain/clusters/a/cluster.yaml").read_bytes() == b"kind: Cluster\n"


def test_a_push_sends_one_signed_webhook_with_its_changes(local: Local) -> None:
    first = local.commit("clusters/a/cluster.yaml", b"kind: Cluster\n")
    local.git("push", "--quiet", "origin", "main")
    local.commit("clusters/b/cluster.yaml", b"kind: Cluster\n")
    local.git("rm", "--quiet", "clusters/a/cluster.yaml")
    second = local.commit("clusters/b/cluster.yaml", b"kind: Cluster\nspec: {}\n")
    local.git("push", "--quiet", "origin", "main")
    created, event = local.receiver.events(2)
    headers, body = local.receiver.seen[1]
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["x-hub-signature-256"] == f"sha256={signature}"
    assert headers["x-github-event"] == "push"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("GitHub-Hookshot/")
    assert (created["before"], created["after"], created["created"]) == (ZERO, first, True)
    assert (event["ref"], event["before"], event["after"]) == ("refs/heads/main", first, second)
    assert [event[flag] for flag in ("created", "deleted", "forced")] == [False, False, False]
    assert [c["added"] for c in event["commits"]] == [["clusters/b/cluster.yaml"], []]
    assert event["head_commit"] == event["commits"][-1]
    assert event["head_commit"]["removed"] == ["clusters/a/cluster.yaml"]
    assert event["head_commit"]["modified"] == ["clusters/b/cluster.yaml"]
    assert event["repository"]["full_name"] == "acme/fleet"
    assert event["repository"]["default_branch"] == "main"
    assert event["compare"].endswith(f"/compare/{first[:12]}...{second[:12]}")
    assert len(local.receiver.seen) == 2


def test_branches_tags_deletes_and_forced_pushes_have_their_own_events(local: Local) -> None:
    base = local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main", "main:refs/heads/next")
    local.git("tag", "--annotate", "v1", "--message", "One")
    local.git("push", "--quiet", "origin", "v1")
    local.git("push", "--quiet", "origin", ":next")
    old = local.commit("a.yaml", b"2")
    local.git("push", "--quiet", "origin", "main")
    local.git("reset", "--quiet", "--hard", base)
    new = local.commit("a.yaml", b"3")
    local.git("push", "--quiet", "--force", "origin", "main")
    local.receiver.events(6)
    events = [delivery["request"]["payload"] for delivery in local.deliveries()]
    assert [e["ref"].removeprefix("refs/") for e in events] == [
        *("heads/main", "heads/next", "tags/v1", "heads/next", "heads/main", "heads/main")
    ]
    tag, deleted, _, forced = events[2:]
    assert (tag["created"], tag["commits"], tag["head_commit"]["id"]) == (True, [], base)
    assert (deleted["before"], deleted["after"], deleted["head_commit"]) == (base, ZERO, None)
    assert (deleted["deleted"], deleted["forced"]) == (True, False)
    assert (forced["forced"], forced["before"], forced["after"]) == (True, old, new)
    assert [commit["id"] for commit in forced["commits"]] == [new]


def test_a_push_that_changes_nothing_or_is_refused_fires_nothing(local: Local) -> None:
    local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main")
    local.git("push", "--quiet", "origin", "main")
    with pytest.raises(subprocess.CalledProcessError):
        local.git("push", "--quiet", "origin", ":main")  # the default branch
    assert len(local.deliveries()) == 1


def test_a_redelivery_keeps_the_guid_and_the_body(local: Local) -> None:
    local.receiver.status = 500
    local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main")
    until(lambda: local.deliveries()[0]["status"] == "Invalid HTTP Response: 500")
    time.sleep(0.05)
    assert len(local.receiver.seen) == 1  # GitHub does not try again by itself
    local.receiver.status = 202
    answer = httpx.post(f"{local.server.url}/_local/deliveries/1/redeliver")
    assert answer.status_code == 202
    until(lambda: local.deliveries()[-1]["status"] == "OK")
    (before, body), (after, again) = local.receiver.seen
    assert (before["x-github-delivery"], body) == (after["x-github-delivery"], again)
    first, second = local.deliveries()
    assert (first["id"], first["redelivery"], first["status_code"]) == (1, False, 500)
    assert (second["id"], second["redelivery"], second["response"]["payload"]) == (2, True, "taken")
    assert httpx.post(f"{local.server.url}/_local/deliveries/9/redeliver").status_code == 404


def test_dropped_webhooks_are_lost_until_someone_redelivers_them(local: Local) -> None:
    httpx.put(f"{local.server.url}/_local/webhooks", json={"drop": 1}).raise_for_status()
    local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main")
    last = local.commit("a.yaml", b"2")
    local.git("push", "--quiet", "origin", "main")
    assert [event["after"] for event in local.receiver.events(1)] == [last]
    lost = local.deliveries()[0]
    assert (lost["status"], lost["status_code"]) == ("dropped", 0)
    httpx.post(f"{local.server.url}/_local/deliveries/{lost['guid']}/redeliver").raise_for_status()
    assert local.receiver.events(2)[1]["ref"] == "refs/heads/main"


def test_a_receiver_that_is_down_loses_the_event_and_a_ping_reaches_one_that_is_up(local: Local) -> None:
    with HttpServer(local.receiver.app) as stopped:
        up, local.server.webhook_url = local.server.webhook_url, stopped.url
    local.server.ping("acme/fleet")
    until(lambda: local.deliveries()[0]["status"].startswith("failed to connect"))
    local.server.webhook_url = up
    local.server.ping("acme/fleet")
    local.receiver.events(1)
    assert local.receiver.seen[0][0]["x-github-event"] == "ping"


def test_git_refuses_a_wrong_password_and_takes_the_token(local: Local) -> None:
    local.commit("a.yaml", b"1")

    def push(password: str) -> None:
        # Unasked, as CI systems send it: git itself shows what a URL holds only when it is asked for it.
        basic = base64.b64encode(f"x-access-token:{password}".encode()).decode()
        local.git("-c", f"http.extraHeader=Authorization: Basic {basic}", "push", "origin", "main")

    with pytest.raises(subprocess.CalledProcessError):
        push("wrong")
    push("local")
    with pytest.raises(subprocess.CalledProcessError):
        local.git("ls-remote", local.server.clone_url("acme/other"))
    assert len(local.receiver.events(1)) == 1


def test_a_large_binary_push_is_read_back_and_a_single_commit_can_be_fetched(local: Local) -> None:
    noise = b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(65_536))
    commit = local.commit("noise.bin", noise)
    local.git("push", "--quiet", "origin", "main")
    adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=local.server.url)
    (entry,) = adapter.tree(adapter.read_head("main").commit)
    assert adapter.blob(entry.sha) == noise
    adapter.close()
    local.git("fetch", "--quiet", "--depth=1", "origin", commit)


def events_of(local: Local, name: str) -> list[dict[str, Any]]:
    deliveries = (d for d in local.deliveries() if d["event"] == name)
    return [delivery["request"]["payload"] for delivery in deliveries]


def branch(local: Local, name: str, path: str) -> str:
    local.git("switch", "--quiet", "--create", name)
    commit = local.commit(path, b"1")
    local.git("push", "--quiet", "origin", name)
    return commit


def test_a_pull_request_lists_its_commits_and_closes_when_they_are_merged(local: Local) -> None:
    base = local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main")
    head = branch(local, "next", "b.yaml")
    answer = httpx.post(f"{local.server.url}/_local/pulls", json={"head": "next", "title": "Next"})
    assert (answer.status_code, answer.json()["number"]) == (201, 1)
    (opened,) = events_of(local, "pull_request")
    assert (opened["action"], opened["number"]) == ("opened", 1)
    assert (opened["pull_request"]["head"]["sha"], opened["pull_request"]["base"]["sha"]) == (head, base)
    assert opened["pull_request"]["head"]["repo"]["full_name"] == opened["repository"]["full_name"]
    newer = local.commit("b.yaml", b"2")
    local.git("push", "--quiet", "origin", "next")
    event = events_of(local, "pull_request")[-1]
    assert (event["action"], event["before"], event["after"]) == ("synchronize", head, newer)
    local.git("fetch", "--quiet", "origin", "refs/pull/1/head")
    assert local.git("rev-parse", "FETCH_HEAD") == newer
    local.git("switch", "--quiet", "main")
    local.git("merge", "--quiet", "--no-ff", "next", "--message", "Merge")
    local.git("push", "--quiet", "origin", "main")
    closed = events_of(local, "pull_request")[-1]
    assert (closed["action"], closed["pull_request"]["merged"]) == ("closed", True)


def test_a_pull_request_is_edited_closed_and_opened_again_over_rest(local: Local) -> None:
    local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main", "main:refs/heads/release")
    branch(local, "next", "b.yaml")
    headers = {"Authorization": "Bearer local"}
    root = f"{local.server.url}/repos/acme/fleet/pulls"
    wanted = {"head": "next", "base": "main", "title": "Next"}
    assert httpx.post(root, json=wanted, headers=headers).status_code == 201
    twice = httpx.post(root, json=wanted, headers=headers)
    assert (twice.status_code, "already exists" in twice.text) == (422, True)
    for change in ({"base": "release"}, {"state": "closed"}, {"state": "open"}, {"state": "open"}):
        httpx.patch(f"{root}/1", json=change, headers=headers).raise_for_status()
    events = events_of(local, "pull_request")
    assert [event["action"] for event in events] == ["opened", "edited", "closed", "reopened"]
    assert events[1]["changes"]["base"]["ref"] == {"from": "main"}
    assert httpx.get(f"{root}?base=main", headers=headers).json() == []
    local.git("push", "--quiet", "origin", ":next")
    assert events_of(local, "pull_request")[-1]["action"] == "closed"


def test_a_pull_request_from_a_fork_has_another_repository_at_its_head(local: Local) -> None:
    local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main")
    branch(local, "theirs", "b.yaml")
    wanted = {"repository": "acme/fleet", "head": "theirs", "title": "Ours", "fork": True}
    httpx.post(f"{local.server.url}/_local/pulls", json=wanted).raise_for_status()
    (opened,) = events_of(local, "pull_request")
    source = opened["pull_request"]["head"]["repo"]
    assert (source["full_name"], source["fork"]) == ("contributor/fleet", True)
    missing = {"repository": "acme/none", "head": "theirs", "title": "Ours"}
    assert httpx.post(f"{local.server.url}/_local/pulls", json=missing).status_code == 404
    assert httpx.post(f"{local.server.url}/_local/pulls", json={"head": "x", "title": "x"}).status_code == 422


def test_check_runs_are_for_apps_alone(local: Local) -> None:
    commit = local.commit("a.yaml", b"1")
    local.git("push", "--quiet", "origin", "main")
    answer = httpx.post(
        f"{local.server.url}/repos/acme/fleet/check-runs",
        json={"name": "plan", "head_sha": commit},
        headers={"Authorization": "Bearer local"},
    )
    assert (answer.status_code, answer.json()["message"]) == (403, "You must authenticate via a GitHub App.")
