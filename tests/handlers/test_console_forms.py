"""What the forms of the console refuse: those of other sites, old ones, and acts that a role may not do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from string import Formatter

import azure.functions as func
import pytest

from handlers import console
from handlers.act_route import ActRoute
from handlers.acts import ACTS
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.access import INCLUDED, Role
from shared.app.console.github_setup import CREATED, HOME, INSTALLED
from tests.support import one_cluster
from tests.support.console_pages import Shown, acts_without_effect, browse, shown
from tests.support.pipeline_runs import ready
from tests.support.sleepers import on_monday, until
from tests.support.sweeps import sweep

FORMS = {act.name: act for act in ACTS if act.method == "POST"}
SAID: Mapping[str, Mapping[str, str]] = {
    "postpone": {"until": "2099-01-01T00:00:00Z"},
    "approve": {"clusters": "one"},
    "approve_correction": {"correction": "tags.a"},
    "accept": {"fields:tags.a": "b"},
    "try": {"pull": "1"},
    "extend": {"for": "24h"},
    "request": {"name": "new", "class": "small", "lifetime": "8h"},
    "end_try": {"pull": "1"},
    "refresh": {"clusters": "one"},
    "read_readiness": {"clusters": "one"},
    "suspend": {"clusters": "one", "for": "4h"},
    "dismiss": {"deadLetters": "plans 1"},
    "replay_letters": {"deadLetters": "plans 1"},
    "notify_test": {"route": "platform-team"},
    "rollout_approve": {"stage": "first"},
    "rollout_skip": {"cluster": "one"},
    "promote": {"from": "development", "to": "production"},
}
"""What the form of an act says, apart from its path, the reason, the token and where it leads back to."""
ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "another site": {"sec-fetch-site": "cross-site"},
    "a sibling": {"sec-fetch-site": "same-site"},
    "no page": {"sec-fetch-site": "none"},
    "another origin": {"sec-fetch-site": "", "origin": "https://evil.example"},
    "another port": {"sec-fetch-site": "", "origin": "https://app.example:8443", "host": "app.example"},
    "an opaque origin": {"sec-fetch-site": "", "origin": "null"},
    "an origin that is none": {"sec-fetch-site": "", "origin": "https://["},
    "no origin": {"sec-fetch-site": ""},
}


@pytest.fixture(scope="module")
def cloud() -> MemoryCloud:
    return ready("one")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the acts that were done, which here have no effect."""
    return acts_without_effect(monkeypatch)


def form_of(act: ActRoute, token: str, back: str = "/clusters") -> dict[str, str]:
    """Return the fields of the form of an act."""
    parts = [name for _, name, _, _ in Formatter().parse(act.path) if name]
    path = {f"path:{name}": "one" for name in parts}
    return {**path, **SAID.get(act.name, {}), "reason": "why", "back": back, "token": token}


def token_of(cloud: MemoryCloud, role: str = "Admin") -> str:
    """Return the token of the forms of a page."""
    return shown(cloud.ports, "/clusters", role=role).hidden["token"]


def told(cloud: MemoryCloud, reply: func.HttpResponse) -> str:
    """Return what the next page says of the form that was sent."""
    cookie = reply.headers["Set-Cookie"].partition(";")[0]
    page = browse(cloud.ports, "/clusters", headers={"cookie": cookie})
    return Shown(page.get_body().decode()).text


OTHERS = ("sign-in", "sign-out", *(path.strip("/") for path in (HOME, CREATED, INSTALLED)))
"""The addresses of the forms that are no act of the API."""


@pytest.mark.lives
@pytest.mark.parametrize("name", [*FORMS, *OTHERS])
def test_no_form_of_another_site_has_an_effect(cloud: MemoryCloud, done: list[str], name: str) -> None:
    token = token_of(cloud)
    for where, headers in ELSEWHERE.items():
        form = (
            form_of(FORMS[name], token) if name in FORMS else {"token": token, "key": "local-key-of-an-admin"}
        )
        address = f"/acts/{name}" if name in FORMS else f"/{name}"
        reply = browse(cloud.ports, address, form=form, headers=headers)
        assert (reply.status_code, console.OF_ANOTHER_SITE in reply.get_body().decode()) == (403, True), where
        assert "Set-Cookie" not in reply.headers, where
    assert done == []


@pytest.mark.lives
@pytest.mark.parametrize("name", FORMS)
def test_a_form_needs_the_token_of_its_session_which_ends(
    cloud: MemoryCloud, done: list[str], name: str
) -> None:
    token, of_another = token_of(cloud), token_of(cloud, "Operator")
    later = {"cookie": "AppServiceAuthSession=another"}
    for given, cookies in (("", {}), ("0" * 64, {}), (of_another, {}), (token[:-1], {}), (token, later)):
        reply = browse(cloud.ports, f"/acts/{name}", form=form_of(FORMS[name], given), headers=cookies)
        assert (reply.status_code, reply.headers["Location"]) == (303, "/clusters")
        assert console.OLD_FORM in told(cloud, reply)
    cloud.clock.advance(timedelta(hours=2).total_seconds())
    assert console.OLD_FORM in told(
        cloud, browse(cloud.ports, f"/acts/{name}", form=form_of(FORMS[name], token))
    )
    assert done == []
    fresh = form_of(FORMS[name], token_of(cloud))
    assert "Accepted: " in told(cloud, browse(cloud.ports, f"/acts/{name}", form=fresh))
    assert done == [name], "the test sends what the act takes"


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("role", Role)
def test_the_server_decides_by_role_whatever_a_page_shows(
    cloud: MemoryCloud, done: list[str], name: str, role: Role
) -> None:
    form = form_of(FORMS[name], token_of(cloud, role.value))
    said = told(cloud, browse(cloud.ports, f"/acts/{name}", role=role.value, form=form))
    may = FORMS[name].role in INCLUDED[role]
    assert done == [name] * may
    assert (f"this needs the role {FORMS[name].role}" in said) is not may


