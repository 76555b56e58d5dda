"""The page of a plan: what the link on a commit status opens, for a signed-in person, without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import API
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.views.plan_page import POLICY, STYLE, plan_page
from shared.app.api.views.plans import plan_view
from tests.support import fleet_files
from tests.support.function_calls import ADMIN
from tests.support.pipeline_runs import push
from tests.support.served_api import served
from tests.support.staged_fleets import PROD, ready_fleet, staged, tags

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


class Reader(HTMLParser):
    """Collects the elements, the attributes and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


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


@pytest.fixture
def identity() -> Iterator[IdentityServer]:
    with IdentityServer(header="open-sesame") as server:
        yield server


def test_the_link_on_a_commit_status_opens_after_a_sign_in(
    cloud: MemoryCloud, identity: IdentityServer
) -> None:
    commit = cloud.state.fleet().commit
    link = cloud.repository.statuses.latest(commit)[0].status.target_url
    assert link == f"https://app.example/api/plans/{commit}/page"
    path = link.removeprefix("https://app.example")
    with (
        served(cloud.ports, AuthSettings(identity.authority, (API,))) as url,
        httpx.Client(base_url=url, trust_env=False) as browser,
    ):
        asked = browser.get(path)
        assert (asked.status_code, asked.headers["location"]) == (
            302,
            f"/.auth/login/aad?post_login_redirect_uri=%2Fapi%2Fplans%2F{commit}%2Fpage",
        )
        choice = browser.get(asked.headers["location"])
        (login,) = [link for link in Reader(choice.text).links if "person=reader" in link]
        back = browser.get(login)
        assert (back.status_code, back.headers["location"]) == (302, path)
        page = browser.get(back.headers["location"])
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"] == POLICY
        shown = Reader(page.text)
        assert "needs approval" in shown.text
        assert "nodePools[system].count" in shown.text
        assert shown.text.index("one needs approval") < shown.text.index("three update")
        assert shown.links == []
        stranger = browser.get("/.auth/login/aad/callback?person=nobody&post_login_redirect_uri=/")
        assert stranger.status_code == 302
        denied = browser.get(path)
        assert (denied.status_code, denied.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert "this needs the role Reader; nobody@example.com has no role" in Reader(denied.text).text


def test_an_unknown_commit_is_a_page_too(cloud: MemoryCloud) -> None:
    with served(cloud.ports) as url:
        reply = httpx.get(f"{url}/api/plans/{'0' * 40}/page", headers=ADMIN, trust_env=False)
    assert (reply.status_code, "was not planned" in reply.text) == (404, True)


def hostile(value: Any) -> Any:
    """Return an object of the API in which every text ends with an attack."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, dict):
        return {key: hostile(document) for key, document in value.items()}
    return [hostile(document) for document in value] if isinstance(value, list) else value


def test_no_text_of_the_fleet_becomes_an_element_or_a_script(cloud: MemoryCloud) -> None:
    view = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    attacked: schema.PlanView = hostile({**view, "problems": ["a problem"], "next": "z"})
    page = plan_page(attacked, fleet=HOSTILE, first=True)
    shown, clean = Reader(page), Reader(plan_page(view, fleet="example", first=True))
    assert shown.tags - clean.tags <= {"a", "ul", "li"}
    assert shown.attributes - clean.attributes <= {"href"}
    assert "<script>alert(1)</script>" in shown.text, "as a text"
    assert not set("\u202e\x1b") & set(page)
    (link,) = shown.links
    assert re.fullmatch(r"\?after=[\w%.-]+", link)


def test_the_policy_allows_the_style_of_the_page_and_nothing_else(cloud: MemoryCloud) -> None:
    view = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    page = plan_page(view, fleet="example", first=True)
    assert f"<style>{STYLE}</style>" in page
    assert page.count("<style") == 1
    assert "style=" not in page
    assert POLICY.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in POLICY


def test_one_approved_delete_and_one_problem_that_is_not_shown_are_one(cloud: MemoryCloud) -> None:
    view = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    at = "2026-01-31T12:00:00+00:00"
    given: schema.ApprovalView = {"by": "ann", "at": at, "clusterCount": 1, "reason": ""}
    page = plan_page(
        {**view, "approval": given, "problems": ["a problem"], "problemCount": 2}, fleet="f", first=True
    )
    assert "1 delete, by ann" in Reader(page).text
    assert "1 more problem is not shown." in Reader(page).text


def test_a_cluster_that_its_rollout_has_not_started_says_what_it_waits_for() -> None:
    cloud = ready_fleet(APPROVED)
    push(cloud, staged(APPROVED, tags("one")))
    cloud.run()
    view = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    text = Reader(plan_page(view, fleet="example", first=True)).text
    assert text.count("It waits for an approval of stage second (release-managers: tested).") == len(PROD)


def test_what_is_on_hold_has_the_words_of_the_command(cloud: MemoryCloud) -> None:
    view = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert view is not None
    items = [{**item, "action": "on-hold", "needsApproval": False} for item in view["items"]]
    page = plan_page({**view, "items": items}, fleet="example", first=True)  # type: ignore[typeddict-item]
    assert "one on hold" in Reader(page).text
