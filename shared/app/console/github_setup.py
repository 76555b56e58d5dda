"""The page on which an Admin registers the GitHub App of the fleet: what ``roadstead setup github`` does too.

GitHub's answer counts in the session that asked for it: the state is a token of the session. GitHub leads
back to a page that has a form and nothing else, because a browser sends no cookie of ours with a request that
another site begins (SameSite=Strict). The person sends that form, and it comes from here.

The key goes from GitHub into the vault; no file and no page has it. The app writes the secrets of its App
and no others, and only where the deployment lets it: see ``setUpInBrowser`` in ``infra/README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from shared import github_app
from shared.app.api.access import Caller
from shared.app.api.audit import AuditedAct, audited
from shared.app.console.forms import Signer
from shared.app.console.visit import Page, message
from shared.app.door import NotReady, enter
from shared.app.http_result import HttpResult, rejected
from shared.cluster.failures.errors import ReconcileError
from shared.frozen import dataclass
from shared.github_app import (
    APP_ID,
    INSTALLATION,
    KEY,
    TAG,
    TAG_ID,
    AppCalls,
    Feature,
    GitHubRefused,
    Send,
    convert,
    is_code,
)
from shared.ports import Ports
from shared.ports.services import OwnVault

HOME = "/setup/github"
CREATED, INSTALLED, AGAIN = f"{HOME}/created", f"{HOME}/installed", f"{HOME}/again"
ACTION = "setup-github"
_STATE = "github app"
OFF = (
    "This app may not write the secrets of a GitHub App. Deploy the fleet with the parameter setUpInBrowser, "
    "or run `roadstead setup github FLEET` with the Azure CLI"
)
OLD_FORM = "This form is too old, or of another session. Nothing was done."
WRONG_STATE = "GitHub's answer belongs to another session, or is too old. Nothing was done: begin again here."


@dataclass(frozen=True)
class GitHubSetup:
    """What the set-up uses: GitHub's REST API, a way to it, and the vault of the app by its name."""

    api: str
    send: Send
    vaults: OwnVault
    vault: str


@dataclass(frozen=True)
class Led:
    """Where a person is led next, and what is said there."""

    address: str
    text: str
    ok: bool


@dataclass(frozen=True)
class Heard:
    """What became of the webhook, and whether a delivery has arrived."""

    text: str
    ok: bool


@dataclass(frozen=True)
class Asked:
    """A request: to which path, with which query or fields of a form, by whom, in which session."""

    path: str
    given: Mapping[str, str]
    caller: Caller
    session: str
    posts: bool


def returned(given: Mapping[str, str]) -> Page:
    """Return the page to which GitHub leads back: a form with its answer, for whoever has a session."""
    code, state = given.get("code", ""), given.get("state", "")
    if not is_code(code) or not is_code(state):
        return message("Nothing was done", "GitHub's answer has no code, or no state.", 400)
    values = {"step": "returned", "code": code, "state": state, "target": CREATED}
    return Page("GitHub registered the App", "github_setup.html", values, live=False)


