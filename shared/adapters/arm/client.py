"""Azure through its management libraries: any operation of ``shared.ports.azure``, by what it declares.

Documents go in and come out as plain ARM JSON. The pipeline of the libraries is our own: it authenticates
and nothing else, so no call retries, sleeps, registers a provider or writes a log line by itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeVar
from uuid import uuid4

from azure.core import MatchConditions
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ResourceNotModifiedError,
)
from azure.core.paging import ItemPaged
from azure.core.pipeline.policies import (
    ContentDecodePolicy,
    HeadersPolicy,
    ProxyPolicy,
    RequestIdPolicy,
    SansIOHTTPPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

from shared.adapters.arm.arm_requests import (
    CORRELATION,
    PUBLIC_CLOUD,
    UNREADABLE,
    ArmRequests,
    check_document,
    id_of,
    written,
)
from shared.adapters.transport import pooled_transport
from shared.azure.ownership import correlation_id
from shared.cluster.failures.azure_failures import refusal
from shared.cluster.failures.errors import ReconcileError, Unauthenticated, Unavailable
from shared.cluster.failures.retry import retry_after
from shared.ports.azure import AzureCall, Conditional, DocumentPage, PageCall, WriteResponse
from shared.ports.tally import Count, arm_request

_CONNECT_SECONDS = 5
T = TypeVar("T")


class _Correlation(SansIOHTTPPolicy[Any, Any]):
    """Gives each request an id that Azure passes on to all that follows from it, as its events have it."""

    def __init__(self, app: str) -> None:
        super().__init__()
        self._app = app

    def on_request(self, request: Any) -> None:
        """Set the header of a request."""
        request.http_request.headers[CORRELATION] = correlation_id(uuid4().hex, self._app)


class ArmAzure:
    """The ``Azure`` port; ``base_url`` is the cloud's Resource Manager. Safe to share between threads.

    ``api_versions`` has the API version for a service of ``AzureCall``, "" or none for the library's own.
    ``app`` is what the ids of requests are marked with, and ``count`` counts the requests.
    """

    def __init__(
        self,
        credential: TokenCredential,
        *,
        base_url: str = PUBLIC_CLOUD,
        api_versions: Mapping[str, str] | None = None,
        app: str = "",
        count: Count = lambda _: None,
    ) -> None:
        self._credential, self._base_url, self._app = credential, base_url.rstrip("/"), app
        self._count = count
        self._scope = f"{self._base_url}/.default"
        self._api_versions = {name: version for name, version in (api_versions or {}).items() if version}
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}
        self._transport: RequestsTransport | None = None

    def call(self, operation: AzureCall[T]) -> T:
        """Make the operation's one request; turn an error of the libraries into one of ours."""
        answer: Any = None
        try:
            answer = self._send(operation)
        except ResourceNotModifiedError as error:
            if not operation.writes:
                raise Unavailable(f"{UNREADABLE}: it is not modified, which nobody asked") from error
            answer = WriteResponse()  # there was nothing to do
        except HttpResponseError as error:
            if not (operation.absent_is_fine and _is_absent(error)):
                raise _from_response(error) from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            # The libraries expect the form of their models, and no JSON is decoded that no header calls so.
            raise Unavailable(UNREADABLE) from error
        except AzureError as error:
            raise Unavailable(f"Azure Resource Manager did not answer: {type(error).__name__}") from error
        return operation.result(answer)

    def probe(self) -> None:
        """Get a token for Azure Resource Manager; raise Unauthenticated, or Unavailable for no answer."""
        try:
            self._credential.get_token(self._scope)
        except HttpResponseError as error:
            raise _from_response(error) from error
        except AzureError as error:
            raise Unavailable(f"Microsoft Entra did not answer: {type(error).__name__}") from error

    def close(self) -> None:
        """Close the connections of all clients."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            self._transport = None

    def _send(self, operation: AzureCall[Any]) -> Any:
        subscription = operation.target.subscription
        if operation.request is not None:
            return self._client("", subscription).send(operation)
        method = attrgetter(operation.sdk)(self._client(operation.service, subscription))
        return _write(method, operation) if operation.writes else _read(method, operation)

    def _client(self, service: str, subscription: str) -> Any:
        """Return the client of a service and subscription, created at its first use."""
        with self._lock:
            if (service, subscription) not in self._clients:
                self._clients[service, subscription] = self._connect(service, subscription)
            return self._clients[service, subscription]

    def _connect(self, service: str, subscription: str) -> Any:
        policies = [
            RequestIdPolicy(),
            _Correlation(self._app),
            HeadersPolicy(),
            UserAgentPolicy("roadstead"),
            ProxyPolicy(),
            ContentDecodePolicy(),
            ARMChallengeAuthenticationPolicy(self._credential, self._scope),
        ]
        version = self._api_versions.get(service)
        if self._transport is None:  # one for all subscriptions: they are at one address
            self._transport = pooled_transport(
                self._base_url,
                connect_seconds=_CONNECT_SECONDS,
                read_seconds=AzureCall.read_seconds,
                sends=lambda method, address: self._count(arm_request(method, address)),
            )
        return _client_of(service)(
            self._credential,
            subscription,
            base_url=self._base_url,
            policies=policies,
            transport=self._transport,
            **({"api_version": version} if version else {}),
        )


def _client_of(service: str) -> Any:
    """Import the library of a service when it is first used: the import takes tenths of a second."""
    if not service:
        return ArmRequests
    if service == "resource":
        from azure.mgmt.resource.resources import ResourceManagementClient

        return ResourceManagementClient
    if service == "extensions":
        from azure.mgmt.kubernetesconfiguration.extensions import KubernetesConfigurationExtensionsMgmtClient

        return KubernetesConfigurationExtensionsMgmtClient
    if service == "fluxconfigurations":
        from azure.mgmt.kubernetesconfiguration.fluxconfigurations import (
            KubernetesConfigurationFluxConfigurationsMgmtClient,
        )

        return KubernetesConfigurationFluxConfigurationsMgmtClient
    from azure.mgmt.containerservice import ContainerServiceClient

    return ContainerServiceClient


def _read(method: Any, operation: AzureCall[Any]) -> Any:
    """Return the document, or the documents of all pages, or one page with the link to the next."""
    answer = method(*_arguments(operation), read_timeout=operation.read_seconds)
    if isinstance(operation, PageCall):
        pages = answer.by_page(operation.page or None)
        documents = [_document(model, operation) for model in next(pages)]
        return DocumentPage(documents, pages.continuation_token or "")
    if isinstance(answer, ItemPaged):
        return [_document(model, operation) for page in _each_once(answer.by_page()) for model in page]
    return _document(answer, operation)


def _document(model: Any, operation: AzureCall[Any]) -> Any:
    """Return the document of a model; what fits none comes as it is, without ``as_dict``."""
    document = model.as_dict()
    check_document(document, operation.needs, type(model))
    return document


def _each_once(pages: Any) -> Iterator[Any]:
    """Yield pages; raise Unavailable for a link to one that was read."""
    links = set[str]()
    for page in pages:
        yield page
        if pages.continuation_token in links:
            raise Unavailable(f"{UNREADABLE}: a page of a list links to an earlier one")
        links.add(pages.continuation_token)


def _write(method: Any, operation: AzureCall[Any]) -> WriteResponse:
    """Send the write; start a long-running operation without waiting for it."""
    starts = method.__name__.startswith("begin_")
    options = {"polling": False} if starts else {}
    sent = method(*_arguments(operation), **_condition(operation), **options, cls=_written)
    result: WriteResponse = sent.result() if starts else sent
    return result


def _arguments(operation: AzureCall[Any]) -> list[Any]:
    """Return the arguments of a method of the libraries; the client has the subscription."""
    given = (*operation.place, *operation.arguments)
    return [dict(document) if isinstance(document, Mapping) else document for document in given]


def _condition(operation: AzureCall[Any]) -> dict[str, Any]:
    """Return the options with which Azure refuses a write over another version."""
    if not isinstance(operation, Conditional):
        return {}
    if operation.only_new:
        return {"match_condition": MatchConditions.IfMissing}
    if operation.etag is None:
        return {}
    return {"etag": operation.etag, "match_condition": MatchConditions.IfNotModified}


def _written(reply: Any, *_: object) -> WriteResponse:
    """Return the result of a write; the libraries call this function as their ``cls``."""
    return written(reply.http_response)


_ABSENT = (
    *("notfound", "resourcenotfound", "resourcegroupnotfound", "parentresourcenotfound"),
    *("roleassignmentnotfound", "policyassignmentnotfound"),
)
"""ARM's codes, and that of AKS, for a resource that does not exist."""


