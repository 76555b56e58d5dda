"""The GitHub App of a fleet: what it may do and why, what it hears, and its manifest.

Source: docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest, and
docs.github.com/rest/authentication/permissions-required-for-github-apps for what each call needs.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlsplit

from shared.frozen import dataclass


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
