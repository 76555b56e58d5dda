"""Tables and entities: reads, conditional writes, translated errors. Knows nothing of a fleet."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
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
    TableClient,
    TableErrorCode,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
)

from shared.adapters.tables.entities import is_key, split
from shared.adapters.tables.reading import Entity, joined_text, part_key, part_keys, parts_of, text_of
from shared.adapters.transport import pooled_transport
from shared.cluster.failures.errors import Stale, Unauthenticated, Unavailable, from_http
from shared.cluster.forms import WrongText

MOST_REMOVED = 20_000
"""How many entities a call removes, so that a run of the retention timer ends in time."""
READERS = 8
"""How many entities are read in parallel."""
TOGETHER = 100
"""How many entities of one partition a transaction can have."""
_ANY = "time"
"""An entity that does not exist: an answer is all that is wanted."""
_PAGE = 1000
"""The most entities that a query may ask for at a time; the service answers 400 to more.

Source: learn.microsoft.com/rest/api/storageservices/query-operators-supported-for-the-table-service.
"""


def table_service(
    *, connection_string: str | None, endpoint: str | None, credential: TokenCredential | None
) -> TableServiceClient:
    """Return a client: from a connection string if given, else from an endpoint and our identity."""
    if connection_string:
        url = TableServiceClient.from_connection_string(connection_string).url
        return TableServiceClient.from_connection_string(
            connection_string, transport=_transport(url), retry_total=0
        )
    url = endpoint or ""
    return TableServiceClient(endpoint=url, credential=credential, transport=_transport(url), retry_total=0)


def _transport(url: str) -> RequestsTransport:
    return pooled_transport(url, connect_seconds=5, read_seconds=20)


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


class Storage:
    """The tables of an app; ``partition`` is that of a query without a ``key``.

    The first write creates a missing table.
    """

    def __init__(self, service: TableServiceClient, tables: Sequence[str], partition: str) -> None:
        self._service, self._partition = service, partition
        self._tables = {name: service.get_table_client(name) for name in tables}

    def get(self, table: str, partition: str, key: str) -> Entity | None:
        """Return an entity, or None; also for a key that no entity can have."""
        if not (is_key(partition) and is_key(key)):
            return None
        with _translated():
            try:
                return self._tables[table].get_entity(partition, key)
            except ResourceNotFoundError:
                return None

    def query(
        self,
        table: str,
        query: str,
        *,
        key: str = "",
        page: int | None = None,
        select: list[str] | None = None,
        **more: Any,
    ) -> Iterator[Entity]:
        """Yield the entities of a query: ``@key`` in it is the partition, other names are in ``more``."""
        parameters = {"key": key or self._partition, **more}
        if not all(is_key(value) for value in parameters.values() if isinstance(value, str)):
            return
        with _translated():
            try:
                yield from self._tables[table].query_entities(
                    query, parameters=parameters, results_per_page=page and min(page, _PAGE), select=select
                )
            except ResourceNotFoundError:  # the table was never written to
                return

    def keys(self, table: str, query: str, *columns: str, **more: Any) -> Iterator[Entity]:
        """Yield the keys of the entities of a query, and a few more columns."""
        return self.query(table, query, select=["PartitionKey", "RowKey", *columns], **more)

    def write(self, table: str, entity: dict[str, Any], etag: str) -> str:
        """Insert the entity when ``etag`` is "", else replace that version; return the new etag."""
        client = self._tables[table]
        with _translated():
            if etag:
                written = client.update_entity(
                    entity, mode=UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified
                )
                return str(written["etag"])
            return str(self._creating(client, lambda: client.create_entity(entity))["etag"])

    def merge(self, table: str, entity: dict[str, Any], etag: str) -> str:
        """Write some properties of an entity over that version of it; return the new etag."""
        with _translated():
            written = self._tables[table].update_entity(
                entity, mode=UpdateMode.MERGE, etag=etag, match_condition=MatchConditions.IfNotModified
            )
            return str(written["etag"])

    def upsert(self, table: str, entity: dict[str, Any]) -> None:
        """Write an entity over any existing one."""
        client = self._tables[table]
        with _translated():
            self._creating(client, lambda: client.upsert_entity(entity, mode=UpdateMode.REPLACE))

    def upsert_document(self, table: str, entity: dict[str, Any], text: str, *, etag: str = "") -> None:
        """Write an entity with a text of up to 64 entities' size over any existing one; raise TooLarge.

        With an ``etag``: over that version only; raise Stale.

        The parts are written first, under the version of their text, and the entity names them. So whoever
        reads meanwhile finds the parts of the version that the entity names.
        """
        properties, parts = split(text)
        if parts:
            before = self.get(table, entity["PartitionKey"], entity["RowKey"]) or {}
            for number, part in enumerate(parts):
                self.upsert(table, {**part_key(entity, properties["version"], number), **part})
        whole = {**entity, **properties}
        if etag:
            self._replace(table, whole, etag)
        else:
            self.upsert(table, whole)
        if parts and before.get("version") != properties["version"]:
            self._remove_parts(table, before)

    def _replace(self, table: str, whole: dict[str, Any], etag: str) -> None:
        """Write an entity over that version; raise Stale, with its parts removed, which nothing names."""
        try:
            self.write(table, whole, etag)
        except Stale:
            current = self.get(table, whole["PartitionKey"], whole["RowKey"]) or {}
            if current.get("version") != whole.get("version"):
                self._remove_parts(table, whole)
            raise

    def write_document(self, table: str, entity: dict[str, Any], text: str, etag: str) -> str:
        """Write an entity with such a text as ``write`` does; return the new etag, raise Stale or TooLarge.

        Afterwards the parts are removed that were there before: nothing names them any more.
        """
        properties, parts = split(text)
        before = list(self.keys(table, "PartitionKey eq @key", key=parts_of(entity)))
        for number, part in enumerate(parts):
            self.upsert(table, {**part_key(entity, properties["version"], number), **part})
        written = self.write(table, {**entity, **properties}, etag)
        own = f"{properties.get('version')}-"
        self.remove(table, [part for part in before if not part["RowKey"].startswith(own)])
        return written

    def document(self, table: str, entity: Entity) -> str | None:
        """Return the text of an entity; None when another writer has just replaced its parts.

        Raise WrongText for a text that cannot be put together.
        """
        if "parts" not in entity:
            return text_of(entity)
        keys = part_keys(entity)
        parts = [self.get(table, key["PartitionKey"], key["RowKey"]) for key in keys]
        found = [part for part in parts if part is not None]
        if len(found) == len(keys):
            return joined_text(found)
        current = self.get(table, entity["PartitionKey"], entity["RowKey"])
        if current is None or etag_of(current) != etag_of(entity):
            return None
        raise WrongText("a part of the text is missing")

    def remove_documents(self, table: str, entities: Iterable[Entity]) -> int:
        """Remove entities with all their parts, also of versions whose writers did not come to their end."""
        some = list(entities)
        removed = self.remove(table, some)
        for entity in some[:removed]:
            self.remove(table, list(self.keys(table, "PartitionKey eq @key", key=parts_of(entity))))
        return removed

    def _remove_parts(self, table: str, entity: Entity) -> None:
        numbers = range(entity.get("parts") or 0)
        self.remove(table, [part_key(entity, entity["version"], number) for number in numbers])

    def upsert_together(self, table: str, entities: Collection[Entity]) -> None:
        """Write at most 100 entities of one partition, 4 MiB in all, in one transaction.

        One entity needs no transaction, which costs the client library twice as much as a single write.
        """
        if len(entities) == 1:
            self.upsert(table, dict(*entities))
            return
        client = self._tables[table]
        writes = [("upsert", entity, {"mode": UpdateMode.REPLACE}) for entity in entities]
        with _translated():
            self._creating(client, lambda: client.submit_transaction(writes))

    def delete(self, table: str, partition: str, key: str, etag: str) -> None:
        """Remove an entity if it is still this version; raise Stale."""
        with _translated():
            self._tables[table].delete_entity(
                partition, key, etag=etag, match_condition=MatchConditions.IfNotModified
            )

    def remove(self, table: str, entities: Iterable[Entity]) -> int:
        """Remove at most ``MOST_REMOVED`` entities, 100 a call; one that does not exist is success."""
        removed = 0
        some = itertools.islice(entities, MOST_REMOVED)
        for partition, group in itertools.groupby(some, key=itemgetter("PartitionKey")):
            keys = (str(entity["RowKey"]) for entity in group)
            while batch := list(itertools.islice(keys, TOGETHER)):
                self._remove_together(self._tables[table], partition, batch)
                removed += len(batch)
        return removed

    def _remove_together(self, client: TableClient, partition: str, keys: Sequence[str]) -> None:
        """Remove entities of one partition; one by one when the transaction fails, as for a missing one."""
        with _translated():
            if len(keys) > 1:
                deletes = [("delete", {"PartitionKey": partition, "RowKey": key}) for key in keys]
                try:
                    client.submit_transaction(deletes)
                except TableTransactionError:
                    pass
                else:
                    return
            for key in keys:
                client.delete_entity(partition, key)

    def _creating(self, client: TableClient, write: Callable[[], Any]) -> Any:
        """Write; create the table when it does not exist."""
        try:
            return write()
        except HttpResponseError as error:
            code = getattr(error, "error_code", None)
            if not isinstance(error, ResourceNotFoundError) and code != TableErrorCode.TABLE_NOT_FOUND:
                raise
            self._service.create_table_if_not_exists(client.table_name)
            return write()


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


def etag_of(entity: Any) -> str:
    """Return the version of an entity that was read."""
    return str(entity.metadata["etag"])


def written_at(entity: Any) -> datetime:
    """Return when an entity that was read was written, by the clock of its table."""
    moment: datetime = entity.metadata["timestamp"]
    return moment
