"""The page of an Admin who registers the GitHub App of the fleet: what it shows, refuses and stores."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import azure.functions as func
import httpx
import pytest

from shared.app.api.access import Role
from shared.app.console.github_setup import CREATED, HOME, INSTALLED
from shared.cluster.failures.errors import VaultForbidden
from shared.github_app import APP_ID, EVENTS, INSTALLATION, KEY, PERMISSIONS, TAG, WEBHOOK, Feature
from tests.support.browser import Browser
from tests.support.console_pages import Shown, asked
from tests.support.function_calls import function_app
from tests.support.registering import VAULT, Registering, registering


class Visitor:
    """Somebody on the pages of an app, as a browser without scripts has them."""

    def __init__(self, fleet: Registering, *, on: bool = True) -> None:
        made = function_app(fleet.ports, setup=fleet.setup if on else None).get_functions()
        found = {str(function.get_function_name()): function for function in made}
        self._console, self._fleet = found["console"].get_user_function(), fleet

    def open(self, address: str, **options: Any) -> func.HttpResponse:
        """Return the answer to a request."""
        reply: func.HttpResponse = self._console(asked(address, **options))
        return reply

    def text(self, address: str, **options: Any) -> str:
        """Return what a page says."""
        return Shown(self.open(address, **options).get_body().decode()).text

    def said(self, reply: func.HttpResponse) -> str:
        """Return what the page says to which a form led."""
        assert (reply.status_code, reply.headers["Location"]) == (303, HOME)
        return self.text(HOME, headers={"cookie": reply.headers["Set-Cookie"].partition(";")[0]})

    def registered(self, query: str = "", name: str = "our-fleet") -> Mapping[str, str]:
        """Register the App at GitHub; return the fields with which it leads back."""
        browser, back = Browser(), list[str]()
        page = self.open(f"{HOME}{query}").get_body().decode()
        browser.url, browser.text = HOME, page
        browser.visiting = back.append
        browser.press("is an organization")
        with pytest.raises(httpx.HTTPError):  # there is no app at its address
            browser.press("Create GitHub App for", name=name)
        browser.close()
        assert urlsplit(back[-1]).path == CREATED
        return {field: values[0] for field, values in parse_qs(urlsplit(back[-1]).query).items()}

    def install(self) -> None:
        """Install the App at GitHub on the repository of the fleet."""
        browser = Browser()
        browser.open(f"{self._fleet.github.url}/apps/our-fleet/installations/new")
        browser.press(self._fleet.repository)
        browser.close()

    def say_installed(self) -> str:
        """Press the button of the page; return what it then says."""
        hidden = Shown(self.open(HOME).get_body().decode()).hidden
        return self.said(self.open(INSTALLED, form={"token": hidden["token"]}))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Registering]:
    with registering(tmp_path) as found:
        yield found


@pytest.fixture
def visitor(fleet: Registering) -> Visitor:
    return Visitor(fleet)


@pytest.mark.lives
def test_an_admin_registers_and_installs_the_app_and_the_vault_has_it(
    fleet: Registering, visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    back = visitor.registered()
    assert "Store them" in visitor.text(f"{CREATED}?code={back['code']}&state={back['state']}")
    assert fleet.secret(KEY) == "", "the page alone does nothing"
    assert "The vault has the key of our-fleet" in visitor.said(visitor.open(CREATED, form=back))
    assert fleet.secret(WEBHOOK) == fleet.github.hooks.secret
    assert fleet.world.get(KEY).tags == {TAG: "our-fleet", "github-app-id": fleet.secret(APP_ID)}
    assert f"not installed on {fleet.repository} yet" in visitor.say_installed()
    visitor.install()
    assert f"installed on {fleet.repository}" in visitor.say_installed()
    assert fleet.secret(INSTALLATION).isdecimal()
    assert "roadstead setup github" in visitor.text(HOME)
    acts = sorted((act.target.rpartition(" ")[2], act.result[:8]) for act in fleet.cloud.state.acts(10, None))
    assert acts == [("install", "accepted"), ("install", "refused:"), ("register", "accepted")]
    hidden = [fleet.secret(KEY).split("\n")[1], fleet.secret(WEBHOOK)]
    pages = "".join(visitor.open(address).get_body().decode() for address in (HOME, "/activity"))
    for secret in hidden:
        assert secret not in caplog.text + pages


def test_the_page_has_each_permission_and_event_with_its_reason_and_github_may_get_its_form(
    fleet: Registering, visitor: Visitor
) -> None:
    text = visitor.text(HOME)
    for permission in PERMISSIONS:
        shown = f"{permission.shown}: {permission.level} {permission.reason[:1].upper()}"
        assert (shown in text) == (permission.feature is None), permission
    assert all(reason in text for reason in EVENTS.values())
    everything = visitor.text(f"{HOME}?{'&'.join(f'{feature}=yes' for feature in Feature)}")
    assert "Contents: write" in everything
    assert "Contents: read" not in everything
    policies = {page: visitor.open(page).headers["Content-Security-Policy"] for page in (HOME, "/clusters")}
    assert f"form-action 'self' {fleet.github.url};" in policies[HOME]
    assert "form-action 'self';" in policies["/clusters"]


def test_what_is_chosen_is_what_github_is_asked_for(fleet: Registering, visitor: Visitor) -> None:
    back = visitor.registered("?proposals=yes&teams=yes")
    converted = httpx.post(f"{fleet.github.url}/app-manifests/{back['code']}/conversions").json()
    assert converted["permissions"]["contents"] == "write"
    assert converted["permissions"]["members"] == "read"
    assert "issues" not in converted["permissions"]


@pytest.mark.lives
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_whoever_is_no_admin_sees_nothing_and_stores_nothing(
    fleet: Registering, visitor: Visitor, role: str
) -> None:
    back = visitor.registered()
    assert visitor.open(HOME, role=role).status_code == 403
    assert visitor.open(CREATED, role=role, form=back).status_code == 403
    assert visitor.open(CREATED, role="", form=back).status_code == 401
    assert fleet.secret(KEY) == ""


def test_the_page_is_off_where_the_deployment_does_not_let_the_app_write(fleet: Registering) -> None:
    reply = Visitor(fleet, on=False).open(HOME)
    assert (reply.status_code, b"setUpInBrowser" in reply.get_body()) == (404, True)


WRONG: Mapping[str, Mapping[str, Any]] = {
    "no state": {"form": {"state": ""}},
    "a forged state": {"form": {"state": "0" * 64}},
    "another session": {"headers": {"cookie": "AppServiceAuthSession=another"}},
}


@pytest.mark.lives
@pytest.mark.parametrize("name", WRONG)
def test_an_answer_of_another_session_exchanges_nothing(
    fleet: Registering, visitor: Visitor, name: str
) -> None:
    back, wrong = visitor.registered(), WRONG[name]
    reply = visitor.open(CREATED, form={**back, **wrong.get("form", {})}, headers=wrong.get("headers", {}))
    assert "belongs to another session" in visitor.said(reply)
    assert fleet.secret(KEY) == ""
    visitor.said(visitor.open(CREATED, form=back))
    assert fleet.secret(KEY), "the code was not used up"


def test_the_token_of_a_form_is_no_state_and_an_old_state_is_none(
    fleet: Registering, visitor: Visitor
) -> None:
    visitor.said(visitor.open(CREATED, form=visitor.registered()))
    token = Shown(visitor.open(HOME).get_body().decode()).hidden["token"]
    other = {**visitor.registered("?replace=yes", name="another"), "state": token}
    assert "belongs to another session" in visitor.said(visitor.open(CREATED, form=other))
    back = visitor.registered("?replace=yes", name="third")
    fleet.cloud.clock.advance(timedelta(hours=3).total_seconds())
    assert "is too old" in visitor.said(visitor.open(CREATED, form=back))
    assert fleet.world.get(KEY).tags[TAG] == "our-fleet"


def test_a_form_of_another_site_stores_nothing(fleet: Registering, visitor: Visitor) -> None:
    reply = visitor.open(CREATED, form=visitor.registered(), headers={"sec-fetch-site": "cross-site"})
    assert reply.status_code == 403
    assert fleet.secret(KEY) == ""


def test_a_code_counts_once_and_a_fleet_with_an_app_needs_a_word_for_another(
    fleet: Registering, visitor: Visitor
) -> None:
    back = visitor.registered()
    visitor.said(visitor.open(CREATED, form=back))
    key = fleet.secret(KEY)
    assert "good once, and for an hour" in visitor.said(visitor.open(CREATED, form=back))
    assert fleet.secret(KEY) == key
    assert "Register it" not in visitor.text(HOME)
    assert "delete the former one on GitHub" in visitor.text(f"{HOME}?replace=yes")


def test_a_vault_that_refuses_says_what_becomes_of_the_app(fleet: Registering, visitor: Visitor) -> None:
    back, world = visitor.registered(), fleet.world

    def refuse(*_: Any) -> None:
        raise VaultForbidden("the identity of this app may not write the secret")

    fleet.vaults.write = refuse  # type: ignore[assignment,method-assign]
    said = visitor.said(visitor.open(CREATED, form=back))
    assert "delete it on GitHub" in said
    assert "may not write" in said
    assert world.get(KEY).tags == {}
    fleet.vaults.failing[VAULT] = VaultForbidden("the identity of this app may not read")
    assert visitor.open(HOME).status_code == 503


@pytest.mark.parametrize("query", ["", "?code=abc", "?state=abc", "?code=<b>&state=abc"])
def test_an_answer_without_a_code_or_a_state_is_no_page_with_a_form(visitor: Visitor, query: str) -> None:
    reply = visitor.open(f"{CREATED}{query}", role="")
    assert reply.status_code == 400
    assert not re.search(rb"<form[^>]*created", reply.get_body())


def test_github_that_does_not_answer_is_said_without_the_code(fleet: Registering, visitor: Visitor) -> None:
    back = visitor.registered()
    fleet.github.close()
    said = visitor.said(visitor.open(CREATED, form=back))
    assert "GitHub does not answer at GITHUB_API_URL" in said
    assert back["code"] not in said


@pytest.fixture
def installed(fleet: Registering, visitor: Visitor) -> Visitor:
    visitor.said(visitor.open(CREATED, form=visitor.registered()))
    visitor.install()
    visitor.say_installed()
    return visitor


@pytest.mark.lives
def test_once_it_is_installed_the_page_says_what_is_left_to_do(
    fleet: Registering, installed: Visitor
) -> None:
    assert "Then push a commit. roadstead doctor says" in installed.text(HOME)
    acts = sorted(act.target.rpartition(": ")[2] for act in fleet.cloud.state.acts(10, None))
    assert acts == ["install", "register"]


@pytest.mark.lives
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_whoever_is_no_admin_is_led_to_no_set_up_and_has_nothing_sent(
    fleet: Registering, installed: Visitor, role: str
) -> None:
    before = len(fleet.github.hooks.deliveries())
    assert HOME not in installed.open("/", role=role).get_body().decode()
    assert HOME in installed.open("/").get_body().decode()
    assert installed.open(INSTALLED, role=role, form={"token": "0" * 64}).status_code == 403
    old = installed.open(INSTALLED, form={"token": "0" * 64})
    assert "too old, or of another session" in installed.said(old)
    assert len(fleet.github.hooks.deliveries()) == before
