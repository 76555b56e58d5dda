"""The page of a plan: what the link on a commit status opens, for a signed-in person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import API
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.views.plans import plan_view
from shared.app.console.pages import plan_page
from shared.app.console.recent import SECONDS
from shared.app.console.render import POLICY
from tests.support import fleet_files
from tests.support.console_pages import Shown, browse, shown
from tests.support.function_calls import ADMIN
from tests.support.pipeline_runs import push
from tests.support.served_api import served
from tests.support.staged_fleets import PROD, ready_fleet, staged, tags

pytestmark = pytest.mark.lives

APPROVED = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: second
        approval: true
        gate: {owner: release-managers, reason: tested}
        groups: [{maxConcurrency: "100%"}]
"""
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(1)>&'\u202e\x1b[2J"


@pytest.fixture
def cloud() -> MemoryCloud:
    made = MemoryCloud()
    made.with_ports(
        lambda ports: replace(ports, config=replace(ports.config, public_url="https://app.example"))
    )
    push(made, fleet_files.fleet("one", "two", "three"))
    made.run()
    files = fleet_files.fleet("three")
    files["clusters/three/cluster.yaml"] = fleet_files.cluster("three", count=3)
    push(made, files)
    made.run()
    return made


def test_the_link_on_a_commit_status_opens_after_a_sign_in(
    cloud: MemoryCloud, identity: IdentityServer
) -> None:
    commit = cloud.state.fleet().commit
    link = cloud.repository.statuses.latest(commit)[0].status.target_url
    assert link == f"https://app.example/plans/{commit}"
    path = link.removeprefix("https://app.example")
    with (
        served(cloud.ports, AuthSettings(identity.authority, (API,))) as url,
        httpx.Client(base_url=url, trust_env=False) as browser,
    ):
        asked = browser.get(path)
        assert (asked.status_code, asked.headers["location"]) == (
            302,
            f"/.auth/login/aad?post_login_redirect_uri=%2Fplans%2F{commit}",
        )
        choice = browser.get(asked.headers["location"])
        (login,) = [link for link in Shown(choice.text).links if "person=reader" in link]
        back = browser.get(login)
        assert (back.status_code, back.headers["location"]) == (302, path)
        page = browser.get(back.headers["location"])
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"] == POLICY
        seen = Shown(page.text)
        assert "needs approval" in seen.text
        assert "nodePools[system].count" in seen.text
        assert seen.text.index("needs approval , 2 clusters: one") < seen.text.index("update : three")
        assert not [link for link in seen.links if not link.startswith(("/", "#main"))]
        stranger = browser.get("/.auth/login/aad/callback?person=nobody&post_login_redirect_uri=/")
        assert stranger.status_code == 302
        denied = browser.get(path)
        assert (denied.status_code, denied.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert "This needs the role Reader; nobody@example.com has no role" in Shown(denied.text).text


def test_an_unknown_commit_is_a_page_too(cloud: MemoryCloud) -> None:
    with served(cloud.ports) as url:
        reply = httpx.get(f"{url}/plans/{'0' * 40}", headers=ADMIN, trust_env=False)
    assert (reply.status_code, "was not planned" in reply.text) == (404, True)


def hostile(value: Any) -> Any:
    """Return an object of the API in which every text ends with an attack."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, dict):
        return {key: hostile(document) for key, document in value.items()}
    return [hostile(document) for document in value] if isinstance(value, list) else value


def plan_of(cloud: MemoryCloud) -> schema.PlanView:
    """Return the plan of the newest commit."""
    view = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    return view


def page_of(cloud: MemoryCloud, view: schema.PlanView, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Return the page of a plan that the API would show."""
    cloud.clock.advance(SECONDS)  # for so long visits share a page
    monkeypatch.setattr(plan_page, "plan_view", lambda *_: view)
    return shown(cloud.ports, f"/plans/{'0' * 40}")


def test_no_text_of_the_fleet_becomes_an_element_or_a_script(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = plan_of(cloud)
    clean = page_of(cloud, {**view, "problems": ["a problem"], "next": "z"}, monkeypatch)
    attacked: schema.PlanView = hostile({**view, "problems": ["a problem"], "next": "z"})
    cloud.clock.advance(SECONDS)
    monkeypatch.setattr(plan_page, "plan_view", lambda *_: attacked)
    body = browse(cloud.ports, f"/plans/{'0' * 40}").get_body().decode()
    seen = Shown(body)
    assert (seen.tags - clean.tags, seen.attributes - clean.attributes) == (set(), set())
    assert "<script>alert(1)</script>" in seen.text, "as a text"
    assert not set("\u202e\x1b") & set(body)
    assert all(link.startswith(("/", "#main")) for link in seen.links)


def test_one_approved_delete_and_one_problem_that_is_not_shown_are_one(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = "2026-01-31T12:00:00+00:00"
    given: schema.ApprovalView = {"by": "ann", "at": at, "clusterCount": 1, "reason": ""}
    view: schema.PlanView = {
        **plan_of(cloud),
        "approval": given,
        "problems": ["a problem"],
        "problemCount": 2,
    }
    seen = page_of(cloud, view, monkeypatch)
    assert "1 removal, by ann" in seen.text
    assert "1 more problem is not shown." in seen.text


def test_clusters_that_a_rollout_has_not_started_are_one_group_that_says_what_it_waits_for() -> None:
    cloud = ready_fleet(APPROVED)
    push(cloud, staged(APPROVED, tags("one")))
    cloud.run()
    seen = shown(cloud.ports, f"/plans/{cloud.state.fleet().commit}")
    assert seen.text.count("It waits for an approval of stage second (release-managers: tested).") == 1
    assert f"update , {len(PROD)} clusters:" in seen.text


def test_what_is_on_hold_is_named_as_by_the_command(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = plan_of(cloud)
    items = [{**item, "action": "on-hold", "needsApproval": False} for item in view["items"]]
    seen = page_of(cloud, {**view, "items": items}, monkeypatch)  # type: ignore[typeddict-item]
    assert "on hold , 2 clusters: one , two" in seen.text
