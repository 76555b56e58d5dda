"""GitHub through PyGithub: clients, credentials, and the translation of its errors.

A call is one HTTP request; the library neither retries nor sleeps. The client is safe to share between
threads: two threads on one PyGithub client can receive each other's responses, so a PyGithub client serves
one call at a time here. No error contains a credential.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import jwt
import requests
from github import Auth, BadAttributeException, Github, GithubException, GithubIntegration
from github.Repository import Repository as GitHubApi
from urllib3.util import Retry

from shared.adapters import answers
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Withheld,
    from_http,
)
from shared.cluster.failures.retry import retry_after

TIMEOUT = 15
"""Seconds to connect and to wait for data; GitHub gives up on a request after 10 (docs.github.com/rest,
"Troubleshooting the REST API", "Timeouts")."""

PAGE = 100
"""The most that GitHub lists in one response (docs.github.com/rest, "Using pagination in the REST API")."""

SECONDARY_WAIT = 60.0
"""Seconds to wait when GitHub throttles without a Retry-After (docs.github.com/rest, "Exceeding the rate
limit")."""

_MOVED = (301, 303, 307, 308)
_BLOCKED = (410, 451)
"""A repository that was taken down (docs.github.com/rest/repos/repos answers 451 with a "block")."""
_NO_RETRY = Retry(0, read=False, status_forcelist=(*_MOVED, 302), allowed_methods=None, raise_on_status=True)
"""No retries, and a redirect is an error: PyGithub follows redirects without the query, so the tree of a
renamed repository would lack the content of its folders, and a rejected write would look successful."""
_LINK = _NO_RETRY.new(status_forcelist=_MOVED)
"""For requests whose response is a link: a 302 is read and not followed."""


UNREADABLE = (*answers.UNREADABLE, BadAttributeException)
"""What reading an answer of another form raises."""


class GitHubClient:
    """Calls the repository "owner/name" on GitHub, or on a GitHub Enterprise Server at ``base_url``."""

    def __init__(self, repository: str, auth: Auth.Auth, *, base_url: str) -> None:
        self.name = repository
        self.is_app = isinstance(auth, Auth.AppInstallationAuth)
        self._auth = auth
        self._clients = _Clients(auth, base_url)
        self._scheme = urlsplit(base_url).scheme
        self._login = ""

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    @property
    def login(self) -> str:
        """The login under which our comments appear; read once."""
        if not self._login:
            with self.calling("the credential has no name") as api:
                self._login = self._ask_login(api)
        return self._login

    def _ask_login(self, api: GitHubApi) -> str:
        if isinstance(self._auth, Auth.AppInstallationAuth):
            return f"{self._clients.app_slug(self._auth)}[bot]"
        return str(json_call(api, "GET", "/user")["login"])

    def as_app(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of a GET as the GitHub App, None where the credential is none."""
        auth = self._auth
        if not isinstance(auth, Auth.AppInstallationAuth):
            return None
        with self.calling("the App is not known, or is not installed"):
            # Its requester authenticates as the App, not as the installation; a copy serves this call alone.
            requester = auth.requester.withAuth(auth.requester.auth)
            url = path.format(installation=auth.installation_id)
            return requester.requestJsonAndCheck("GET", url, parameters=dict(query or {}))[1]

    def archive_link(self, commit: str) -> str:
        """Return the URL of a commit's tarball: a secret, because whoever has it can read the files."""
        with self.calling(f"no commit {commit}", link=True) as api:
            link = api.get_archive_link("tarball", commit)
        if urlsplit(link).scheme not in ("https", self._scheme):
            raise Unavailable(f"{self.name}: GitHub offers its archive over plain HTTP")
        return link

    @contextmanager
    def calling(
        self, missing: str, *, absent: Sequence[int] = (404,), link: bool = False
    ) -> Iterator[GitHubApi]:
        """Lend the repository's API for one call, and translate its errors.

        ``missing`` describes what a status in ``absent`` means; ``link``: the response is a URL, not JSON.
        """
        try:
            with self._clients.for_link() if link else self._clients.one() as client:
                yield client.get_repo(self.name)
        except GithubException as error:
            if error.status in absent:
                raise Dependency(
                    f"{self.name}: {missing}, or the credential cannot read it",
                    request_id=_header(error, "x-github-request-id"),
                ) from error
            raise _error(error, self.name) from error
        except requests.exceptions.RetryError as error:
            raise Withheld(
                f"{self.name}: GitHub answered with a redirect, so the repository was renamed or moved: set "
                "GITHUB_REPOSITORY to its current name and REPOSITORY_PREVIOUS to this one "
                "(and check GITHUB_API_URL)"
            ) from error
        except requests.RequestException as error:
            raise Unavailable(f"GitHub did not answer: {type(error).__name__}") from error
        except UNREADABLE as error:
            raise Unavailable(f"{self.name}: GitHub's response cannot be parsed") from error


class LastAnswers:
    """The last answer of each URL, which is asked for again with its ETag.

    GitHub counts no request that has a valid credential and is answered with 304: docs.github.com/rest, "Best
    practices for using the REST API", "Use conditional requests if appropriate".
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mapping[str, Any], str]] = {}

    def read(self, api: GitHubApi, url: str) -> tuple[Mapping[str, Any], Any]:
        """Return the headers and the JSON of what GitHub has now; one call."""
        known = self._known.get(url)
        condition = {"If-None-Match": known[0]["etag"]} if known else {}
        status, headers, text = api.requester.requestJson("GET", url, headers=condition)
        if known and status == 304:  # its headers replace the stored ones: RFC 9111, 3.2
            headers, text = {**known[0], **headers}, known[1]
        elif status != 200:
            raise api.requester.createException(status, headers, _error_data(text))
        found = json.loads(text)
        if headers.get("etag"):
            self._known[url] = headers, text
        return headers, found


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Raise Unavailable where an answer of another form is read."""
    try:
        yield
    except UNREADABLE as error:
        raise Unavailable(f"{name}: GitHub's response cannot be parsed") from error


def json_call(
    api: GitHubApi, method: str, url: str, *, query: Mapping[str, Any] | None = None, body: Any = None
) -> Any:
    """Make one call and return the JSON of its response; ``url`` is absolute or relative to the API root."""
    return api.requester.requestJsonAndCheck(method, url, parameters=dict(query or {}), input=body)[1]


def github_auth(
    *,
    token: str | None = None,
    app_id: int | str | None = None,
    private_key: str | None = None,
    installation_id: int | str | None = None,
) -> Auth.Auth:
    """Return the credential of a GitHub App installation when ``app_id`` is set, otherwise of the token.

    An installation token expires after an hour and the library renews it. ``private_key`` is PEM; its line
    ends may be written as ``\\n``, as environment variables hold them.
    """
    if app_id and private_key and installation_id:
        app = Auth.AppAuth(app_id, sign_func=_signer(private_key.replace("\\n", "\n")))
        return app.get_installation_auth(int(installation_id))
    if not token:
        raise Unauthenticated("neither a GitHub token nor a complete GitHub App is configured")
    return Auth.Token(token)


def _signer(private_key: str) -> Callable[[dict[str, Any]], str]:
    def sign(claims: dict[str, Any]) -> str:
        try:
            return jwt.encode(claims, private_key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Not chained: the cause could contain the key.
            raise Unauthenticated("the GitHub App's private key is not an RSA key in PEM form") from None

    return sign


def _error(error: GithubException, repository: str) -> ReconcileError:
    """Return the error for an unsuccessful response of GitHub."""
    data = error.data if isinstance(error.data, dict) else {}
    message = f"{repository}: {_sentence(data) or 'GitHub gave no reason'}"
    request_id, wait = _header(error, "x-github-request-id"), _retry_after(error)
    limited = _header(error, "x-ratelimit-remaining") == "0" or "rate limit" in message.lower()
    if error.status == 429 or (error.status == 403 and (limited or _header(error, "retry-after"))):
        # GitHub reports its rate limits as 403 as often as 429.
        seconds = SECONDARY_WAIT if wait is None else wait
        return Throttled(message, retry_after=seconds, request_id=request_id)
    if error.status in _BLOCKED or (error.status == 403 and "block" in data):
        return Withheld(f"{message}{_why_blocked(data)}", request_id=request_id)
    return from_http(error.status, "", message, retry_after=wait, request_id=request_id)


def _error_data(text: str) -> dict[str, Any]:
    """Return the JSON of an unsuccessful response, {} for one without."""
    try:
        data = json.loads(text)
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


def _retry_after(error: GithubException) -> float | None:
    """Return the seconds that GitHub asks us to wait, by its own clock; None when it gives none."""
    wait = retry_after(error.headers or {})
    if wait is not None:
        return wait
    reset, date = _header(error, "x-ratelimit-reset"), _header(error, "date")
    if _header(error, "x-ratelimit-remaining") != "0":
        return None
    try:
        return max(1.0, int(reset) - parsedate_to_datetime(date).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None


def _header(error: GithubException, name: str) -> str:
    return str((error.headers or {}).get(name, ""))


class _Clients:
    """A pool of clients, each lent to one call at a time."""

    def __init__(self, auth: Auth.Auth, base_url: str) -> None:
        self._base_url = base_url
        self._lock = threading.Lock()
        self._idle: list[Github] = []
        self._closed = False
        self._login = self._client(auth)
        self._auth = _SharedAuth(auth)

    @contextmanager
    def one(self) -> Iterator[Github]:
        """Lend a client."""
        with self._lock:
            client = self._idle.pop() if self._idle else None
        client = client or self._client(self._auth)
        try:
            yield client
        finally:
            with self._lock:
                if not self._closed:
                    self._idle.append(client)
            if self._closed:
                client.close()

    @contextmanager
    def for_link(self) -> Iterator[Github]:
        """Lend a client that returns a redirect as a response."""
        client = self._client(self._auth, _LINK)
        try:
            yield client
        finally:
            client.close()

    def close(self) -> None:
        """Close the clients; a client that is in use is closed when it is returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in (*idle, self._login):
            client.close()

    def app_slug(self, auth: Auth.AppInstallationAuth) -> str:
        """Return the name of the GitHub App; one call."""
        # Its requester authenticates as the App, not as the installation.
        integration = GithubIntegration(**auth.requester.kwargs)
        try:
            return integration.get_app().slug
        finally:
            integration.close()

    def _client(self, auth: Auth.Auth, retry: Retry = _NO_RETRY) -> Github:
        return Github(
            auth=auth,
            base_url=self._base_url,
            timeout=TIMEOUT,
            retry=retry,
            seconds_between_requests=None,
            seconds_between_writes=None,
            user_agent="roadstead",
            lazy=True,
        )


class _SharedAuth(Auth.Auth):
    """One credential for many clients: an App's token is requested once, by one thread at a time."""

    def __init__(self, auth: Auth.Auth) -> None:
        self._auth = auth
        self._lock = threading.Lock()

    @property
    def token_type(self) -> str:
        """The scheme of the Authorization header."""
        return self._auth.token_type

    @property
    def token(self) -> str:
        """The token, renewed when it has expired."""
        with self._lock:
            return self._auth.token


def require_answer(said: str, remedy: str) -> None:
    """Raise Throttled or Unauthorized for an error of GraphQL that says so, in an answer with 200."""
    lower = said.lower()
    if "rate limit" in lower:
        raise Throttled(said, retry_after=SECONDARY_WAIT)
    if "not accessible" in lower or "permission" in lower:
        raise Unauthorized(f"{said}; {remedy}")
