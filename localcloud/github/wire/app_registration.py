"""GitHub Apps that are registered from a manifest: GitHub's pages for a person, and the calls around them.

Source: docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest (fields, the state,
an hour), docs.github.com/rest/apps ("Create a GitHub App from a manifest", "Get a repository installation
for the authenticated app"), docs.github.com/rest/apps/webhooks, docs.github.com/apps/creating-github-apps (a
name has 34 characters at most and is unique; an App that is not public is installed by its owner alone) and
docs.github.com/webhooks/webhook-events-and-payloads (the permission that each event needs).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from werkzeug.wrappers import Request, Response

from localcloud.common.clock import in_seconds
from localcloud.common.http_server import json_response
from localcloud.git.wire.repository_folder import RepositoryStore
from localcloud.github.wire.github_auth import Credentials, GitHubApp, GitHubError
from localcloud.github.wire.github_json import read_object
from localcloud.github.wire.webhooks import Webhooks
from shared.ports import Clock

CODE_LIFE = timedelta(hours=1)
LONGEST_NAME = 34
PERMISSIONS = {
    **dict.fromkeys(("contents", "statuses", "pull_requests", "checks", "issues"), ("read", "write")),
    **dict.fromkeys(("metadata", "members"), ("read",)),
}
"""The permissions that are known here, with their levels."""
NEEDED = {"push": "contents", "pull_request": "pull_requests", "pull_request_review": "pull_requests"}
NEEDED |= {"issues": "issues"}
"""The permission that an event needs, to read at least."""

_FORM = re.compile(r"(?:/organizations/([^/]+))?/settings/apps(/new)?")
_CODE = re.compile(r"/app-manifests/([^/]+)/conversions")
_INSTALL = re.compile(r"/apps/([^/]+)/installations(/new)?")
_INSTALLATION = re.compile(r"/repos/([^/]+/[^/]+)/installation")
_HOOK = "/app/hook/config"


@dataclass
class _RegisteredApp:
    """An App: its manifest, its owner ("" for the person), its keys, and until when its code is good."""

    id: int
    slug: str
    owner: str
    manifest: Mapping[str, Any]
    until: datetime
    key: str = field(repr=False)
    public_key: str
    webhook_secret: str = field(default_factory=lambda: secrets.token_hex(20), repr=False)


class AppRegistrations:
    """Answers the pages and the calls of registration and installation."""

    def __init__(
        self, store: RepositoryStore, credentials: Credentials, hooks: Webhooks, clock: Clock
    ) -> None:
        self._store, self._credentials, self._hooks, self._clock = store, credentials, hooks, clock
        self._apps: dict[str, _RegisteredApp] = {}
        self._codes: dict[str, _RegisteredApp] = {}

    def answer(self, request: Request) -> Response | None:
        """Return the answer, None for a path of another part of GitHub; raise GitHubError."""
        method, path = request.method, request.path
        if method == "POST" and (found := _FORM.fullmatch(path)):
            return (
                self._offered(request, found[1] or "") if found[2] else self._created(request, found[1] or "")
            )
        if method == "POST" and (found := _CODE.fullmatch(path)):
            return self._converted(request, found[1])
        if found := _INSTALL.fullmatch(path):
            return self._installed(request, found[1]) if method == "POST" else self._installing(found[1])
        if method == "GET" and (found := _INSTALLATION.fullmatch(path)):
            return self._installation(request, found[1])
        if path == _HOOK:
            return self._hook(request)
        return None

    def _offered(self, request: Request, owner: str) -> Response:
        """Show what an App of a manifest would be, with a field for its name."""
        manifest = _read_manifest(request.form.get("manifest", ""))
        state = request.args.get("state", "")
        rights = ", ".join(f"{name}: {level}" for name, level in manifest["default_permissions"].items())
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}">'
            for name, value in (("manifest", json.dumps(manifest)), ("state", state))
        )
        action = f"/organizations/{quote(owner)}/settings/apps" if owner else "/settings/apps"
        name = escape(str(manifest.get("name", "")))
        return _page(
            f'<p>{escape(rights)}</p><form action="{action}" method="post">{hidden}'
            f'<input name="name" value="{name}" maxlength="{LONGEST_NAME}">'
            f'<button type="submit">Create GitHub App for {escape(owner) or "me"}</button></form>'
        )

    def _created(self, request: Request, owner: str) -> Response:
        """Register the App, and send the person back with a code and the state."""
        manifest = _read_manifest(request.form.get("manifest", ""))
        name, state = request.form.get("name", "").strip(), request.form.get("state", "")
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        if not 0 < len(name) <= LONGEST_NAME or not slug or slug in self._apps:
            return _page("<p>Name is already taken, is empty, or is too long</p>", 422)
        pair = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        app = _RegisteredApp(
            1000 + len(self._apps),
            slug,
            owner,
            {**manifest, "name": name},
            self._clock() + CODE_LIFE,
            key=pair.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ).decode(),
            public_key=pair.public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode(),
        )
        code = secrets.token_hex(20)
        self._apps[slug] = self._codes[code] = app
        self._hooks.url, self._hooks.secret = manifest["hook_attributes"]["url"], app.webhook_secret
        hook = {
            "type": "App",
            "id": 1,
            "app_id": app.id,
            "active": True,
            "events": manifest["default_events"],
        }
        self._hooks.send("ping", {"zen": "Keep it logically awesome.", "hook_id": 1, "hook": hook})
        back = urlencode({"code": code} | ({"state": state} if state else {}))
        return Response(status=302, headers={"Location": f"{manifest['redirect_url']}?{back}"})

    def _converted(self, request: Request, code: str) -> Response:
        app = self._codes.pop(code, None)
        if app is None or self._clock() > app.until:
            raise GitHubError(404, "Not Found")
        self._credentials.register(GitHubApp(str(app.id), app.public_key, 0, slug=app.slug))
        body = {
            "id": app.id,
            "slug": app.slug,
            "name": app.manifest["name"],
            "owner": {"login": app.owner or "operator"},
            "html_url": f"{request.host_url.rstrip('/')}/apps/{app.slug}",
            "created_at": in_seconds(self._clock()),
            "permissions": app.manifest["default_permissions"],
            "events": app.manifest["default_events"],
            "client_id": f"Iv23{secrets.token_hex(8)}",
            "client_secret": secrets.token_hex(20),
            "webhook_secret": app.webhook_secret,
            "pem": app.key,
        }
        return json_response(201, body)

    def _installing(self, slug: str) -> Response:
        """Show the repositories of the owner of the App, of which the person chooses one."""
        app = self._known(slug)
        names = [name for name in self._store.names() if not app.owner or name.startswith(f"{app.owner}/")]
        buttons = "".join(
            f'<button name="repository" value="{escape(name)}">{name}</button>' for name in names
        )
        return _page(f'<form action="/apps/{slug}/installations" method="post">{buttons}</form>')

    def _installed(self, request: Request, slug: str) -> Response:
        app, name = self._known(slug), request.form.get("repository", "")
        if self._store.find(name) is None or (app.owner and not name.startswith(f"{app.owner}/")):
            raise GitHubError(404, "Not Found")
        rights = app.manifest["default_permissions"]
        self._credentials.register(
            GitHubApp(
                str(app.id),
                app.public_key,
                app.id + 50_000,
                reads_members="members" in rights,
                writes_contents=rights.get("contents") == "write",
                slug=slug,
                repositories=frozenset({name}),
            )
        )
        return _page(f"<p>{escape(slug)} was installed on {escape(name)}.</p>")

    def _installation(self, request: Request, repository: str) -> Response:
        app = self._credentials.check_app(request.headers.get("Authorization", ""))
        if not app.installation or (app.repositories is not None and repository not in app.repositories):
            raise GitHubError(404, "Not Found")
        body = {"id": app.installation, "app_id": int(app.id), "app_slug": app.slug}
        return json_response(200, {**body, "repository_selection": "selected"})

    def _hook(self, request: Request) -> Response:
        self._credentials.check_app(request.headers.get("Authorization", ""))
        if request.method == "PATCH":
            given = read_object(request)
            self._hooks.secret = str(given.get("secret", self._hooks.secret))
            self._hooks.url = given.get("url", self._hooks.url)
        config = {"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": self._hooks.url}
        return json_response(200, config)

    def _known(self, slug: str) -> _RegisteredApp:
        if slug not in self._apps:
            raise GitHubError(404, "Not Found")
        return self._apps[slug]


def _read_manifest(text: str) -> dict[str, Any]:
    """Return a manifest; raise GitHubError 422 for what GitHub would not register."""
    try:
        manifest = json.loads(text)
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        raise GitHubError(422, "Invalid GitHub App configuration: the manifest is no JSON object")
    hook, rights = manifest.get("hook_attributes", {}), manifest.setdefault("default_permissions", {})
    problems = [
        "" if str(manifest.get("url", "")).startswith("http") else "url is missing",
        "" if str(manifest.get("redirect_url", "")).startswith("http") else "redirect_url is missing",
        "" if str(hook.get("url", "")).startswith("https://") else "hook url is missing",
        *(
            f"permission {name}: {level}"
            for name, level in rights.items()
            if level not in PERMISSIONS.get(name, ())
        ),
        *(
            f"default event {event} is not supported by the permissions"
            for event in manifest.setdefault("default_events", [])
            if NEEDED.get(event) not in rights
        ),
    ]
    wrong = [problem for problem in problems if problem]
    if wrong:
        raise GitHubError(422, f"Invalid GitHub App configuration: {', '.join(wrong)}")
    return manifest


def _page(html: str, status: int = 200) -> Response:
    return Response(
        f"<!doctype html><title>GitHub</title>{html}", status, content_type="text/html; charset=utf-8"
    )
