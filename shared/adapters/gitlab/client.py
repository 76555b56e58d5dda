"""GitLab's REST and GraphQL APIs through python-gitlab, and the translation of its errors.

A call is one HTTP request to the host of GIT_URL: no redirect is followed, nothing is sent elsewhere, the
library neither retries nor sleeps, and an answer has a size and an end. No error contains a credential.

Sources: docs.gitlab.com/api/rest (status codes, pagination), /api/rest/troubleshooting ("invalid_token",
"insufficient_scope"), /administration/settings/user_and_ip_rate_limits ("RateLimit-Reset", "Retry-After"),
/api/personal_access_tokens ("self").
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import gitlab
import requests
from gitlab.exceptions import GitlabError
from gitlab.v4.objects import Project
from urllib3.exceptions import HTTPError

from shared.adapters import answers
from shared.adapters.answers import UNREADABLE, checked
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    Unauthenticated,
    Unavailable,
    Withheld,
    from_http,
)
from shared.cluster.failures.retry import retry_after
from shared.masking import without_secrets

TIMEOUT = 15
"""Seconds to connect and seconds to wait for data."""
PAGE = 100
"""The most that GitLab lists in one response (docs.gitlab.com/api/rest, "Offset-based pagination")."""
PAGES = 10
"""Our own bound: a longer list counts as unknown."""
NEWEST = {"order_by": "created_at", "sort": "desc"}
OLDEST = {"order_by": "created_at", "sort": "asc"}
_THROTTLED_WAIT = 60.0
"""Seconds to wait when GitLab names none: its limits are of a minute."""
_MOST_REASON = 300


class _NoSuccess(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(str(status))
        self.status, self.headers, self.body = status, headers, body


class _Session(requests.Session):
    """Asks one origin alone, and reads no more of an answer than is taken."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._origin = origin

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send a request; raise _Answered for what is no success."""
        if _origin(request.url or "") != self._origin:
            raise Unavailable("GitLab leads to another host, which is not asked")
        until = time.monotonic() + answers.MOST_SECONDS
        response = super().send(request, **{**options, "stream": True, "allow_redirects": False})
        body = answers.whole(response, "GitLab", until)
        if not 200 <= response.status_code < 300:
            raise _NoSuccess(response.status_code, response.headers, body)
        response._content = body
        response._content_consumed = True
        return response


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


@dataclass(frozen=True)
class GitLabUser:
    """The account of the token: that of a project access token is a bot."""

    id: int
    name: str
    address: str


class GitLabClient:
    """Calls the project at an address such as https://gitlab.example.com/group/subgroup/project."""

    def __init__(self, address: str, token: str) -> None:
        parts = urlsplit(address)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.host = (parts.hostname or "").lower()
        self.name = parts.path.strip("/").removesuffix(".git")
        self._session = _Session(_origin(address))
        self.api = gitlab.Gitlab(
            self.origin,
            private_token=token or None,
            timeout=TIMEOUT,
            user_agent="roadstead",
            retry_transient_errors=False,
            session=self._session,
        )
        self._has_token, self._lock = bool(token), threading.Lock()
        self._user: GitLabUser | None = None

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    @property
    def user(self) -> GitLabUser:
        """Whose the token is; read once."""
        with self._lock:
            if self._user is None:
                with self.calling("the token has no user"):
                    found = self.read("/user")
                    address = found.get("commit_email") or found["email"]
                    self._user = checked(GitLabUser(found["id"], found["name"], address))
            return self._user

    def token_ends(self) -> datetime | None:
        """Return when the token ends, as GitLab says it: midnight of its day by UTC; None for never.

        Source: docs.gitlab.com/user/profile/personal_access_tokens, "Access token expiration".
        """
        if not self._has_token:
            return None
        try:
            with self.calling("the token does not say when it ends", absent=(403, 404)):
                day = self.read("/personal_access_tokens/self")["expires_at"]
                return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) if day is not None else None
        except Dependency:  # a deploy token or the token of a job, which has no such page
            return None

    @contextmanager
    def calling(self, missing: str, *, absent: Sequence[int] = (404,)) -> Iterator[Project]:
        """Lend the project for calls, and translate their errors.

        ``missing`` describes what a status in ``absent`` means.
        """
        try:
            yield self.api.projects.get(self.name, lazy=True)
        except _NoSuccess as answer:
            request_id = answer.headers.get("x-request-id", "")
            if answer.status in absent:
                raise Dependency(
                    f"{self.name}: {missing}, or the credential cannot read it", request_id=request_id
                ) from None
            raise _error(answer, self.name, request_id) from None
        except ReconcileError:
            raise
        except (requests.RequestException, HTTPError) as error:
            raise Unavailable(f"GitLab did not answer: {type(error).__name__}") from None
        except (GitlabError, AssertionError, *UNREADABLE) as error:
            raise Unavailable(f"{self.name}: GitLab's response cannot be parsed") from error

    def read(self, path: str, **query: Any) -> Any:
        """Return the JSON of a path below the root of the API, within ``calling``."""
        return self.api.http_get(path, query_data=query)


def page(manager: Any, **query: Any) -> list[Mapping[str, Any]]:
    """Return the JSON of the objects on one page of a list of python-gitlab."""
    return [item.attributes for item in manager.list(**{"per_page": PAGE, "get_all": False, **query})]


def _error(answer: _NoSuccess, name: str, request_id: str) -> ReconcileError:
    """Return the error for an unsuccessful answer."""
    said = without_secrets(_reason(answer.body), _MOST_REASON)
    message = f"{name}: {said or f'GitLab answered {answer.status} and gave no reason'}"
    if answer.status in (301, 302, 303, 307, 308):
        return Withheld(
            f"{name}: GitLab answered with a redirect, so the project was renamed or moved: set GIT_URL to "
            "its present address, and REPOSITORY_PREVIOUS to this path",
            request_id=request_id,
        )
    wait = retry_after(answer.headers)
    if answer.status == 429:
        seconds = _until_reset(answer.headers) if wait is None else wait
        return Throttled(message, retry_after=seconds, request_id=request_id)
    if answer.status == 401:
        message += "; give GIT_PASSWORD an access token that is neither expired nor revoked"
        return Unauthenticated(message, request_id=request_id)
    return from_http(answer.status, "", message, retry_after=wait, request_id=request_id)


def _until_reset(headers: Mapping[str, str]) -> float:
    """Return the seconds until the limit begins again, by GitLab's clock."""
    try:
        now = parsedate_to_datetime(headers.get("date", "")).timestamp()
        return max(1.0, int(headers.get("ratelimit-reset", "")) - now)
    except (ValueError, TypeError, OverflowError):
        return _THROTTLED_WAIT


def _reason(body: bytes) -> str:
    """Return what GitLab says: a text, a list of texts, or a list for each field."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    said = [_text(data.get(key)) for key in ("message", "error", "error_description", "scope")]
    return ": ".join(filter(None, said))


def _text(said: Any, depth: int = 3) -> str:
    if isinstance(said, str):
        return said
    if isinstance(said, list) and depth:
        return ", ".join(filter(None, (_text(item, depth - 1) for item in said)))
    if isinstance(said, dict) and depth:
        return ", ".join(f"{field} {_text(why, depth - 1)}" for field, why in said.items())
    return ""
