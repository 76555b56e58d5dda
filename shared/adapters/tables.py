"""Table Storage behind the port of tables: conditional writes, transactions, translated errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from operator import itemgetter
from typing import Any

import requests
from azure.core import MatchConditions
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import (
    TableErrorCode,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
)

from shared.adapters.transport import pooled_transport
from shared.cluster.failures.errors import Stale, Unauthenticated, Unavailable, from_http
from shared.ports.state import TABLES
from shared.ports.tables import MOST_REMOVED, Condition, Entity, Key, Properties, Table, is_key
from shared.ports.tally import Count, table_request

_TOGETHER = 100
_TOGETHER_BYTES = 2 << 20
"""A transaction holds 100 entities of one partition and 4 MiB; bytes grow by a third in transit."""
_ANY = "time"
"""An entity that does not exist: an answer is all that is wanted."""
_PAGE = 1000
"""The most entities that a query may ask for at a time; the service answers 400 to more.

Source: learn.microsoft.com/rest/api/storageservices/query-operators-supported-for-the-table-service.
"""


def table_service(
    *,
    connection_string: str | None,
    endpoint: str | None,
    credential: TokenCredential | None,
    count: Count = lambda _: None,
) -> TableServiceClient:
    """Return a client: from a connection string if given, else from an endpoint and our identity.

    It counts its requests, of which each is a transaction that is billed, as one of several entities is.
    """
    if connection_string:
        url = TableServiceClient.from_connection_string(connection_string).url
        return TableServiceClient.from_connection_string(
            connection_string, transport=_transport(url, count), retry_total=0
        )
    url = endpoint or ""
    transport = _transport(url, count)
    return TableServiceClient(endpoint=url, credential=credential, transport=transport, retry_total=0)


def table_time(service: TableServiceClient) -> datetime:
    """Return the time of Table Storage in whole seconds, by the header ``Date`` of an answer."""
    answers: list[str] = []

    def note(response: Any) -> None:
        answers.append(response.http_response.headers.get("Date") or "")

    with _translated(), suppress(ResourceNotFoundError):
        service.get_table_client(_ANY).get_entity(_ANY, _ANY, raw_response_hook=note)
    try:
        return parsedate_to_datetime(answers[-1])
    except (IndexError, ValueError) as error:
        raise Unavailable("Table Storage did not say its time") from error


def _transport(url: str, count: Count) -> RequestsTransport:
    def sends(method: str, address: str) -> None:
        count(table_request(method, address))

    return pooled_transport(url, connect_seconds=5, read_seconds=20, sends=sends)


def storage_tables(service: TableServiceClient) -> Mapping[str, Table]:
    """Return the tables of an app by their names."""
    return {name: StorageTable(service, name) for name in TABLES}


class StorageTable:
    """A table of Table Storage."""

    def __init__(self, service: TableServiceClient, name: str) -> None:
        self.name = name
        self._service, self._client = service, service.get_table_client(name)

    def get(self, partition: str, key: str) -> Entity | None:
        """Return an entity, or None; also for a key that no entity can have."""
        if not (is_key(partition) and is_key(key)):
            return None
        with _translated():
            try:
                return self._entity(self._client.get_entity(partition, key))
            except ResourceNotFoundError:
                return None

    def _entity(self, found: Any) -> Entity:
        return Entity(self, found, str(found.metadata["etag"]), found.metadata["timestamp"])

    def query(
        self,
        partition: str,
        *conditions: Condition,
        until: str = "",
        select: Sequence[str] = (),
        page: int | None = None,
    ) -> Iterator[Entity]:
        """Yield the entities of a partition by key; with ``until``, of all partitions between the two."""
        inside: list[Condition] = [("PartitionKey", "gt" if until else "eq", partition)]
        inside += [("PartitionKey", "lt", until)] if until else []
        compared = [*inside, *conditions]
        if not all(is_key(value) for *_, value in compared if isinstance(value, str)):
            return
        ask = partial(
            self._client.query_entities,
            " and ".join(f"{name} {op} @p{n}" for n, (name, op, _) in enumerate(compared)),
            parameters={f"p{n}": value for n, (*_, value) in enumerate(compared)},
            results_per_page=page and min(page, _PAGE),
            select=list(select) or None,
        )
        with _translated():
            try:
                yield from map(self._entity, ask() if page else _all_of(ask))
            except ResourceNotFoundError:  # the table was never written to
                return

    def put(self, partition: str, entities: Mapping[str, Properties]) -> None:
        """Write entities by key over any existing ones."""
        client = self._client
        for batch in _batches(_keyed(partition, key, entity) for key, entity in entities.items()):
            with _translated():
                if len(batch) == 1:
                    self._creating(lambda: client.upsert_entity(batch[0], mode=UpdateMode.REPLACE))  # noqa: B023
                else:
                    writes = [("upsert", entity, {"mode": UpdateMode.REPLACE}) for entity in batch]
                    self._creating(lambda: client.submit_transaction(writes))  # noqa: B023

    def write(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Insert an entity when ``etag`` is "", else replace that version; return the new etag."""
        entity = _keyed(partition, key, properties)
        if etag:
            return self._update(entity, etag, UpdateMode.REPLACE)
        with _translated():
            return str(self._creating(lambda: self._client.create_entity(entity))["etag"])

    def merge(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Write some properties over those of that version; return the new etag."""
        return self._update(_keyed(partition, key, properties), etag, UpdateMode.MERGE)

    def _update(self, entity: dict[str, Any], etag: str, mode: UpdateMode) -> str:
        with _translated():
            written = self._client.update_entity(
                entity, mode=mode, etag=etag, match_condition=MatchConditions.IfNotModified
            )
            return str(written["etag"])

    def delete(self, partition: str, key: str, etag: str) -> None:
        """Remove an entity if it is still this version; one that does not exist is success."""
        with _translated():
            self._client.delete_entity(
                partition, key, etag=etag, match_condition=MatchConditions.IfNotModified
            )

    def remove(self, keys: Iterable[Key]) -> int:
        """Remove entities of any version, at most ``MOST_REMOVED``, 100 a call."""
        removed = 0
        some = itertools.islice(keys, MOST_REMOVED)
        for partition, group in itertools.groupby(some, key=itemgetter(0)):
            while batch := [key for _, key in itertools.islice(group, _TOGETHER)]:
                self._remove_together(partition, batch)
                removed += len(batch)
        return removed

    def _remove_together(self, partition: str, keys: Sequence[str]) -> None:
        """Remove entities of one partition; one by one when the transaction fails, as for a missing one."""
        with _translated():
            if len(keys) > 1:
                deletes = [("delete", _keyed(partition, key, {})) for key in keys]
                try:
                    self._client.submit_transaction(deletes)
                except TableTransactionError:
                    pass
                else:
                    return
            for key in keys:
                self._client.delete_entity(partition, key)

    def _creating(self, write: Callable[[], Any]) -> Any:
        """Write; create the table when it does not exist."""
        try:
            return write()
        except HttpResponseError as error:
            code = getattr(error, "error_code", None)
            if not isinstance(error, ResourceNotFoundError) and code != TableErrorCode.TABLE_NOT_FOUND:
                raise
            self._service.create_table_if_not_exists(self.name)
            return write()


def _all_of(ask: Callable[..., Any]) -> Iterator[Any]:
    """Yield what a query finds, a page after the other, of which the next one is on its way.

    An answer says in a header where the next page begins, and parsing what it has takes as long as that page.
    """
    pages = ask().by_page()
    first = next(pages)
    if pages.continuation_token is None:
        yield from first
        return
    with ThreadPoolExecutor(2, "pages") as pool:

        def begin(token: Any) -> tuple[Future[Any], Future[Any]]:
            following = Future[Any]()

            def note(response: Any) -> None:
                if response.http_response.status_code == HTTPStatus.OK:  # no challenge to sign in again
                    following.set_result(_token_in(response.http_response.headers))

            def read() -> Any:
                try:
                    return next(ask(raw_response_hook=note).by_page(token))
                finally:
                    if not following.done():  # nothing was answered: whoever takes the page learns why
                        following.set_result(None)

            return following, pool.submit(copy_context().run, read)

        under_way: tuple[Future[Any], Future[Any]] | None = begin(pages.continuation_token)
        yield from first
        while under_way is not None:
            following, page = under_way
            token = following.result()
            under_way = begin(token) if token else None
            yield from page.result()


def _token_in(headers: Any) -> Mapping[str, str | None] | None:
    """Return where the next page begins, as the client has it; None after the last one."""
    found = {name: headers.get(f"x-ms-continuation-Next{name}") for name in ("PartitionKey", "RowKey")}
    return found if any(found.values()) else None


def _keyed(partition: str, key: str, properties: Properties) -> dict[str, Any]:
    return {"PartitionKey": partition, "RowKey": key, **properties}


def _batches(entities: Iterable[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Yield entities of one partition in as few parts as transactions allow."""
    batch, size = list[dict[str, Any]](), 0
    for entity in entities:
        more = sum(len(value) for value in entity.values() if isinstance(value, str | bytes))
        if batch and (len(batch) == _TOGETHER or size + more > _TOGETHER_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entity)
        size += more
    if batch:
        yield batch


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the library's errors into ours."""
    try:
        yield
    except (ResourceModifiedError, ResourceExistsError) as error:
        raise Stale("somebody else changed the record") from error
    except ResourceNotFoundError as error:  # an update, or a delete, of a record that no longer exists
        raise Stale("the record no longer exists") from error
    except ClientAuthenticationError as error:
        raise Unauthenticated("Table Storage refused our identity", request_id=_request_id(error)) from error
    except HttpResponseError as error:
        # The library keeps the status of what it cannot parse, and has none where the stream ended.
        if error.status_code is None or 200 <= error.status_code < 400:
            raise Unavailable(
                "Table Storage gave an answer that cannot be read", request_id=_request_id(error)
            ) from error
        found = getattr(error, "error_code", "") or ""
        code = str(getattr(found, "value", found))
        raise from_http(
            error.status_code, code, f"Table Storage: {code}", request_id=_request_id(error)
        ) from error
    except (AzureError, requests.RequestException) as error:
        # The answer to a transaction is read as a stream, whose errors the library passes on as they are.
        raise Unavailable(f"Table Storage did not answer ({type(error).__name__})") from error


def _request_id(error: HttpResponseError) -> str:
    headers = getattr(error.response, "headers", {})
    return str(headers.get("x-ms-request-id", ""))
