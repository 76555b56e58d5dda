"""The GitHub App of a fleet: what it may do and why, what it hears, its manifest, and its registration.

Source: docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest, and
docs.github.com/rest/authentication/permissions-required-for-github-apps for what each call needs. How a
request is sent is given: the command and the app have different HTTP clients. No error has a code, a key or a
secret.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlsplit

from shared.frozen import dataclass, field


class Feature(StrEnum):
    """What a fleet may use besides what each one needs."""

    PROPOSALS = "proposals"
    ISSUES = "issues"
    TEAMS = "teams"


@dataclass(frozen=True)
class Permission:
    """A permission: its name in the manifest and on GitHub's pages, its level, and what it is for."""

    name: str
    shown: str
    level: str
    reason: str
    feature: Feature | None = None
    """Without it, the permission is not asked for; None: always."""


PERMISSIONS = (
    Permission("metadata", "Metadata", "read", "GitHub gives it to every App; rules of branches"),
    Permission("contents", "Contents", "read", "read commits, and the files of the fleet"),
    Permission("statuses", "Commit statuses", "write", "the status `roadstead` of each commit"),
    Permission("pull_requests", "Pull requests", "write", "read them and their reviews, comment the plan"),
    Permission("checks", "Checks", "write", "the plan of a pull request with annotations; gates of stages"),
    Permission(
        "contents",
        "Contents",
        "write",
        "branches of pins, and pull requests for drift, promotions and rollbacks",
        Feature.PROPOSALS,
    ),
    Permission(
        "issues", "Issues", "write", "notifications as issues, and clusters by an issue", Feature.ISSUES
    ),
    Permission("members", "Members", "read", "who is in the teams of `APPROVAL_TEAMS`", Feature.TEAMS),
)
"""Each permission and its reason. Of two levels of one name the later is asked for."""

EVENTS = {
    "push": "a commit is planned at once",
    "pull_request": "a pull request gets its plan",
    "pull_request_review": "a review approves the deletes of its pull request",
}
"""What the App hears, and why: those that ``shared/app/intake/github_webhook.py`` reads."""
OPTIONAL_EVENTS = {"issues": ("an issue with the form asks for a cluster by request", Feature.ISSUES)}
"""What it hears only with a feature, whose permission GitHub wants for it."""

APP_ID, INSTALLATION, KEY = "github-app-id", "github-app-installation-id", "github-app-private-key"
WEBHOOK, SECOND_WEBHOOK = "github-webhook-secret", "github-webhook-secret-previous"
OF_APP = (APP_ID, INSTALLATION, KEY, WEBHOOK)
"""The secrets of an App: its ids, its key, and what it signs webhooks with."""
SECRETS = (*OF_APP, SECOND_WEBHOOK)
"""The secrets of the vault that are written here, as ``infra/vault.bicep`` knows them."""

TAG, TAG_ID = "github-app", "github-app-id"
"""The tags of the secrets that are written: the name and the id of the App, which are public."""

LONGEST_NAME = 34
"""Characters of the name of an App; GitHub refuses a longer one, and one that somebody has."""


def asked(features: Collection[Feature]) -> dict[str, str]:
    """Return the permissions of an App for these features: levels by name."""
    return {
        permission.name: permission.level
        for permission in PERMISSIONS
        if permission.feature is None or permission.feature in features
    }


def manifest(*, fleet: str, app: str, redirect: str, features: Collection[Feature]) -> dict[str, Any]:
    """Return the manifest of the App of a fleet; ``app`` is the address of the function app."""
    return {
        "name": f"roadstead-{fleet}"[:LONGEST_NAME].rstrip("-"),
        "url": app,
        "description": f"Roadstead: plans and applies the commits of the fleet {fleet}.",
        "public": False,
        "hook_attributes": {"url": f"{app}/api/github", "active": True},
        "redirect_url": redirect,
        "default_permissions": asked(features),
        "default_events": [
            *EVENTS,
            *(event for event, (_, own) in OPTIONAL_EVENTS.items() if own in features),
        ],
    }


def web_address(api: str) -> str:
    """Return the address of GitHub's pages for that of its REST API.

    github.com, data residency (api.NAME.ghe.com, as GitHub's pages on it say), and GitHub Enterprise Server
    (HOST/api/v3). Another address has both.
    """
    address = urlsplit(api)
    host = address.netloc.removeprefix("api.") if address.netloc.startswith("api.") else address.netloc
    return f"{address.scheme}://{host}"


def api_address(web: str) -> str:
    """Return the address of GitHub's REST API for that of its pages: what ``web_address`` turns back."""
    address = urlsplit(web)
    if address.netloc == "github.com" or address.netloc.endswith(".ghe.com"):
        return f"{address.scheme}://api.{address.netloc}"
    return web if address.scheme == "http" else f"{web}/api/v3"


