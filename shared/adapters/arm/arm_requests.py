"""Requests of Azure Resource Manager through the pipeline that all management libraries share.

azure-mgmt-authorization alone has eighteen API versions in 7 MB for four requests, and azure-mgmt-monitor
hundreds of models for one. Documents go in and come out as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.exceptions import ARMErrorFormat

from shared.adapters.arm.documents import UNREADABLE, check_document
from shared.cluster.failures.errors import Unavailable
from shared.ports.azure import AzureCall, Page, PageCall, Written

PUBLIC_CLOUD = "https://management.azure.com"
_METHODS = {"LIST": "GET", "QUERY": "POST"}
_FINE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT)


class ArmRequests:
    """Sends what operations declare as their ``request``; built like the clients of the libraries."""

    def __init__(
        self, _credential: Any, _subscription: str, *, base_url: str = PUBLIC_CLOUD, **pipeline: Any
    ) -> None:
        self._client: Any = ARMPipelineClient(base_url=base_url, **pipeline)
        self._base = base_url

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def send(self, operation: AzureCall[Any]) -> Any:
        """Return the document, the documents of all pages, one page, or what Azure says of a write."""
        if isinstance(operation, PageCall):
            link = operation.page
            page = self._answer(HttpRequest("GET", link) if link else self._first(operation)).json()
            return Page(_documents(page, operation), _link(page))
        response = self._answer(self._first(operation))
        if operation.writes:
            return written(response)
        page = response.json()
        if operation.request is None or operation.request.verb == "GET":
            check_document(page, operation.needs)
            return page
        found, links = _documents(page, operation), set[str]()
        while (link := _link(page)) and link not in links:
            links.add(link)
            page = self._answer(HttpRequest("GET", link)).json()
            found += _documents(page, operation)
        if link:
            raise Unavailable(f"{UNREADABLE}: a page of a list links to an earlier one")
        return found

    def _first(self, operation: AzureCall[Any]) -> HttpRequest:
        request = operation.request
        if request is None:
            raise TypeError(f"{operation.name} is an operation of a library")
        url = f"{self._base}{quote(request.path.format(**vars(operation)))}"
        params = {"api-version": request.version, **operation.query}
        method, body = _METHODS.get(request.verb, request.verb), getattr(operation, "body", None)
        return HttpRequest(method, url, params=params, json=None if body is None else dict(body))

    def _answer(self, request: HttpRequest) -> Any:
        response = self._client.send_request(request)
        if response.status_code not in _FINE:
            raise HttpResponseError(response=response, error_format=ARMErrorFormat)
        return response


def _documents(page: Any, operation: AzureCall[Any]) -> list[Any]:
    documents = page.get("value") or []
    if not isinstance(documents, list):
        raise TypeError("the value of a page is no list")
    for document in documents:
        check_document(document, operation.needs)
    return documents


def _link(page: Any) -> str:
    """Return the link to the next page, "" on the last one."""
    return str(page.get("nextLink") or "")


def written(response: Any) -> Written:
    """Return what the response to a write says."""
    return Written(id_of(response.headers), created=response.status_code == HTTPStatus.CREATED)


def id_of(headers: Mapping[str, str]) -> str:
    """Return Azure's id of a request, "" for none."""
    return str(headers.get("x-ms-correlation-request-id") or headers.get("x-ms-request-id") or "")