def _is_absent(error: HttpResponseError) -> bool:
    """Return whether the resource does not exist; a 404 can also mean its subscription."""
    code = error.error.code if error.error is not None else ""
    return error.status_code == 404 and (code or "").lower() in _ABSENT


def _from_response(error: HttpResponseError) -> ReconcileError:
    response: Any = error.response
    if response is None or isinstance(error, DecodeError):
        if isinstance(error, ClientAuthenticationError):
            return Unauthenticated("There is no credential for Azure: " + error.message.partition("\n")[0])
        return Unavailable(UNREADABLE)
    document = _as_document(error)
    return refusal(
        response.status_code,
        document,
        str(document.get("message") or response.reason),
        retry_after=retry_after(response.headers),
        request_id=id_of(response.headers),
    )


def _as_document(error: HttpResponseError) -> dict[str, Any]:
    """Return the error of a response, in its envelope or without one: the libraries drop its subcode."""
    if error.error is None:
        return {}
    response: Any = error.response
    try:
        body = json.loads(response.text())
    except (ValueError, RecursionError):
        body = None
    found = body.get("error", body) if isinstance(body, Mapping) else None
    parsed = {"code": error.error.code, "message": error.error.message}
    return {**(found if isinstance(found, Mapping) else {}), **parsed}
