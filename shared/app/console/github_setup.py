"""The page on which an Admin registers the GitHub App of the fleet: what ``roadstead setup github`` does too.

GitHub's answer counts in the session that asked for it: the state is a token of the session. GitHub leads
back to a page that has a form and nothing else, because a browser sends no cookie of ours with a request that
another site begins (SameSite=Strict). The person sends that form, and it comes from here.

The key goes from GitHub into the vault; no file and no page has it. The app writes the secrets of its App
and no others, and only where the deployment lets it: see ``setUpInBrowser`` in ``infra/README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
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
CREATED, INSTALLED = f"{HOME}/created", f"{HOME}/installed"
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
class NextPage:
    """Where a person is led next, and what is said there."""

    address: str
    text: str
    ok: bool


@dataclass(frozen=True)
class SetupRequest:
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

    def answer(self, asked: SetupRequest) -> Page | NextPage:
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
            if not asked.posts and asked.path == HOME:
                return self._home(setup, asked)
        except (NotReady, ReconcileError) as error:
            if asked.posts:
                return NextPage(HOME, f"Not done: {error}", ok=False)
            return message("A service has failed", str(error), 503)
        return message("No such page", f"There is no page {asked.path}.", 404)

    def _home(self, setup: GitHubSetup, asked: SetupRequest) -> Page:
        app = setup.vaults.secret(setup.vault, APP_ID).tags
        if TAG not in app or asked.given.get("replace") == "yes":
            return self._form(setup, asked)
        installed = setup.vaults.secret(setup.vault, INSTALLATION).tags
        done = installed.get(TAG_ID) == app[TAG_ID]
        values = {
            "step": "done" if done else "install",
            "slug": app[TAG],
            "repository": self.ports.config.repository,
            "page": _attribute(f"{self.web}/apps/{app[TAG]}/installations/new"),
            "target": INSTALLED,
        }
        return Page(f"The GitHub App {app[TAG]}", "github_setup.html", values, live=False)

    def _form(self, setup: GitHubSetup, asked: SetupRequest) -> Page:
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

    def _created(self, setup: GitHubSetup, asked: SetupRequest) -> NextPage:
        """Exchange the code, once, and write what GitHub answers into the vault."""
        now, code = self.ports.clock(), asked.given.get("code", "")
        if not self.signer.is_token(asked.given.get("state", ""), asked.session, now, _STATE):
            return NextPage(HOME, WRONG_STATE, ok=False)

        def effect() -> str:
            app = convert(setup.send, setup.api, code)
            for name, value in app.secrets.items():
                setup.vaults.write(setup.vault, name, value, app.tags)
            return f"The vault has the key of {app.slug}."

        try:
            return self._audited(asked.caller, "register", effect)
        except ReconcileError as error:
            text = f"The App was registered, and its key could not be stored: delete it on GitHub. {error}"
            return NextPage(HOME, text, ok=False)

    def _installed(self, setup: GitHubSetup, asked: SetupRequest) -> NextPage:
        """Read the number of the installation as the App, and store it."""
        if not self.signer.is_token(asked.given.get("token", ""), asked.session, self.ports.clock()):
            return NextPage(HOME, OLD_FORM, ok=False)
        repository = self.ports.config.repository

        def effect() -> str:
            app, key = (setup.vaults.secret(setup.vault, name) for name in (APP_ID, KEY))
            found = AppCalls(setup.send, setup.api, app.value, key.value).installation(repository)
            if not found:
                raise GitHubRefused(f"The App is not installed on {repository} yet.")
            setup.vaults.write(setup.vault, INSTALLATION, found, app.tags)
            return f"The App is installed on {repository}."

        return self._audited(asked.caller, "install", effect)

    def _audited(self, caller: Caller, step: str, effect: Callable[[], str]) -> NextPage:
        """Do a step of the set-up, and say what came of it."""

        def done() -> HttpResult:
            try:
                return HttpResult(200, {"text": effect()})
            except GitHubRefused as error:
                return rejected(502, str(error))

        act = AuditedAct(ACTION, f"{self.ports.config.repository}: {step}")
        result = audited(act, caller, self.ports, done)
        return NextPage(HOME, str(result.body["text" if result.ok else "error"]), ok=result.ok)


def _features(given: Mapping[str, str]) -> Collection[Feature]:
    return [feature for feature in Feature if given.get(feature.value) == "yes"]


def _attribute(text: str) -> Any:
    """Return a text of ours as the value of an attribute: whole, where that of somebody is cut."""
    from markupsafe import escape

    return escape(text)
