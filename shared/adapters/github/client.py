"""GitHub's REST and GraphQL APIs: credentials, calls, and the translation of its errors.

A call is one HTTP request, and one before it where the token of an App has ended; nothing is repeated. No
redirect is followed: that of a renamed repository would lose the query, and look like a write that
succeeded. No error contains a credential.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import jwt
from requests.structures import CaseInsensitiveDict

from shared.adapters.answers import UNREADABLE, Reply, asked, moment
from shared.adapters.transport import pooled_session
from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Withheld,
    from_http,
)
from shared.cluster.failures.retry import retry_after
from shared.frozen import dataclass
from shared.github_app import CLOCKS_DIFFER, JWT_SECONDS

TIMEOUT = 15
"""Seconds to connect and to wait for data; GitHub gives up on a request after 10 (docs.github.com/rest,
"Troubleshooting the REST API", "Timeouts")."""

PAGE = 100
"""The most that GitHub lists in one response (docs.github.com/rest, "Using pagination in the REST API")."""

SECONDARY_WAIT = 60.0
"""Seconds to wait when GitHub throttles without a Retry-After (docs.github.com/rest, "Exceeding the rate
limit")."""

_MOVED = (301, 302, 303, 307, 308)
_BLOCKED = (410, 451)
"""A repository that was taken down (docs.github.com/rest/repos/repos answers 451 with a "block")."""
_LEAST_LEFT = timedelta(seconds=20)
"""How long a token of an App is good at least when it is sent."""


class TokenAuth:
    """A personal access token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self, _grant: Callable[[str, str], Any]) -> str:
        """Return it."""
        return self._token


class AppAuth:
    """The installation of a GitHub App: its tokens end after an hour, and one serves all threads.

    ``private_key`` is PEM; its line ends may be written as ``\\n``, as environment variables hold them.
    """

    def __init__(self, app_id: str, private_key: str, installation: int) -> None:
        self.installation = installation
        self._id, self._key = app_id, private_key.replace("\\n", "\n")
        self._lock = threading.Lock()
        self._granted = "", datetime.fromtimestamp(0, UTC)

    def signed(self) -> str:
        """Return what authenticates as the App, and not as its installation."""
        now = int(time.time())
        claims = {"iat": now - CLOCKS_DIFFER, "exp": now + JWT_SECONDS, "iss": self._id}
        try:
            return jwt.encode(claims, self._key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Not chained: the cause could contain the key.
            raise Unauthenticated("the GitHub App's private key is not an RSA key in PEM form") from None

    def token(self, grant: Callable[[str, str], Any]) -> str:
        """Return a token of the installation; ``grant`` asks for one, by a path, as the App."""
        with self._lock:
            if self._granted[1] - _LEAST_LEFT < datetime.now(UTC):
                found = grant(f"app/installations/{self.installation}/access_tokens", self.signed())
                self._granted = str(found["token"]), moment(found["expires_at"])
            return self._granted[0]


GitHubAuth = TokenAuth | AppAuth


def github_auth(
    *,
    token: str | None = None,
    app_id: int | str | None = None,
    private_key: str | None = None,
    installation_id: int | str | None = None,
) -> GitHubAuth:
    """Return the credential of a GitHub App installation when ``app_id`` is set, otherwise of the token."""
    if app_id and private_key and installation_id:
        return AppAuth(str(app_id), private_key, int(installation_id))
    if not token:
        raise Unauthenticated("neither a GitHub token nor a complete GitHub App is configured")
    return TokenAuth(token)


class GitHubClient:
    """Calls the repository "owner/name" on GitHub, or on a GitHub Enterprise Server at ``base_url``.

    Safe to share between threads.
    """

    def __init__(self, repository: str, auth: GitHubAuth, *, base_url: str) -> None:
        self.name, self.auth = repository, auth
        self._base = base_url.rstrip("/")
        self._session = pooled_session(self._base)
        self._known: dict[str, Reply] = {}
        self._login = ""

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    @property
    def is_app(self) -> bool:
        """Whether the credential is that of an App."""
        return isinstance(self.auth, AppAuth)

    @property
    def login(self) -> str:
        """The login under which our comments appear; read once."""
        if not self._login:
            app = self.as_app("app")
            with self.calling("the credential has no name") as call:
                self._login = f"{app['slug']}[bot]" if app is not None else str(call("GET", "user")["login"])
        return self._login

    def as_app(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of a GET as the GitHub App, None where the credential is none."""
        if not isinstance(self.auth, AppAuth):
            return None
        with self.calling("the App is not known, or is not installed") as call:
            place = path.format(installation=self.auth.installation)
            return _json(call.checked(self._sent("GET", place, self.auth.signed(), params=dict(query or {}))))

    @contextmanager
    def calling(self, missing: str, *, absent: Sequence[int] = (404,)) -> Iterator[Calls]:
        """Lend what makes calls; an answer of another form is Unavailable.

        ``missing`` describes what a status in ``absent`` means.
        """
        try:
            yield Calls(self, missing, absent)
        except UNREADABLE as error:
            raise Unavailable(f"{self.name}: GitHub's response cannot be parsed") from error

    def _sent(self, method: str, path: str, token: str, **given: Any) -> Reply:
        """Send a request; a path with "/" at its beginning is of the repository, any other of the API."""
        url = f"{self._base}/repos/{self.name}{path}" if path.startswith("/") or not path else path
        if not urlsplit(url).scheme:
            url = f"{self._base}/{path}"
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "User-Agent": "roadstead",
            **given.pop("headers", {}),
        }
        return asked(self._session, method, url, name="GitHub", timeout=TIMEOUT, headers=headers, **given)


