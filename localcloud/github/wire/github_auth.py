"""Access to the local GitHub: one token, and the installation tokens of one GitHub App.

Also the hourly limit on requests, as GitHub counts it: all of them except conditional ones answered 304.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt
from jwt.types import Options

from localcloud.git.wire.git_http import OneToken
from shared.ports import Clock

TOKEN_LIFE = timedelta(hours=1)
"""How long an installation token is valid."""

JWT_LIFE = timedelta(minutes=10)
"""The longest a GitHub App may date its own token ahead."""


@dataclass(frozen=True)
class GitHubApp:
    """A GitHub App; ``public_key`` is PEM. ``installation`` is 0 while it is installed on no repository.

    ``repositories``: on which it is installed, None for every one. ``reads_members``: an owner of the
    organization gave it the permission Members: read, ``writes_contents``: Contents: write.
    """

    id: str
    public_key: str
    installation: int = 1
    reads_members: bool = True
    writes_contents: bool = True
    slug: str = "roadstead"
    repositories: frozenset[str] | None = None
    lacks: frozenset[str] = frozenset()
    """The permissions that nobody gave it, of those that it has otherwise."""

    @property
    def permissions(self) -> dict[str, str]:
        """What its installation may, as GitHub shows it."""
        found = {"metadata": "read", "contents": "write" if self.writes_contents else "read"}
        found |= dict.fromkeys(("statuses", "pull_requests", "checks", "issues"), "write")
        found |= {"members": "read"} if self.reads_members else {}
        return {name: level for name, level in found.items() if name not in self.lacks}


class GitHubError(Exception):
    """An answer of GitHub's that is not a success; ``errors`` are the details of a 422."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: tuple[dict[str, str], ...] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.errors = status, message, errors
        self.headers = headers or {}


class Credentials(OneToken):
    """Checks the credentials of callers, and issues installation tokens."""

    def __init__(self, token: str, *, app: GitHubApp | None, clock: Clock) -> None:
        super().__init__(token, clock)
        self._app = app
        self.token_writes, self.token_scopes = True, ""
        """Whether the one token may write, and its scopes, "" for a fine-grained one."""
        self._lock = threading.Lock()
        self._issued: dict[str, datetime] = {}

    def register(self, app: GitHubApp) -> None:
        """Know an App, or what became of it, from now on."""
        self._app = app

    def check(self, authorization: str) -> bool:
        """Admit a REST call, or raise 401 as GitHub does; return whether the caller is the App."""
        scheme, _, secret = authorization.partition(" ")
        if not authorization:
            raise GitHubError(401, "Requires authentication")
        if scheme.lower() not in ("token", "bearer") or not self.accepts(secret):
            raise GitHubError(401, "Bad credentials")
        with self._lock:
            return secret in self._issued

    @property
    def reads_members(self) -> bool:
        """Whether the App may read the members of teams."""
        return self._app is not None and self._app.reads_members

    @property
    def writes_contents(self) -> bool:
        """Whether the App may write to repositories."""
        return self._app is not None and self._app.writes_contents

    def check_members(self, authorization: str) -> None:
        """Admit a call that lists the members of a team, or raise 403 for an App without the permission."""
        if self.check(authorization) and not self.reads_members:
            raise GitHubError(403, "Resource not accessible by integration")

    def accepts(self, secret: str) -> bool:
        """Return whether a token is the configured one, or an installation token, and has not expired."""
        with self._lock:
            expires = self._issued.get(secret)
        return super().accepts(secret) or (expires is not None and self._clock() < expires)

    def headers(self, authorization: str) -> dict[str, str]:
        """Return what every answer to a personal access token says of it: its end, and its scopes.

        Sources: github.blog/changelog/2021-07-26-expiration-options-for-personal-access-tokens, the two forms
        that google/go-github reads, and docs.github.com/apps/oauth-apps, "Scopes for OAuth apps".
        """
        secret, found = authorization.partition(" ")[2], dict[str, str]()
        if not self.is_token(secret):
            return found
        if self.token_expires is not None:
            ends = self.token_expires.astimezone(UTC)
            found["github-authentication-token-expiration"] = f"{ends:%Y-%m-%d %H:%M:%S} UTC"
        return found | ({"x-oauth-scopes": self.token_scopes} if self.token_scopes else {})

    def issue(self, installation: int, authorization: str) -> tuple[str, datetime]:
        """Return a new installation token and its end for a call signed by the App; raise 401 or 404."""
        app = self.check_app(authorization)
        if installation != app.installation:
            raise GitHubError(404, "Not Found")
        token, expires = f"ghs_{secrets.token_urlsafe(27)}", self._clock() + TOKEN_LIFE
        with self._lock:
            self._issued[token] = expires
        return token, expires

    def check_app(self, authorization: str) -> GitHubApp:
        """Return the App that signed a call; raise 401 or 404."""
        if self._app is None:
            raise GitHubError(404, "Not Found")
        self._check_app(self._app, authorization.partition(" ")[2])
        return self._app

    def _check_app(self, app: GitHubApp, encoded: str) -> None:
        # Expiry is checked against the local cloud's own clock, not the library's.
        options: Options = {"require": ["exp", "iat", "iss"], "verify_exp": False, "verify_iat": False}
        try:
            claims = jwt.decode(encoded, app.public_key, algorithms=["RS256"], options=options)
        except jwt.PyJWTError as error:
            raise GitHubError(401, "A JSON web token could not be decoded") from error
        now = self._clock().timestamp()
        if claims["iss"] != app.id:
            raise GitHubError(401, "Integration not found")
        if claims["exp"] <= now:
            raise GitHubError(401, "'Expiration time' ('exp') must be in the future")
        if claims["exp"] > now + JWT_LIFE.total_seconds():
            raise GitHubError(401, "'Expiration time' ('exp') is too far in the future")
        if claims["iat"] > now:
            raise GitHubError(401, "'Issued at' ('iat') must be in the past")


class RateLimit:
    """Counts requests in a window of one hour; ``limit`` may be changed at any time."""

    def __init__(self, clock: Clock, limit: int = 5000) -> None:
        self.limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._used = 0
        self._reset = clock()

    def take(self) -> None:
        """Count a request; raise 403 when the window is used up."""
        with self._lock:
            if self._clock() >= self._reset:
                self._used, self._reset = 0, self._clock() + timedelta(hours=1)
            if self._used >= self.limit:
                raise GitHubError(403, "API rate limit exceeded for user ID 1.")
            self._used += 1

    def give_back(self) -> None:
        """Uncount a request, because it was answered 304."""
        with self._lock:
            self._used = max(0, self._used - 1)

    def headers(self) -> dict[str, str]:
        """Return the x-ratelimit headers of an answer."""
        with self._lock:
            return {
                "x-ratelimit-limit": str(self.limit),
                "x-ratelimit-remaining": str(max(0, self.limit - self._used)),
                "x-ratelimit-used": str(self._used),
                "x-ratelimit-reset": str(int(self._reset.timestamp())),
                "x-ratelimit-resource": "core",
            }