@pytest.mark.parametrize("name", [act.name for act in ACTS if act.method == "GET"])
def test_what_only_reads_azure_is_no_form(cloud: MemoryCloud, done: list[str], name: str) -> None:
    reply = browse(cloud.ports, f"/acts/{name}", form={"token": token_of(cloud)})
    assert (reply.status_code, done) == (404, [])


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\r\nX: y"]
)
def test_a_form_leads_back_into_the_console_alone(cloud: MemoryCloud, done: list[str], back: str) -> None:
    form = form_of(FORMS["sync"], token_of(cloud), back)
    assert browse(cloud.ports, "/acts/sync", form=form).headers["Location"] == "/"
    signed_in = {"key": "local-key-of-an-admin", "next": back}
    assert browse(cloud.ports, "/sign-in", role="", form=signed_in).headers["Location"] == "/"


def test_a_form_that_is_none_has_no_effect(cloud: MemoryCloud, done: list[str]) -> None:
    form = form_of(FORMS["sync"], token_of(cloud))
    for kind in ("text/plain", "multipart/form-data", "application/json", ""):
        reply = browse(cloud.ports, "/acts/sync", form=form, headers={"content-type": kind})
        assert reply.status_code == 303
    assert done == []


def test_a_cluster_that_sleeps_is_woken_postponed_and_put_to_sleep_on_its_own_page() -> None:
    cloud = on_monday()
    until(cloud, 18)

    def send(name: str, **fields: str) -> str:
        form = {**form_of(FORMS[name], token_of(cloud), "/clusters/one"), "until": "", **fields}
        return told(cloud, browse(cloud.ports, f"/acts/{name}", form=form))

    page = shown(cloud.ports, "/clusters/one")
    assert "Sleep asleep until" in page.text
    assert {"/acts/wake", "/acts/suspend"} <= set(page.actions)
    assert not {"/acts/sleep", "/acts/postpone"} & set(page.actions)
    assert "Accepted: wake" in send("wake", until=f"{cloud.clock():%Y-%m-%d}T22:00:00Z")
    until(cloud, 18, minute=30)
    page = shown(cloud.ports, "/clusters/one")
    assert "Sleep awake until 2026-01-12 22:00:00 UTC , ordered by" in page.text
    assert {"/acts/sleep", "/acts/postpone"} <= set(page.actions)
    assert "/acts/wake" not in page.actions
    assert "Accepted: postpone" in send("postpone", until=f"{cloud.clock():%Y-%m-%d}T23:00:00Z")
    assert "say why in reason" in send("sleep", reason="")
    assert "Accepted: sleep" in send("sleep")
    until(cloud, 18, minute=50)
    assert "Sleep asleep until" in shown(cloud.ports, "/clusters/one").text
    found = [act.action for act in cloud.state.acts(10)]
    assert sorted(found) == ["postpone", "sleep", "wake"]


def test_a_cluster_without_sleep_has_no_button_for_it_and_is_suspended_on_its_page(
    cloud: MemoryCloud,
) -> None:
    page = shown(cloud.ports, "/clusters/one")
    assert not {"/acts/sleep", "/acts/postpone", "/acts/wake"} & set(page.actions)
    form = form_of(FORMS["suspend"], token_of(cloud), "/clusters/one")
    assert "Accepted: suspend" in told(cloud, browse(cloud.ports, "/acts/suspend", form=form))


def test_a_contested_cluster_has_what_was_found_and_no_table_without_a_row() -> None:
    made = one_cluster.ready()
    tags = {**one_cluster.cluster(made)["tags"], "roadstead-contested-by": "0a0b0c0d@staging"}
    made.azure.patch_cluster(one_cluster.ONE, {"tags": tags})
    sweep(made)
    page = shown(made.ports, "/clusters/one")
    assert "/acts/takeover" in page.actions
    assert "Differs from git ClusterContested: the tags of the cluster name another" in page.text
    assert "Who, when" not in page.text


def test_a_form_that_is_sent_after_the_session_has_ended_says_that_nothing_was_done(
    cloud: MemoryCloud, done: list[str]
) -> None:
    """In rancher/dashboard#5418 people thought that their change was there."""
    for back, leads in (
        ("/clusters/one", "/clusters/one"),
        ("https://elsewhere.example", "/"),
        ("//[", "/"),
    ):
        reply = browse(cloud.ports, "/acts/replay", role="", form={"path:name": "one", "back": back})
        page = Shown(reply.get_body().decode())
        assert (reply.status_code, done) == (401, [])
        assert "Your session has ended Nothing was done: sign in, and send the form again." in page.text
        assert leads in page.links
        assert "https://elsewhere.example" not in page.links
