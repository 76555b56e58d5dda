"""The base of every operation of Azure, and the port that makes a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from shared.azure.rate_limits import Limit
from shared.cluster.failures.errors import Unavailable
from shared.frozen import dataclass, field, replace
from shared.json_tree import Json
from shared.resource_ids import ClusterId, GroupId, ManagedIdentityId, RegionId, SubscriptionId

T = TypeVar("T")
Service = Literal["containerservice", "extensions", "fluxconfigurations", "resource"]
"""What each client library is called here."""
_NOT_ARGUMENTS = ("target", "etag", "only_new", "page")


@dataclass(frozen=True)
class WriteResponse:
    """Azure's response to a write: its id of the request, for support, and whether the resource is new.

    The id is "" in a response without one, which is possible when there was nothing to do.
    """

    request_id: str = ""
    created: bool = False


@dataclass(frozen=True)
class Request:
    """A request for which no library is worth its size.

    ``path`` and the values of ``query`` have fields of the operation in braces; a value that is empty is left
    out. The body is the field of that name. A LIST is a GET of all pages, a QUERY is a POST that lists, and a
    POST reads one document.
    """

    verb: Literal["GET", "LIST", "POST", "QUERY", "PUT", "PATCH", "DELETE"]
    path: str
    version: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AzureCall(Generic[T]):
    """One operation on a resource, a region or a subscription; a read has only fields that can be hashed.

    ``sdk`` is the operation group and the method in the client library of ``service``, and ``request`` what
    is sent without one. ``absent_is_fine``: a resource that does not exist is a result and not an error.
    ``needs`` are the paths that each document has, such as "properties.agentPoolProfiles[].name": the adapter
    raises Unavailable for one without them. ``read_seconds`` is how long an answer may take to begin.
    """

    sdk: ClassVar[str] = ""
    request: ClassVar[Request | None] = None
    limits: ClassVar[Sequence[Limit]]
    name: ClassVar[str]
    service: ClassVar[Service] = "containerservice"
    writes: ClassVar[bool] = False
    absent_is_fine: ClassVar[bool] = False
    needs: ClassVar[Sequence[str]] = ()
    read_seconds: ClassVar[float] = 20
    target: GroupId | ClusterId | RegionId | SubscriptionId | ManagedIdentityId

    def __init_subclass__(cls) -> None:
        """Name the operation after its class: "put_pool"."""
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def place(self) -> tuple[str, ...]:
        """What the library's method takes for the target; its client has the subscription."""
        return astuple(self.target)[1:]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the operation takes after its target, without its condition."""
        return tuple(getattr(self, field.name) for field in fields(self) if field.name not in _NOT_ARGUMENTS)

    @property
    def query(self) -> Mapping[str, str]:
        """What the ``request`` has behind its path, without the API version."""
        asked = self.request.query if self.request else {}
        found = {name: value.format(**vars(self)) for name, value in asked.items()}
        return {name: value for name, value in found.items() if value}

    @property
    def turns(self) -> Sequence[tuple[Limit, str]]:
        """The limits that are not of the subscription, each with the name of what it is of."""
        return ()

    @property
    def relies_on(self) -> AzureCall[Any] | None:
        """The read that must be fresh before this write, where Azure itself checks no condition."""
        return None

    def result(self, answer: Any) -> T:
        """Return the result for Azure's response.

        ``answer`` is ARM's document, a list of them, or ``WriteResponse``; None where the resource does not
        exist.
        """
        result: T = answer
        return result

    def __str__(self) -> str:
        return f"{self.name} {'/'.join(astuple(self.target)[1:])}"


@dataclass(frozen=True)
class Write(AzureCall[WriteResponse]):
    """A change. Azure starts an operation and returns; ``properties.provisioningState`` shows its end."""

    writes = True

    def result(self, answer: WriteResponse | None) -> WriteResponse:
        """Return Azure's response; a resource that does not exist needs no delete."""
        return answer or WriteResponse()


@dataclass(frozen=True)
class DocumentPage:
    """A page of a list: Azure's documents, and where the next page begins, "" on the last one."""

    documents: Sequence[Json]
    next: str


@dataclass(frozen=True)
class PageCall(AzureCall[DocumentPage]):
    """One page of a list, which is one request; ``page`` is the ``next`` of the page before, "" for none."""

    page: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class NamedList(AzureCall[Mapping[str, Json]]):
    """A list of what is below a cluster, by name."""

    needs = ("name", "properties")

    def result(self, answer: Sequence[Json]) -> Mapping[str, Json]:
        """Return the documents by name."""
        return {str(document["name"]): document for document in answer}


class Azure(Protocol):
    """Azure Resource Manager, for resource groups and AKS clusters as ARM JSON."""

    def call(self, operation: AzureCall[T]) -> T:
        """Make the operation's one request and return its result."""


def every_document(azure: Azure, first: PageCall) -> Iterator[Json]:
    """Yield the documents of all pages, one call for each; raise Unavailable for a page that comes again."""
    read, operation = set[str](), first
    while True:
        page = azure.call(operation)
        yield from page.documents
        if not page.next:
            return
        if page.next in read:
            raise Unavailable("Azure Resource Manager links a page of a list to an earlier one")
        read.add(page.next)
        operation = replace(operation, page=page.next)
