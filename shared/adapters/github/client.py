"""The way to GitHub through PyGithub: clients, the credential, and what goes wrong as our errors.

A call is one HTTP request, with no retry and no sleep inside the library. Safe to share between threads:
PyGithub keeps a request on its one connection until it is sent, so that two threads on one client can get
each other's answers; here a client serves one call at a time. No error holds a credential.
"""

from __future__ import annotations

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

from shared.jobs.errors import (
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unavailable,
    from_http,
)
from shared.jobs.retry import retry_after

TIMEOUT = 15
"""Seconds to connect and seconds to wait for data; GitHub gives up on a request after 10."""

SECONDARY_WAIT = 60.0
"""Seconds to wait when GitHub throttles and does not say how long: its documentation asks for a minute."""

_MOVED = (301, 303, 307, 308)
_NO_RETRY = Retry(0, read=False, status_forcelist=(*_MOVED, 302), allowed_methods=None, raise_on_status=True)
"""Nothing is tried again, and a redirect is an error: PyGithub would follow it without its query, so that
the tree of a renamed repository came back without its folders' content, and take a refused write as done."""
_LINK = _NO_RETRY.new(status_forcelist=_MOVED)
"""Where the answer is a link: a 302 that is read and not followed."""


class GitHubClient:
    """Calls the repository "owner/name" at GitHub or at a GitHub Enterprise Server's ``base_url``."""

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
        """The name that our comments carry; asked for once."""
        if not self._login:
            with self.calling("the credential has no name") as api:
                self._login = self._ask_login(api)
        return self._login

    def _ask_login(self, api: GitHubApi) -> str:
        if isinstance(self._auth, Auth.AppInstallationAuth):
            return f"{self._clients.app_slug(self._auth)}[bot]"
        return str(json_call(api, "GET", "/user")["login"])

    def archive_link(self, commit: str) -> str:
        """Return where a commit's files are as a tarball: a secret, for it lets anybody read them."""
        with self.calling(f"no commit {commit}", link=True) as api:
            link = api.get_archive_link("tarball", commit)
        if urlsplit(link).scheme not in ("https", self._scheme):
            raise Unavailable(f"{self.name}: GitHub offers its archive over an open line")
        return link

    @contextmanager
    def calling(
        self, missing: str, *, absent: Sequence[int] = (404,), link: bool = False
    ) -> Iterator[GitHubApi]:
        """Lend the repository's API for one call, and raise what goes wrong as our errors.

        ``missing`` says what a status in ``absent`` means; ``link``: the answer is an address, not JSON.
        """
        try:
            with self._clients.for_link() if link else self._clients.one() as client:
                yield client.get_repo(self.name)
        except GithubException as error:
            if error.status in absent:
                raise Dependency(
                    f"{self.name}: {missing}, or the credential may not see it",
                    request_id=_header(error, "x-github-request-id"),
                ) from error
            raise _error(error, self.name) from error
        except requests.exceptions.RetryError as error:
            raise InvalidManifest(
                f"{self.name}: GitHub answers with a redirect; the repository was renamed or moved: set "
                "GITHUB_REPOSITORY to its name of today and GITHUB_REPOSITORY_PREVIOUS to this one "
                "(and check GITHUB_API_URL)"
            ) from error
        except requests.RequestException as error:
            raise Unavailable(f"GitHub did not answer: {type(error).__name__}") from error
        except (ValueError, LookupError, TypeError, BadAttributeException) as error:
            raise Unavailable(f"{self.name}: GitHub's answer cannot be read") from error


def json_call(
    api: GitHubApi, method: str, url: str, *, query: Mapping[str, Any] | None = None, body: Any = None
) -> Any:
    """Make one call and return the JSON of its answer; ``url`` is absolute or below the API's root."""
    return api.requester.requestJsonAndCheck(method, url, parameters=dict(query or {}), input=body)[1]


def github_auth(
    *,
    token: str | None = None,
    app_id: int | str | None = None,
    private_key: str | None = None,
    installation_id: int | str | None = None,
) -> Auth.Auth:
    """Return the credential of a GitHub App's installation when ``app_id`` is set, else of the token.

    An installation's token lives an hour and is renewed by the library. ``private_key`` is PEM; its line
    ends may be written as backslash and n, as environment variables hold them.
    """
    if app_id and private_key and installation_id:
        app = Auth.AppAuth(app_id, sign_func=_signer(private_key.replace("\\n", "\n")))
        return app.get_installation_auth(int(installation_id))
    if not token:
        raise Unauthenticated("neither a GitHub token nor a whole GitHub App is configured")
    return Auth.Token(token)


def _signer(private_key: str) -> Callable[[dict[str, Any]], str]:
    def sign(claims: dict[str, Any]) -> str:
        try:
            return jwt.encode(claims, private_key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            # Not chained: the cause could quote the key.
            raise Unauthenticated("the GitHub App's private key is not an RSA key in PEM form") from None

    return sign


def _error(error: GithubException, repository: str) -> ReconcileError:
    """Return the error for an answer of GitHub's that is not a success."""
    data = error.data if isinstance(error.data, dict) else {}
    message = f"{repository}: {_sentence(data) or 'GitHub gave no reason'}"
    request_id, wait = _header(error, "x-github-request-id"), _retry_after(error)
    limited = _header(error, "x-ratelimit-remaining") == "0" or "rate limit" in message.lower()
    if error.status == 429 or (error.status == 403 and (limited or _header(error, "retry-after"))):
        # GitHub answers its rate limits with 403 as often as with 429.
        seconds = SECONDARY_WAIT if wait is None else wait
        return Throttled(message, retry_after=seconds, request_id=request_id)
    return from_http(error.status, "", message, retry_after=wait, request_id=request_id)


def _sentence(data: Mapping[str, Any]) -> str:
    """Return the message of an answer with its details, as "Validation Failed: description is too long"."""
    details: list[str] = [str(data.get("message", ""))]
    for item in data.get("errors") or ():
        details.append(str(item.get("message", item.get("code", "")) if isinstance(item, dict) else item))
    return ": ".join(part for part in details if part)


def _retry_after(error: GithubException) -> float | None:
    """Return the seconds GitHub asks us to wait, by its own clock; None when it does not say."""
    wait = retry_after(error.headers or {})
    if wait is not None:
        return wait
    reset, date = _header(error, "x-ratelimit-reset"), _header(error, "date")
    if _header(error, "x-ratelimit-remaining") == "0" and reset.isdigit() and date:
        return max(1.0, int(reset) - parsedate_to_datetime(date).timestamp())
    return None


def _header(error: GithubException, name: str) -> str:
    return str((error.headers or {}).get(name, ""))


class _Clients:
    """Lends clients, each to one call at a time; as many are kept as were ever used side by side."""

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
        """Lend a client that gives a redirect back as an answer."""
        client = self._client(self._auth, _LINK)
        try:
            yield client
        finally:
            client.close()

    def close(self) -> None:
        """Close the clients; one that is lent out is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in (*idle, self._login):
            client.close()

    def app_slug(self, auth: Auth.AppInstallationAuth) -> str:
        """Return the name of the GitHub App; one call."""
        # Its requester signs as the App, not as the installation.
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
    """One credential for many clients: an App's token is asked for once, by one thread at a time."""

    def __init__(self, auth: Auth.Auth) -> None:
        self._auth = auth
        self._lock = threading.Lock()

    @property
    def token_type(self) -> str:
        """The word before the token."""
        return self._auth.token_type

    @property
    def token(self) -> str:
        """The token, fetched anew when it has ended."""
        with self._lock:
            return self._auth.token
