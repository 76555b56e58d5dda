"""What a git host says of its credential and of the webhook: what it may, and what arrived."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localcloud.github.wire.github_auth import GitHubApp
from localcloud.github.wire.github_server import GitHubServer
from localcloud.gitlab.wire.gitlab_server import GitLabServer
from localcloud.gitlab.wire.gitlab_webhooks import Hook
from shared.adapters.github import GitHubHost, github_auth
from shared.adapters.github.host import end_of_token
from shared.cluster.failures.errors import Dependency, Unauthenticated, Unauthorized
from shared.ports.git_host import CommitStatus, HookDelivery
from tests.support.git_hosts import CASES, WITH_A_TOKEN, Case, git_host_case
from tests.support.github_app import APP, KEY


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    with git_host_case(request.param, tmp_path) as found:
        yield found


def test_an_app_knows_what_it_may_and_a_token_does_not(case: Case) -> None:
    found = case.host.permissions()
    assert (found is not None) == case.app
    if found is not None:
        assert {name: found[name] for name in ("statuses", "metadata")} == {
            "statuses": "write",
            "metadata": "read",
        }


@pytest.mark.parametrize("case", ["adapter"], indirect=True)
def test_a_token_that_may_write_nothing_is_said_where_github_says_it(case: Case) -> None:
    assert case.server is not None
    case.git.commit({"a.yaml": b"1"})
    credentials = case.server.credentials
    for scopes in ("", "repo", "read:org, repo"):
        credentials.token_scopes = scopes
        assert case.host.permissions() is None
    credentials.token_scopes = "read:org, repo:status"
    with pytest.raises(Unauthorized, match=r"scopes read:org, repo:status, and writes nothing without repo$"):
        case.host.permissions()
    credentials.token_scopes, credentials.token_writes = "", False
    with pytest.raises(Unauthorized, match="GITHUB_TOKEN has no role that writes to acme/fleet"):
        case.host.permissions()
    with pytest.raises(Unauthorized):
        case.host.set_status(case.git.head("main"), CommitStatus("success", "done", "roadstead"))


def test_the_newest_deliveries_come_first_and_a_token_sees_none(case: Case) -> None:
    if isinstance(gitlab := case.other_server, GitLabServer):
        gitlab.hooks.hook = Hook("http://127.0.0.1:9/api/webhook")
        assert case.host.deliveries() == (), "GitLab lists none with a time"
        failed = Hook(
            "http://127.0.0.1:9/api/webhook",
            failures=4,
            disabled_until=datetime.now(UTC) + timedelta(hours=1),
        )
        for hook, said in ((failed, "until 20"), (replace(failed, failures=40), "until somebody tests it")):
            gitlab.hooks.hook = hook
            with pytest.raises(Dependency, match=f"GitLab has disabled the webhook 1 after failures, {said}"):
                case.host.deliveries()
        gitlab.hooks.hook = replace(failed, url="http://127.0.0.1:9/api/of-somebody-else")
        assert case.host.deliveries() == ()
        gitlab.api.is_maintainer = False
        assert case.host.deliveries() is None
        return
    if case.other_server is not None:
        assert case.host.deliveries() == (), "Azure DevOps has a list for each subscription"
        return
    if case.server is None:
        at = datetime(2026, 11, 1, tzinfo=UTC)
        case.host.delivered += [HookDelivery("a", "ping", at, 0), HookDelivery("b", "ping", at, 0)]  # type: ignore[attr-defined]
    else:
        case.server.webhook_url = "http://127.0.0.1:9/api/github"
        for _ in range(2):
            case.server.ping("acme/fleet")
        end = time.monotonic() + 20
        while any(found.is_pending for found in case.server.hooks.deliveries()):
            assert time.monotonic() < end
            time.sleep(0.05)
    found = case.host.deliveries()
    if not case.app:
        assert found is None
        return
    assert found is not None
    assert [(delivery.kind, delivery.status, delivery.arrived) for delivery in found] == [
        ("ping", 0, False)
    ] * 2
    if case.server is not None:
        sent = [delivery.guid for delivery in case.server.hooks.deliveries()]
        assert [delivery.event_id for delivery in found] == sent[::-1]


def test_an_app_that_is_no_longer_installed_is_said(tmp_path: Path) -> None:
    with git_host_case("adapter as app", tmp_path) as case:
        assert case.server is not None
        case.server.credentials.register(GitHubApp(APP.id, APP.public_key, 7))
        auth = github_auth(app_id=APP.id, private_key=KEY, installation_id=str(APP.installation))
        host = GitHubHost("acme/fleet", auth, base_url=case.server.url)
        with pytest.raises(Dependency, match="is not installed"):
            host.permissions()
        host.close()


@pytest.mark.parametrize("case", WITH_A_TOKEN, indirect=True)
def test_a_read_says_when_the_token_ends_and_nothing_for_one_without_an_end(case: Case) -> None:
    case.git.commit({"a.yaml": b"1"})
    assert case.host.read_head("main").credential_expires is None
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    ends = today + timedelta(days=12)  # GitLab knows days alone
    case.token_ends(ends)
    assert case.host.read_head("main").credential_expires == ends


def test_a_token_that_has_ended_is_refused(tmp_path: Path) -> None:
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as server:
        server.create_repository("acme/fleet").commit({"a.yaml": b"1"})
        server.credentials.token_expires = datetime.now(UTC) - timedelta(seconds=1)
        adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
        with pytest.raises(Unauthenticated):
            adapter.read_head("main")
        adapter.close()


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        ("2027-01-31 09:00:00 UTC", "2027-01-31T09:00:00+00:00"),
        ("2027-01-31 09:00:00 +0100", "2027-01-31T09:00:00+01:00"),
        ("2027-01-31 09:00:00 -0700", "2027-01-31T09:00:00-07:00"),
        ("", None),
        ("never", None),
        ("2027-01-31", None),
    ],
)
def test_both_forms_of_the_header_are_read_and_another_one_is_no_error(header: str, ends: str | None) -> None:
    found = end_of_token(header)
    assert (found.isoformat() if found else None) == ends
