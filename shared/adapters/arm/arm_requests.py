"""Requests of Azure Resource Manager through the pipeline that all management libraries share.

Documents go in and come out as they are. A subclass has the requests of some providers, each with its API
version, as methods of the shape of the libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.exceptions import ARMErrorFormat

PUBLIC_CLOUD = "https://management.azure.com"
T = TypeVar("T")
_FINE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT)


class ArmRequests:
    """The requests of one subscription; ``versions`` has the API version of each kind of path."""

    versions: ClassVar[Mapping[str, str]]

    def __init__(
        self, _credential: Any, subscription: str, *, base_url: str = PUBLIC_CLOUD, **pipeline: Any
    ) -> None:
        self._client: Any = ARMPipelineClient(base_url=base_url, **pipeline)
        self._base, self._subscription = base_url, f"/subscriptions/{subscription}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _get(self, path: str, kind: str) -> dict[str, Any]:
        document: dict[str, Any] = self._send("GET", path, kind).json()
        return document

    def _list(self, path: str, kind: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        page = self._send("GET", path, kind, query=query).json()
        found = list(page.get("value") or ())
        while page.get("nextLink"):
            page = self._answer(HttpRequest("GET", page["nextLink"])).json()
            found += page.get("value") or ()
        return found

    def _write(
        self, method: str, path: str, kind: str, cls: Callable[..., T], body: Mapping[str, Any] | None = None
    ) -> T:
        response = self._send(method, path, kind, body=body)
        return cls(SimpleNamespace(http_response=response), None, {})

    def _send(
        self,
        method: str,
        path: str,
        kind: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        url, params = f"{self._base}{quote(path)}", {"api-version": self.versions[kind], **(query or {})}
        return self._answer(HttpRequest(method, url, params=params, json=body))

    def _answer(self, request: HttpRequest) -> Any:
        response = self._client.send_request(request)
        if response.status_code not in _FINE:
            raise HttpResponseError(response=response, error_format=ARMErrorFormat)
        return response
