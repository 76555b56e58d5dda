"""The vulnerability data of AKS over HTTPS: public, read-only and without a sign-in.

Two fields of a report are read, the targets of each release and their active vulnerabilities:
learn.microsoft.com/azure/aks/security-vulnerability-api-reference.
"""

from __future__ import annotations

import re
import time

import requests
from pydantic import BaseModel, ValidationError

from shared.adapters import answers
from shared.adapters.transport import pooled_session
from shared.cluster.failures.errors import Unavailable, Unexpected, from_address
from shared.cluster.failures.retry import retry_after

_SECONDS = (3, 10)
"""To connect, and to wait for an answer, or for more of one."""
_NAME = "the vulnerability data of AKS"
MAX_BYTES = 8 << 20
"""Limit on a report."""
_ID = re.compile(r"[A-Z]{2,8}-[A-Za-z0-9-]{4,30}")
"""CVE-2025-13151, GHSA-2464-8j7c-4cjm; anything else of an answer is left out."""


class VulnerabilityReports:
    """The ``Vulnerabilities`` port at an address; no call retries. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def active(self, release: str) -> frozenset[str] | None:
        """Return the ids of a release; one call."""
        url, until = f"{self._url}/api/v1/{release}/scan-reports", time.monotonic() + answers.MOST_SECONDS
        try:
            with pooled_session(self._url) as session:
                found = session.get(url, timeout=_SECONDS, allow_redirects=False, stream=True)
                body, status = answers.whole(found, _NAME, until, MAX_BYTES), found.status_code
        except (requests.RequestException, OSError) as error:
            # Not chained: the library's text may have parts of an answer.
            raise Unavailable(f"{_NAME} does not answer: {type(error).__name__}") from None
        if status == 404:
            return None
        if status != 200:
            text = f"{_NAME} answers with the status {status}"
            raise from_address(status, text, retry_after=retry_after(dict(found.headers)))
        return _ids(body)


class _Vulnerability(BaseModel):
    id: str


class _Target(BaseModel):
    active_cves: tuple[_Vulnerability, ...] | None = None


class _Report(BaseModel):
    container_targets: tuple[_Target, ...] | None
    os_package_targets: tuple[_Target, ...] | None = None


def _ids(body: bytes) -> frozenset[str]:
    try:
        report = _Report.model_validate_json(body)
    except (ValidationError, RecursionError):
        raise Unexpected(f"{_NAME} answers with something that is no report") from None
    targets = (*(report.os_package_targets or ()), *(report.container_targets or ()))
    found = (entry.id for target in targets for entry in target.active_cves or ())
    return frozenset(name for name in found if _ID.fullmatch(name))