@dataclass(frozen=True)
class Calls:
    """What makes calls, with the credential of the repository; ``missing`` is what ``absent`` means."""

    client: GitHubClient
    missing: str
    absent: Sequence[int]

    def __call__(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> Any:
        """Make one call, and return the JSON of its answer, None for an empty one."""
        return _json(self.checked(self._sent(method, path, params=dict(query or {}), json=body)))

    def newest(self, path: str) -> tuple[Mapping[str, Any], Any]:
        """Return the headers and the JSON of what GitHub has now; it is asked for again with its ETag.

        GitHub counts no request that has a valid credential and is answered with 304: docs.github.com/rest,
        "Best practices for using the REST API", "Use conditional requests if appropriate".
        """
        known = self.client._known.get(path)
        reply = self._sent("GET", path, headers={"If-None-Match": known.headers["etag"]} if known else {})
        if known and reply.status == 304:  # its headers replace the stored ones: RFC 9111, 3.2
            headers = CaseInsensitiveDict([*known.headers.items(), *reply.headers.items()])
            reply = Reply(known.status, headers, known.body)
        self.checked(reply)
        if reply.headers.get("etag"):
            self.client._known[path] = reply
        return reply.headers, _json(reply)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the JSON of each page of a list, as GitHub links them."""
        seen = set[str]()
        while path and path not in seen:
            seen.add(path)
            reply = self.checked(self._sent("GET", path))
            yield _json(reply)
            path = _following(reply.headers.get("link", ""))

    def archive_link(self, commit: str) -> str:
        """Return the URL of a commit's tarball: a secret, because whoever has it can read the files."""
        reply = self._sent("GET", f"/tarball/{commit}")
        link = reply.headers["location"] if reply.status == 302 else self.checked(reply).headers["location"]
        if urlsplit(link).scheme not in ("https", urlsplit(self.client._base).scheme):
            raise Unavailable(f"{self.client.name}: GitHub offers its archive over plain HTTP")
        return link

    def graphql(self, query: str, variables: Mapping[str, Any], remedy: str) -> Any:
        """Return the data of a question of GraphQL; an error in an answer with 200 is InvalidManifest.

        ``remedy`` says what a person does where a permission is missing.
        """
        base = self.client._base.removesuffix("/v3") if self.client._base.endswith("/api/v3") else ""
        url = f"{base or self.client._base}/graphql"
        reply = self.checked(self._sent("POST", url, json={"query": query, "variables": variables}))
        answer = _json(reply)
        if answer.get("errors"):
            raise _unanswered(f"{self.client.name}: {_sentence(answer)}", remedy)
        return answer["data"]

    def _sent(self, method: str, path: str, **given: Any) -> Reply:
        return self.client._sent(method, path, self.client.auth.token(self._grant), **given)

    def _grant(self, path: str, signed: str) -> Any:
        return _json(self.checked(self.client._sent("POST", path, signed)))

    def checked(self, reply: Reply) -> Reply:
        """Return an answer that is a success; raise the error of any other."""
        if 200 <= reply.status < 300:
            return reply
        name, request_id = self.client.name, reply.headers.get("x-github-request-id", "")
        if reply.status in self.absent:
            message = f"{name}: {self.missing}, or the credential cannot read it"
            raise Dependency(message, request_id=request_id)
        if reply.status in _MOVED:
            raise Withheld(
                f"{name}: GitHub answered with a redirect, so the repository was renamed or moved: set "
                "GITHUB_REPOSITORY to its current name and GITHUB_REPOSITORY_PREVIOUS to this one "
                "(and check GITHUB_API_URL)"
            )
        raise _error(reply, name, request_id)


def _json(reply: Reply) -> Any:
    return json.loads(reply.body) if reply.body else None


def _following(links: str) -> str:
    """Return the address of the next page from the header ``Link``, "" on the last one: RFC 8288."""
    for link in links.split(","):
        address, _, rest = link.partition(";")
        if 'rel="next"' in rest:
            return address.strip().strip("<>")
    return ""


def _error(reply: Reply, repository: str, request_id: str) -> ReconcileError:
    """Return the error for an unsuccessful answer of GitHub."""
    data, headers = _error_data(reply.body), reply.headers
    message = f"{repository}: {_sentence(data) or 'GitHub gave no reason'}"
    wait = _retry_after(headers)
    limited = headers.get("x-ratelimit-remaining") == "0" or "rate limit" in message.lower()
    if reply.status == 429 or (reply.status == 403 and (limited or headers.get("retry-after"))):
        # GitHub reports its rate limits as 403 as often as 429.
        seconds = SECONDARY_WAIT if wait is None else wait
        return Throttled(message, retry_after=seconds, request_id=request_id)
    if reply.status in _BLOCKED or (reply.status == 403 and "block" in data):
        return Withheld(f"{message}{_why_blocked(data)}", request_id=request_id)
    return from_http(reply.status, "", message, retry_after=wait, request_id=request_id)


def _error_data(body: bytes) -> dict[str, Any]:
    """Return the JSON of an unsuccessful response, {} for one without."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _why_blocked(data: Mapping[str, Any]) -> str:
    """Return the reason of a block, such as "dmca" or "tos", and where GitHub explains it."""
    block = data.get("block")
    reasons = (
        [str(block.get(name) or "") for name in ("reason", "html_url")] if isinstance(block, dict) else []
    )
    text = ", ".join(filter(None, reasons))
    return f" ({text})" if text else ""


def _sentence(data: Mapping[str, Any]) -> str:
    """Return the message of a response with its details: "Validation Failed: description is too long"."""
    details: list[str] = [str(data.get("message", ""))]
    errors = data.get("errors")
    for item in errors if isinstance(errors, list) else ():
        details.append(str(item.get("message", item.get("code", "")) if isinstance(item, dict) else item))
    return ": ".join(part for part in details if part)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that GitHub asks us to wait, by its own clock; None when it gives none."""
    wait = retry_after(headers)
    if wait is not None or headers.get("x-ratelimit-remaining") != "0":
        return wait
    try:
        now = parsedate_to_datetime(headers.get("date", "")).timestamp()
        return max(1.0, int(headers.get("x-ratelimit-reset", "")) - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _unanswered(said: str, remedy: str) -> ReconcileError:
    """Return what an error of GraphQL means, in an answer with 200."""
    lower = said.lower()
    if "rate limit" in lower:
        return Throttled(said, retry_after=SECONDARY_WAIT)
    if "not accessible" in lower or "permission" in lower:
        return Unauthorized(f"{said}; {remedy}")
    return InvalidManifest(said)