def form_address(web: str, owner: str, state: str) -> str:
    """Return where the form posts the manifest; ``owner`` is an organization, "" for a person's account."""
    place = f"/organizations/{quote(owner, safe='')}" if owner else ""
    return f"{web}{place}/settings/apps/new?state={quote(state, safe='')}"


TIMEOUT = 20.0
"""Seconds until GitHub is taken not to answer."""
JWT_SECONDS = 540
"""How long a token of the App is valid; GitHub takes ten minutes at most, and clocks differ."""
CLOCKS_DIFFER = 60
_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def is_code(text: str) -> bool:
    """Return whether a text has the form of what GitHub gives in exchange for a manifest."""
    return _CODE.fullmatch(text) is not None


class GitHubRefused(ValueError):
    """GitHub did not answer, or refused; the message says what to do."""


@dataclass(frozen=True)
class GitHubAnswer:
    """An answer of GitHub: its status, and its JSON, None for one that cannot be read."""

    status: int
    body: Any


Send = Callable[[str, str, Mapping[str, str], Mapping[str, Any] | None], GitHubAnswer]
"""Sends a request: its method, its address, its headers and what its JSON body says.

Raises GitHubRefused where there is no answer.
"""


@dataclass(frozen=True)
class RegisteredApp:
    """What GitHub answers once for a new App. ``key`` is PEM."""

    id: str
    slug: str
    page: str
    key: str = field(repr=False)
    webhook_secret: str = field(repr=False)

    @property
    def installation_page(self) -> str:
        """The page on which its owner installs it."""
        return f"{self.page}/installations/new"

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of its secrets."""
        return {TAG: self.slug, TAG_ID: self.id}

    @property
    def secrets(self) -> Mapping[str, str]:
        """What the vault gets, in this order: with its id, a fleet has the App."""
        return {KEY: self.key, WEBHOOK: self.webhook_secret, APP_ID: self.id}


def convert(send: Send, api: str, code: str) -> RegisteredApp:
    """Exchange the code of a manifest, once and within an hour, for the App. Raises GitHubRefused."""
    if not is_code(code):
        raise GitHubRefused("GitHub's answer has a code of an unknown form: nothing was done.")
    answer = _call(send, api, "POST", f"/app-manifests/{quote(code, safe='')}/conversions")
    if answer.status in (404, 422):
        raise GitHubRefused(
            "GitHub does not know this code: it is good once, and for an hour. The App may be registered "
            "without its key being known: delete it on GitHub (Settings, Developer settings, GitHub Apps), "
            "and begin again."
        )
    found = _checked(answer)
    try:
        return RegisteredApp(
            str(int(found["id"])),
            str(found["slug"]),
            str(found["html_url"]),
            key=str(found["pem"]),
            webhook_secret=str(found["webhook_secret"]),
        )
    except (KeyError, TypeError, ValueError):
        raise GitHubRefused("GitHub answered without an App, its key or its webhook secret.") from None


class AppCalls:
    """Calls GitHub as an App, by its key."""

    def __init__(self, send: Send, api: str, app_id: str, key: str) -> None:
        self._send, self._api, self._id, self._key = send, api, app_id, key

    def slug(self) -> str:
        """Return the name of the App; raise GitHubRefused for a key that is not its own."""
        answer = self._as_app("GET", "/app")
        if answer.status in (401, 404):
            raise GitHubRefused(
                f"GitHub does not take this key for the App {self._id}: it was deleted, or is of another App."
            )
        return str(_checked(answer)["slug"])

    def installation(self, repository: str) -> str:
        """Return the number of the installation on a repository "owner/name", "" while there is none."""
        answer = self._as_app("GET", f"/repos/{repository}/installation")
        return "" if answer.status == 404 else str(int(_checked(answer)["id"]))

    def set_webhook_secret(self, secret: str) -> None:
        """Have GitHub sign with another secret from now on."""
        _checked(self._as_app("PATCH", "/app/hook/config", {"secret": secret}))

    def _as_app(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> GitHubAnswer:
        import jwt

        now = int(time.time())
        claims = {"iat": now - CLOCKS_DIFFER, "exp": now + JWT_SECONDS, "iss": self._id}
        try:
            token = jwt.encode(claims, self._key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Not chained: the cause could contain the key.
            raise GitHubRefused("This is not an RSA private key in PEM form.") from None
        return _call(self._send, self._api, method, path, token=token, body=body)


def _call(
    send: Send, api: str, method: str, path: str, *, token: str = "", body: Mapping[str, Any] | None = None
) -> GitHubAnswer:
    headers = {"Accept": "application/vnd.github+json", "User-Agent": "roadstead"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return send(method, f"{api}{path}", headers, body)


def _checked(answer: GitHubAnswer) -> dict[str, Any]:
    found = answer.body
    if not 200 <= answer.status < 300:
        said = found.get("message") if isinstance(found, dict) else None
        raise GitHubRefused(f"GitHub answered {answer.status}: {said or 'without a reason'}")
    if not isinstance(found, dict):
        raise GitHubRefused("GitHub's answer cannot be read.")
    return found