@dataclass(frozen=True)
class SetupPages:
    """Answers the requests of an Admin; ``setup`` is None where the deployment does not let the app write."""

    ports: Ports
    signer: Signer
    setup: GitHubSetup | None

    @property
    def web(self) -> str:
        """The address of GitHub's pages, to which the form of the page goes; "" where the page is off."""
        return github_app.web_address(self.setup.api) if self.setup else ""

    def answer(self, asked: Asked) -> Page | Led:
        """Return a page, or where the person is led."""
        setup, config = self.setup, self.ports.config
        if setup is None or not config.public_url.startswith("https://"):
            return message("The set-up in the browser is off", f"{OFF}.", 404)
        try:
            enter(self.ports)
            if asked.posts and asked.path == CREATED:
                return self._created(setup, asked)
            if asked.posts and asked.path == INSTALLED:
                return self._installed(setup, asked)
            if asked.posts and asked.path == AGAIN:
                return self._again(setup, asked)
            if not asked.posts and asked.path == HOME:
                return self._home(setup, asked)
        except (NotReady, ReconcileError) as error:
            if asked.posts:
                return Led(HOME, f"Not done: {error}", ok=False)
            return message("A service has failed", str(error), 503)
        return message("No such page", f"There is no page {asked.path}.", 404)

    def _home(self, setup: GitHubSetup, asked: Asked) -> Page:
        app = setup.vaults.secret(setup.vault, APP_ID).tags
        if TAG not in app or asked.given.get("replace") == "yes":
            return self._form(setup, asked)
        installed = setup.vaults.secret(setup.vault, INSTALLATION).tags
        done = installed.get(TAG_ID) == app[TAG_ID]
        values = {
            "step": "done" if done else "install",
            "again": AGAIN,
            "heard": _heard(setup) if done else None,
            "slug": app[TAG],
            "repository": self.ports.config.repository,
            "page": _attribute(f"{self.web}/apps/{app[TAG]}/installations/new"),
            "target": INSTALLED,
        }
        return Page(f"The GitHub App {app[TAG]}", "github_setup.html", values, live=False)

    def _form(self, setup: GitHubSetup, asked: Asked) -> Page:
        """Return the forms that GitHub takes: an App is installed on repositories of its owner alone."""
        config, features = self.ports.config, _features(asked.given)
        manifest = github_app.manifest(
            fleet=config.fleet,
            app=config.public_url,
            redirect=f"{config.public_url}{CREATED}",
            features=features,
        )
        state = self.signer.token(asked.session, self.ports.clock(), _STATE)
        owner, web = config.repository.partition("/")[0], github_app.web_address(setup.api)
        asked_for = github_app.asked(features)
        permissions = [
            permission
            for permission in github_app.PERMISSIONS
            if asked_for.get(permission.name) == permission.level
            and (permission.feature is None or permission.feature in features)
        ]
        values = {
            "step": "register",
            "replaces": asked.given.get("replace") == "yes",
            "permissions": permissions,
            "events": github_app.EVENTS,
            "features": [
                {
                    "name": permission.feature.value,
                    "reason": permission.reason,
                    "on": permission.feature in features,
                }
                for permission in github_app.PERMISSIONS
                if permission.feature is not None
            ],
            "manifest": _attribute(json.dumps(manifest)),
            "forms": [
                {
                    "action": _attribute(github_app.form_address(web, account, state)),
                    "label": f"{owner} is an organization: register its App"
                    if account
                    else f"{owner} is my own account: register my App",
                }
                for account in (owner, "")
            ],
        }
        return Page("Register the GitHub App of the fleet", "github_setup.html", values, live=False)

    def _created(self, setup: GitHubSetup, asked: Asked) -> Led:
        """Exchange the code, once, and write what GitHub answers into the vault."""
        now, code = self.ports.clock(), asked.given.get("code", "")
        if not self.signer.is_token(asked.given.get("state", ""), asked.session, now, _STATE):
            return Led(HOME, WRONG_STATE, ok=False)

        def effect() -> HttpResult:
            try:
                app = convert(setup.send, setup.api, code)
            except GitHubRefused as error:
                return rejected(502, str(error))
            for name, value in app.secrets.items():
                setup.vaults.write(setup.vault, name, value, app.tags)
            return HttpResult(200, {"app": app.slug})

        try:
            result = self._audited(asked.caller, "register", effect)
        except ReconcileError as error:
            text = f"The App was registered, and its key could not be stored: delete it on GitHub. {error}"
            return Led(HOME, text, ok=False)
        if not result.ok:
            return Led(HOME, str(result.body["error"]), ok=False)
        return Led(HOME, f"The vault has the key of {result.body['app']}.", ok=True)

    def _installed(self, setup: GitHubSetup, asked: Asked) -> Led:
        """Read the number of the installation as the App, and store it."""
        if not self.signer.is_token(asked.given.get("token", ""), asked.session, self.ports.clock()):
            return Led(HOME, OLD_FORM, ok=False)
        repository = self.ports.config.repository

        def effect() -> HttpResult:
            app = setup.vaults.secret(setup.vault, APP_ID)
            try:
                found = _calls(setup).installation(repository)
            except GitHubRefused as error:
                return rejected(502, str(error))
            if not found:
                return rejected(409, f"The App is not installed on {repository} yet.")
            setup.vaults.write(setup.vault, INSTALLATION, found, app.tags)
            return HttpResult(200, {"installation": found})

        result = self._audited(asked.caller, "install", effect)
        if not result.ok:
            return Led(HOME, str(result.body["error"]), ok=False)
        return Led(HOME, f"The App is installed on {repository}.", ok=True)

    def _again(self, setup: GitHubSetup, asked: Asked) -> Led:
        """Have GitHub deliver its newest event again; the page then says what became of it."""
        if not self.signer.is_token(asked.given.get("token", ""), asked.session, self.ports.clock()):
            return Led(HOME, OLD_FORM, ok=False)

        def effect() -> HttpResult:
            try:
                calls = _calls(setup)
                attempt = calls.last_attempt()
                if attempt is None:
                    return rejected(409, "GitHub has no delivery to send again: push a commit.")
                calls.deliver_again(attempt.number)
            except GitHubRefused as error:
                return rejected(502, str(error))
            return HttpResult(200, {"event": attempt.event})

        result = self._audited(asked.caller, "deliver again", effect)
        if not result.ok:
            return Led(HOME, str(result.body["error"]), ok=False)
        return Led(
            HOME, f"GitHub sends its {result.body['event']} again: reload this page in a moment.", ok=True
        )

    def _audited(self, caller: Caller, step: str, effect: Any) -> HttpResult:
        act = AuditedAct(ACTION, f"{self.ports.config.repository}: {step}")
        return audited(act, caller, self.ports, effect)


def _calls(setup: GitHubSetup) -> AppCalls:
    """Return what calls GitHub as the App of which the vault has the key."""
    app, key = (setup.vaults.secret(setup.vault, name).value for name in (APP_ID, KEY))
    return AppCalls(setup.send, setup.api, app, key)


def _heard(setup: GitHubSetup) -> Heard:
    """Read at GitHub what became of its newest delivery; it sends a ping when an App is registered."""
    try:
        attempt = _calls(setup).last_attempt()
    except GitHubRefused as error:
        return Heard(f"Whether webhooks arrive is unknown: {error}", ok=False)
    if attempt is None:
        return Heard("GitHub has sent nothing yet.", ok=False)
    said = f"GitHub's newest delivery, {attempt.event} at {attempt.at:%Y-%m-%d %H:%M:%S} UTC,"
    if 200 <= attempt.status < 300:
        return Heard(f"{said} arrived.", ok=True)
    if attempt.status == 401:
        return Heard(f"{said} was refused: the app has not fetched the webhook secret yet.", ok=False)
    why = f"the app answered {attempt.status}" if attempt.status else "GitHub got no answer from the app"
    return Heard(f"{said} did not arrive: {why}.", ok=False)


def _features(given: Mapping[str, str]) -> Collection[Feature]:
    return [feature for feature in Feature if given.get(feature.value) == "yes"]


def _attribute(text: str) -> Any:
    """Return a text of ours as the value of an attribute: whole, where that of somebody is cut."""
    from markupsafe import escape

    return escape(text)
