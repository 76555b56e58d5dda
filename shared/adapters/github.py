"""The fleet repository on GitHub, through PyGithub.

Every method is one HTTP call (a blob that was read before: none), with no retry and no sleep inside the
library. Blobs are immutable, so the last ones read stay in memory, bounded by their bytes. Safe to share
between threads: PyGithub keeps a request on its one connection until it is sent, so that two threads on
one client can get each other's answers; here a client serves one call at a time. No error holds a
credential.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import jwt
import requests
from github import Auth, Github, GithubException
from github.Commit import Commit
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
from shared.ports import CommitStatus, TreeEntry

TIMEOUT = 15
"""Seconds to connect and seconds to wait for data; GitHub gives up on a request after 10."""

SECONDARY_WAIT = 60.0
"""Seconds to wait when GitHub throttles and does not say how long: its documentation asks for a minute."""

_NO_RETRY = Retry(
    0, read=False, status_forcelist=(301, 302, 303, 307, 308), allowed_methods=None, raise_on_status=True
)
"""Nothing is tried again, and a redirect is an error: PyGithub would follow it without its query, so that
the tree of a renamed repository came back without its folders' content, and take a refused write as done."""

_PLAIN_MODES = ("100644", "100755")


class GitHubRepository:
    """The repository "owner/name" at GitHub or at a GitHub Enterprise Server's ``base_url``."""

    def __init__(
        self,
        repository: str,
        auth: Auth.Auth,
        *,
        base_url: str = "https://api.github.com",
        cache_bytes: int = 32 << 20,
    ) -> None:
        self._name = repository
        self._clients = _Clients(auth, base_url)
        self._blobs = _BlobCache(cache_bytes)

    def head(self, branch: str) -> str:
        """Return the commit that the branch points to; raise Dependency when there is no such branch."""
        # 409: the repository is empty, so it has no branch at all.
        with self._calling(f"no branch {branch}", absent=(404, 409)) as api:
            return api.get_git_ref(f"heads/{branch}").object.sha

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when GitHub cut the answer short."""
        with self._calling(f"no commit {commit}") as api:
            answer = api.get_git_tree(commit, recursive=True).raw_data
        if answer.get("truncated", True):
            raise Unavailable(
                f"{self._name}: the tree of {commit} is too large for one answer of GitHub "
                "(100,000 entries or 7 MB); a part of it must not be taken for the whole"
            )
        return [_tree_entry(item) for item in answer["tree"] if item["type"] != "tree"]

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        data = self._blobs.get(sha)
        if data is None:
            with self._calling(f"no blob {sha}") as api:
                data = base64.b64decode(api.get_git_blob(sha).content)
            if _blob_id(data) != sha:
                raise Unavailable(f"{self._name}: GitHub's answer for the blob {sha} is another content")
            self._blobs.put(sha, data)
        return data

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status; raise InvalidManifest when GitHub refuses what it says."""
        optional = {"target_url": status.target_url} if status.target_url else {}
        with self._calling(f"no commit {commit}") as api:
            attributes = {"sha": commit, "url": f"{api.url}/commits/{commit}"}
            Commit(api.requester, attributes=attributes, completed=True).create_status(
                status.state, description=status.description, context=status.context, **optional
            )

    def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    @contextmanager
    def _calling(self, missing: str, *, absent: Sequence[int] = (404,)) -> Iterator[GitHubApi]:
        """Lend the repository's API for one call, and raise what goes wrong as our errors.

        ``missing`` says what a status in ``absent`` means.
        """
        try:
            with self._clients.one() as client:
                yield client.get_repo(self._name)
        except GithubException as error:
            if error.status in absent:
                raise Dependency(
                    f"{self._name}: {missing}, or the credential may not see it",
                    request_id=_header(error, "x-github-request-id"),
                ) from error
            raise _error(error, self._name) from error
        except requests.exceptions.RetryError as error:
            raise InvalidManifest(
                f"{self._name}: GitHub answers with a redirect; the repository was renamed or moved: set "
                "GITHUB_REPOSITORY to its name of today (and check GITHUB_API_URL)"
            ) from error
        except requests.RequestException as error:
            raise Unavailable(f"GitHub did not answer: {type(error).__name__}") from error
        except ValueError as error:
            raise Unavailable(f"{self._name}: GitHub's answer cannot be read") from error


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


def _tree_entry(item: Mapping[str, Any]) -> TreeEntry:
    return TreeEntry(item["path"], item["sha"], item.get("size", 0), plain=item["mode"] in _PLAIN_MODES)


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
    wait = _header(error, "retry-after")
    if wait.isdigit():
        return float(wait)
    reset, date = _header(error, "x-ratelimit-reset"), _header(error, "date")
    if _header(error, "x-ratelimit-remaining") == "0" and reset.isdigit() and date:
        return max(1.0, int(reset) - parsedate_to_datetime(date).timestamp())
    return None


def _header(error: GithubException, name: str) -> str:
    return str((error.headers or {}).get(name, ""))


def _blob_id(data: bytes) -> str:
    """Return the id that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


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

    def close(self) -> None:
        """Close the clients; one that is lent out is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in (*idle, self._login):
            client.close()

    def _client(self, auth: Auth.Auth) -> Github:
        return Github(
            auth=auth,
            base_url=self._base_url,
            timeout=TIMEOUT,
            retry=_NO_RETRY,
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


class _BlobCache:
    """The blobs that were used last, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._blobs: OrderedDict[str, bytes] = OrderedDict()

    def get(self, sha: str) -> bytes | None:
        with self._lock:
            if sha in self._blobs:
                self._blobs.move_to_end(sha)
            return self._blobs.get(sha)

    def put(self, sha: str, data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._blobs.pop(sha, b""))
            self._blobs[sha] = data
            while self._size > self._limit:
                self._size -= len(self._blobs.popitem(last=False)[1])
