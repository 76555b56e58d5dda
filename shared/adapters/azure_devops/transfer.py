"""Git of Azure DevOps, over HTTPS, signed in with a bearer token.

Source: learn.microsoft.com/azure/devops/repos/git/auth-overview.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.adapters.azure_devops.client import refused
from shared.adapters.git.transfer import HttpsGitServer
from shared.cluster.failures.errors import ReconcileError


class DevOpsGit(HttpsGitServer):
    """One repository of Azure DevOps; ``authorization`` returns the header that signs in."""

    def __init__(self, url: str, authorization: Callable[[], str]) -> None:
        super().__init__(url, "", "")
        self._authorization = authorization

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,
    ) -> tuple[Any, Callable[[int], bytes]]:
        signed = {**(headers or {}), "Authorization": self._authorization()}
        return super()._http_request(url, signed, data, raise_for_status)

    def refused(self, status: int, headers: Mapping[str, str]) -> ReconcileError:
        """Return what an answer means that is not 200."""
        return refused(status, headers, f"Azure DevOps answered {status} to git")
