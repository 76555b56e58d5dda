"""The vulnerability data of AKS over HTTPS: public, read-only and without a sign-in.

Two fields of a report are read, the targets of each release and their active vulnerabilities:
learn.microsoft.com/azure/aks/security-vulnerability-api-reference.
"""

from __future__ import annotations

import re
from typing import Any

from azure.core import PipelineClient
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest
from pydantic import BaseModel, ValidationError

from shared.adapters.transport import pooled_transport
from shared.cluster.failures.errors import TooLarge, Unavailable, Unexpected, from_address
from shared.cluster.failures.retry import retry_after

_CONNECT_SECONDS, _READ_SECONDS = 3, 10
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
        request = HttpRequest("GET", f"{self._url}/api/v1/{release}/scan-reports")
        transport = pooled_transport(self._url, connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)
        policies = [RetryPolicy.no_retries()]
        try:
            with (
                PipelineClient[Any, Any](self._url, transport=transport, policies=policies) as client,
                client.send_request(request, stream=True) as response,
            ):
                return _read(response)
        except AzureError as error:
            # Not chained: the library's text may have parts of an answer.
            text = f"the vulnerability data of AKS does not answer: {type(error).__name__}"
            raise Unavailable(text) from None


def _read(response: Any) -> frozenset[str] | None:
    status = response.status_code
    if status == 404:
        return None
    if status != 200:
        text = f"the vulnerability data of AKS answers with the status {status}"
        raise from_address(status, text, retry_after=retry_after(dict(response.headers)))
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > MAX_BYTES:
            raise TooLarge(f"a report of vulnerabilities is larger than {MAX_BYTES >> 20} MiB")
    return _ids(bytes(body))


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
        raise Unexpected("the vulnerability data of AKS answers with something that is no report") from None
    targets = (*(report.os_package_targets or ()), *(report.container_targets or ()))
    found = (entry.id for target in targets for entry in target.active_cves or ())
    return frozenset(name for name in found if _ID.fullmatch(name))
