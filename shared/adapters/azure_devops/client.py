"""The REST API 7.1 of Azure DevOps: one call at a time, signed in as the identity of the app.

Source: github.com/MicrosoftDocs/vsts-rest-api-specs (specification/git/7.1 and others), and of the sign-in
learn.microsoft.com/azure/devops/integrate/get-started/authentication/service-principal-managed-identity. The
library of Microsoft for Python was last released in 2020 as a beta, so the calls are here. No call is
repeated, and no redirect is followed: it leads to a page where people sign in.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import requests
from azure.core.credentials import TokenCredential

from shared.adapters import answers
from shared.adapters.answers import UNREADABLE
from shared.adapters.transport import entra_token, pooled_session
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    from_http,
)
from shared.cluster.failures.retry import retry_after
from shared.frozen import dataclass
from shared.masking import cut, without_secrets

SCOPE = "499b84ac-1321-427f-aa17-267ca6975798/.default"
"""Azure DevOps among the applications of Microsoft Entra."""
SECONDS = (5, 30)
"""To connect, and to wait for an answer, or for more of one: Azure DevOps delays the requests of a busy user
by up to 30 seconds (learn.microsoft.com/azure/devops/integrate/concepts/rate-limits)."""
VERSION = "7.1"
THROTTLED_WAIT = 60.0
"""Seconds to wait where a refusal does not say how long."""
_CODE = re.compile(r"(?:TF|VS)\d{5,7}")
_LONGEST = 500
NO_USER = (
    "Azure DevOps does not know the identity of the app: add it to the organization as a user with the "
    "access level Basic; its tenant must be the one to which the organization is connected"
)
NO_PERMISSION = (
    "give the identity of the app, in the security of the repository: Read, Contribute, Create branch, "
    "Contribute to pull requests"
)
Call = Callable[..., Any]
"""Takes the method, the path, and ``query``, ``body`` and ``version``; returns the JSON of the answer."""


@dataclass(frozen=True)
class RepositoryAddress:
    """Where a repository is: ``organization`` is the address before the project, the others are names."""

    organization: str
    project: str
    repository: str

    @classmethod
    def of(cls, url: str) -> RepositoryAddress:
        """Return the parts of https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY; raise ValueError."""
        before, _, repository = url.rstrip("/").rpartition("/_git/")
        organization, _, project = before.rpartition("/")
        if not organization or not project or not repository or not urlsplit(organization).netloc:
            raise ValueError("not the address of a repository of Azure DevOps")
        return cls(organization, unquote(project), unquote(repository))

    @property
    def url(self) -> str:
        """The address of the repository, for git and for people."""
        return f"{self.organization}/{quote(self.project)}/_git/{quote(self.repository)}"

    @property
    def api(self) -> str:
        """The address of the repository in the REST API."""
        return f"{self.organization}/{quote(self.project)}/_apis/git/repositories/{quote(self.repository)}"

    @property
    def identities(self) -> str:
        """The address of the service that knows the users of the organization."""
        parts = urlsplit(self.organization)
        if parts.hostname == "dev.azure.com":
            return f"https://vssps.dev.azure.com{parts.path}"
        if (parts.hostname or "").endswith(".visualstudio.com"):
            return f"https://{(parts.hostname or '').partition('.')[0]}.vssps.visualstudio.com"
        return self.organization


class DevOpsClient:
    """Calls the REST API of a repository. Safe to share between threads."""

    def __init__(self, address: RepositoryAddress, credential: TokenCredential) -> None:
        self.address, self._credential = address, credential
        self._session = pooled_session(address.organization)
        self._user = ""

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def authorization(self) -> str:
        """Return the header that signs in; the library keeps the token until shortly before its end."""
        return f"Bearer {entra_token(self._credential, SCOPE, 'Azure DevOps')}"

    @property
    def user(self) -> str:
        """The id of our own identity in the organization, under which our comments appear; read once."""
        if not self._user:
            with self.calling("the organization does not say who we are") as call:
                url = f"{self.address.organization}/_apis/connectionData"
                found = call("GET", url, version=f"{VERSION}-preview")
                self._user = str(found["authenticatedUser"]["id"])
        return self._user

    @contextmanager
    def calling(self, missing: str) -> Iterator[Call]:
        """Lend what makes calls; an answer of another form is Unavailable.

        ``missing`` describes what a 404 means. A path with "/" at its beginning is of the repository.
        """
        try:
            yield partial(self._call, missing)
        except UNREADABLE as error:
            raise Unavailable(f"{self._name}: the answer of Azure DevOps cannot be read") from error

    @property
    def _name(self) -> str:
        return f"{self.address.project}/{self.address.repository}"

    def _call(
        self,
        missing: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        version: str = VERSION,
    ) -> Any:
        url = f"{self.address.api}{path}" if path.startswith("/") or not path else path
        status, headers, content = self._sent(method, url, {**(query or {}), "api-version": version}, body)
        if status not in (200, 201):
            raise self._refused(status, headers, content, missing)
        found = json.loads(content)
        token = headers.get("x-ms-continuationtoken")
        return found | {"continuation": token} if token and isinstance(found, dict) else found

    def _sent(
        self, method: str, url: str, query: Mapping[str, Any], body: Any
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {
            "Authorization": self.authorization(),
            "Accept": "application/json",
            "User-Agent": "roadstead",
            "X-TFS-FedAuthRedirect": "Suppress",
        }
        until = time.monotonic() + answers.MOST_SECONDS
        try:
            answer = self._session.request(
                method,
                url,
                params=query,
                json=body,
                headers=headers,
                timeout=SECONDS,
                allow_redirects=False,
                stream=True,
            )
            return answer.status_code, answer.headers, answers.whole(answer, "Azure DevOps", until)
        except (requests.RequestException, OSError) as error:
            raise Unavailable(f"Azure DevOps does not answer: {type(error).__name__}") from None

    def _refused(
        self, status: int, headers: Mapping[str, str], content: bytes, missing: str
    ) -> ReconcileError:
        said = _message(content)
        found = refused(status, headers, f"{self._name}: {said or f'Azure DevOps answered {status}'}")
        if isinstance(found, Dependency):
            return Dependency(
                f"{self._name}: {missing}, or the identity of the app cannot read it",
                code=found.code,
                request_id=found.request_id,
            )
        return found


def refused(status: int, headers: Mapping[str, str], message: str) -> ReconcileError:
    """Return the error for an answer that is no success.

    A token that the organization does not accept is answered with 203 or a redirect, to the page where people
    sign in, and an identity that is no user of it with 401 and TF400813.
    """
    given = _CODE.search(message)
    code, request_id = given[0] if given else "", headers.get("ActivityId", "")
    if status == 203 or 300 <= status < 400:
        return Unauthenticated(f"{NO_USER} (it answered with its sign-in page)", request_id=request_id)
    if status == 401:
        kind = Unauthorized if code == "TF400813" else Unauthenticated
        return kind(f"{message}; {NO_USER}", code=code, request_id=request_id)
    if status == 403:
        return Unauthorized(f"{message}; {NO_PERMISSION}", code=code, request_id=request_id)
    wait = retry_after(headers)
    wait = THROTTLED_WAIT if status == 429 and wait is None else wait
    return from_http(status, code, message, retry_after=wait, request_id=request_id)


def _message(content: bytes) -> str:
    """Return what a refusal says, such as "TF401019: The Git repository ...", "" for anything else."""
    try:
        said = json.loads(content)["message"]
    except UNREADABLE:
        return ""
    line = " ".join(said.split()) if isinstance(said, str) else ""
    return cut(without_secrets(line, _LONGEST), _LONGEST)
