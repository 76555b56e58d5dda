"""Requests of Azure Resource Manager through the pipeline that all management libraries share.

azure-mgmt-authorization alone has eighteen API versions in 7 MB for four requests, and azure-mgmt-monitor
hundreds of models for one. Documents go in and come out as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import cache
from http import HTTPStatus
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.exceptions import ARMErrorFormat

from shared.cluster.failures.errors import Unavailable
from shared.ports.azure import AzureCall, DocumentPage, PageCall, WriteResponse

# The door for Azure's documents: one of another form is an error that names the place, and no value.
#
# Objects, lists and texts have to be where the models of Azure's libraries have them. Names and values that
# are newer than the library pass, and so does any number or truth value.

UNREADABLE = "Azure Resource Manager gave an answer that cannot be read"
_TEXTS = (str, bytes, datetime, date, time, timedelta)
_RESOURCE = Mapping[str, Any]


def check_document(document: Any, needs: Sequence[str], model: type | None = None) -> None:
    """Raise Unavailable for a document that is no object, lacks what it needs, or does not fit its model.

    ``needs`` are paths such as "properties.principalId". Without a model, ``properties`` is an object.
    """
    try:
        wrong = next(_misfits(model or _RESOURCE, document, ""), "")
        wrong = wrong or next((path for path in needs if _lacks(document, path.split("."))), "")
    except RecursionError:
        wrong = "its depth"
    if wrong:
        raise Unavailable(f"{UNREADABLE}: {wrong} is missing or of another form")


def _misfits(hint: Any, value: Any, path: str) -> Iterator[str]:
    """Yield the path of each part of a value that does not fit a type hint; null is absent."""
    origin, inner = get_origin(hint), [part for part in get_args(hint) if part is not type(None)]
    if hint is _RESOURCE:
        if not isinstance(value, Mapping):
            yield "the document"
        elif not isinstance(value.get("properties", {}), Mapping | None):
            yield "properties"
    elif value is None or hint is Any:
        return
    elif origin in (Union, UnionType):
        is_text = any(isinstance(part, type) and issubclass(part, Enum | str) for part in inner)
        yield from _misfits(str if is_text else inner[0], value, path)
    elif origin is list:
        yield from _each(inner[0], enumerate(value), path) if isinstance(value, list) else (path,)
    elif origin is dict:
        yield from _each(inner[1], value.items(), path) if isinstance(value, Mapping) else (path,)
    elif _fields(hint):
        if not isinstance(value, Mapping):
            yield path
            return
        for name, below in _fields(hint).items():
            yield from _misfits(below, value.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(value, Mapping | list) or (hint in _TEXTS and not isinstance(value, str)):
        yield path


def _each(hint: Any, items: Any, path: str) -> Iterator[str]:
    for step, item in items:
        if item is None and isinstance(step, int):
            yield f"{path}[{step}]"
        yield from _misfits(hint, item, f"{path}[{step}]")


@cache
def _fields(model: Any) -> Mapping[str, Any]:
    """Return the type hints of a model of the libraries by the names in JSON, {} for any other type."""
    declared = {
        attribute: field
        for parent in getattr(model, "__mro__", ())
        for attribute, field in vars(parent).items()
        if hasattr(field, "_rest_name_input")
    }
    if not declared:
        return {}
    library = import_module(model.__module__.rpartition(".")[0])
    hints = get_type_hints(model, localns={"_models": library, "_types": library})
    return {field._rest_name_input or attribute: hints[attribute] for attribute, field in declared.items()}


def _lacks(value: Any, path: Sequence[str]) -> bool:
    """Return whether there is nothing at a path; of a list, marked with [], each item has the rest of it."""
    if not path:
        return value is None
    below = value.get(path[0].removesuffix("[]")) if isinstance(value, Mapping) else None
    if path[0].endswith("[]"):
        return any(_lacks(item, path[1:]) for item in below or ())
    return _lacks(below, path[1:])


CORRELATION = "x-ms-correlation-request-id"
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
            page = self._answer(
                HttpRequest("GET", link) if link else self._first(operation), operation
            ).json()
            return DocumentPage(_documents(page, operation), _link(page))
        response = self._answer(self._first(operation), operation)
        if operation.writes:
            return written(response)
        page = response.json()
        if operation.request is None or operation.request.verb in ("GET", "POST"):
            check_document(page, operation.needs)
            return page
        found, links = _documents(page, operation), set[str]()
        while (link := _link(page)) and link not in links:
            links.add(link)
            page = self._answer(HttpRequest("GET", link), operation).json()
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

    def _answer(self, request: HttpRequest, operation: AzureCall[Any]) -> Any:
        response = self._client.send_request(request, read_timeout=operation.read_seconds)
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


def written(response: Any) -> WriteResponse:
    """Return what the response to a write says."""
    return WriteResponse(id_of(response.headers), created=response.status_code == HTTPStatus.CREATED)


def id_of(headers: Mapping[str, str]) -> str:
    """Return Azure's id of a request, "" for none."""
    return str(headers.get(CORRELATION) or headers.get("x-ms-request-id") or "")
