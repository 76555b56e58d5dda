"""GitHub's REST API, as an App that is being set up calls it. No error has a code, a key or a secret.

How a request is sent is given: the command and the app have different HTTP clients.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from shared.frozen import dataclass, field
from shared.github_app import APP_ID, KEY, TAG, TAG_ID, WEBHOOK

TIMEOUT = 20.0
"""Seconds until GitHub is taken not to answer."""
JWT_SECONDS = 540
"""How long a token of the App is valid; GitHub takes ten minutes at most, and clocks differ."""
CLOCKS_DIFFER = 60
_DELIVERIES = "/app/hook/deliveries"
_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def is_code(text: str) -> bool:
    """Return whether a text has the form of what GitHub gives in exchange for a manifest."""
    return _CODE.fullmatch(text) is not None


class GitHubRefused(ValueError):
    """GitHub did not answer, or refused; the message says what to do."""


@dataclass(frozen=True)
class Answer:
    """An answer of GitHub: its status, and its JSON, None for one that cannot be read."""

    status: int
    body: Any


Send = Callable[[str, str, Mapping[str, str], Mapping[str, Any] | None], Answer]
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


@dataclass(frozen=True)
class HookAttempt:
    """An attempt to deliver an event to the app: its number, and the status of the answer, 0 for none."""

    number: int
    event: str
    at: datetime
    status: int


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

    def last_attempt(self) -> HookAttempt | None:
        """Return the newest delivery to the webhook, None for none: docs.github.com/rest/apps/webhooks.

        GitHub sends a ping when an App is registered (webhook-events-and-payloads there, ``hook.app_id``).
        """
        answer = self._as_app("GET", f"{_DELIVERIES}?per_page=1")
        if not isinstance(answer.body, list):
            _checked(answer)
            raise GitHubRefused("GitHub's answer has no list of deliveries.")
        try:
            return _attempt_of(answer.body[0]) if answer.body else None
        except (KeyError, TypeError, ValueError):
            raise GitHubRefused("GitHub's answer has no list of deliveries.") from None

    def deliver_again(self, number: int) -> None:
        """Have GitHub deliver an event again, signed with the present secret."""
        answer = self._as_app("POST", f"{_DELIVERIES}/{number}/attempts")
        if answer.status != 202:
            _checked(answer)

    def _as_app(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        import jwt

        now = int(time.time())
        claims = {"iat": now - CLOCKS_DIFFER, "exp": now + JWT_SECONDS, "iss": self._id}
        try:
            token = jwt.encode(claims, self._key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Not chained: the cause could contain the key.
            raise GitHubRefused("This is not an RSA private key in PEM form.") from None
        return _call(self._send, self._api, method, path, token=token, body=body)


def _attempt_of(item: Mapping[str, Any]) -> HookAttempt:
    at = datetime.fromisoformat(str(item["delivered_at"]))
    return HookAttempt(int(item["id"]), str(item["event"]), at, int(item["status_code"]))


def _call(
    send: Send, api: str, method: str, path: str, *, token: str = "", body: Mapping[str, Any] | None = None
) -> Answer:
    headers = {"Accept": "application/vnd.github+json", "User-Agent": "roadstead"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return send(method, f"{api}{path}", headers, body)


def _checked(answer: Answer) -> dict[str, Any]:
    found = answer.body
    if not 200 <= answer.status < 300:
        said = found.get("message") if isinstance(found, dict) else None
        raise GitHubRefused(f"GitHub answered {answer.status}: {said or 'without a reason'}")
    if not isinstance(found, dict):
        raise GitHubRefused("GitHub's answer cannot be read.")
    return found
