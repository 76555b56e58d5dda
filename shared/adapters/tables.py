"""State in Azure Table Storage: small tables, every row written by compare-and-swap on its ETag.

Limits (learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model): a string
property holds 32 Ki characters, a binary one 64 KiB, an entity 1 MiB; keys may not contain ``/ \\ # ?``.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

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
from azure.data.tables import TableClient, TableErrorCode, TableServiceClient, UpdateMode
from pydantic import TypeAdapter

from shared.jobs import row as rows
from shared.jobs.buckets import Bucket
from shared.jobs.errors import Stale, Unauthenticated, Unavailable, from_http
from shared.jobs.row import ClusterRow
from shared.jobs.settle import Event
from shared.ports import DeadLetter, FleetRow, PlanRecord

CLUSTERS, EVENTS, PLANS, DELIVERIES, FLEETS, BLOBS, LETTERS, BUCKETS = TABLES = (
    "roadsteadclusters",
    "roadsteadevents",
    "roadsteadplans",
    "roadsteaddeliveries",
    "roadsteadfleets",
    "roadsteadblobs",
    "roadsteaddeadletters",
    "roadsteadbuckets",
)
_TEXT_LIMIT = 30_000
_BYTES_LIMIT = 60_000
_LAST = 10**13
_MOST_REMOVED = 2000
"""So that a run of the housekeeping ends in time; the next one goes on."""
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_PLAN: TypeAdapter[PlanRecord] = TypeAdapter(PlanRecord)
_LETTER: TypeAdapter[DeadLetter] = TypeAdapter(DeadLetter)
_FLEET: TypeAdapter[FleetRow] = TypeAdapter(FleetRow)
_MARKS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_BATCH = 100
_BATCH_BYTES = 2 << 20
"""A transaction holds 100 entities of one partition and 4 MiB; bytes grow by a third on the way."""
_READERS = 8
_REPLACE = {"mode": UpdateMode.REPLACE}


def table_service(
    *, connection_string: str | None, endpoint: str | None, credential: TokenCredential | None
) -> TableServiceClient:
    """Return a client: from a connection string if given, else from an endpoint and our identity."""
    options: dict[str, Any] = {"retry_total": 0, "connection_timeout": 5, "read_timeout": 20}
    if connection_string:
        return TableServiceClient.from_connection_string(connection_string, **options)
    return TableServiceClient(endpoint=endpoint or "", credential=credential, **options)


class TablesState:
    """The State port for one fleet. Tables that are missing are made at the first write."""

    def __init__(self, service: TableServiceClient, fleet: str) -> None:
        self._service, self._fleet = service, fleet
        self._tables = {name: service.get_table_client(name) for name in TABLES}

    def cluster(self, name: str) -> ClusterRow | None:
        """Return a cluster's row, or None."""
        entity = self._get(CLUSTERS, self._fleet, name)
        return _row(entity) if entity is not None else None

    def clusters(self) -> Sequence[ClusterRow]:
        """Return the rows of the whole fleet, by name."""
        return [_row(entity) for entity in self._query(CLUSTERS, "PartitionKey eq @key")]

    def clusters_page(self, after: str, limit: int) -> Sequence[ClusterRow]:
        """Return at most ``limit`` rows, by name, of those after a name."""
        found = self._query(CLUSTERS, "PartitionKey eq @key and RowKey gt @after", page=limit, after=after)
        return [_row(entity) for entity in islice(found, limit)]

    def active_clusters(self) -> Sequence[ClusterRow]:
        """Return the rows whose job is active."""
        return [_row(entity) for entity in self._query(CLUSTERS, "PartitionKey eq @key and active eq true")]

    def save(self, row: ClusterRow) -> ClusterRow:
        """Write the row over its version, or as a new one; raise Stale."""
        entity = {
            "PartitionKey": self._fleet,
            "RowKey": row.name,
            "phase": row.phase.value,
            "active": row.job.active,
            "step": row.job.step.value,
            "generation": row.generation,
            "observedGeneration": row.observed_generation,
            **_packed(rows.to_json(row)),
        }
        return rows.with_etag(row, self._write(CLUSTERS, entity, row.etag))

    def forget(self, row: ClusterRow) -> None:
        """Remove the row if it is still this version; raise Stale."""
        with _translated():
            self._tables[CLUSTERS].delete_entity(
                self._fleet, row.name, etag=row.etag, match_condition=MatchConditions.IfNotModified
            )

    def append(self, events: Sequence[Event]) -> None:
        """Keep events."""
        for event in events:
            key = f"{_newest_first(event.at)}-{99_999_999 - event.sequence:08d}"
            entity = {
                "PartitionKey": f"{self._fleet}|{event.cluster}",
                "RowKey": f"{key}-{event.uid}-{event.reason}",
                **_packed(_EVENT.dump_json(event).decode()),
            }
            self._upsert(EVENTS, entity)

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Sequence[Event]:
        """Return a cluster's newest events (before a millisecond), newest first."""
        found: list[Event] = []
        after = f"{_newest_first(before)}~" if before else ""  # sorts behind the keys of that millisecond
        pages = self._query(
            EVENTS,
            "PartitionKey eq @key and RowKey gt @after",
            key=f"{self._fleet}|{cluster}",
            page=limit,
            after=after,
        )
        for entity in pages:
            found.append(_EVENT.validate_json(_unpacked(entity)))
            if len(found) >= limit:
                break
        return found

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove a cluster's events but for the newest."""
        found = self._keys(EVENTS, "PartitionKey eq @key", key=f"{self._fleet}|{cluster}")
        return self._remove(EVENTS, itertools.islice(found, keep, None))

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove older events of clusters that are not among the living."""
        found = self._keys(
            EVENTS,
            "PartitionKey ge @key and PartitionKey lt @end and RowKey gt @after",
            key=f"{self._fleet}|",
            end=f"{self._fleet}~",
            after=f"{_newest_first(at)}~",
        )
        return self._remove(EVENTS, (e for e in found if e["PartitionKey"].partition("|")[2] not in living))

    def fleet(self) -> FleetRow:
        """Return what was planned last."""
        entity = self._get(FLEETS, "fleet", self._fleet)
        if entity is None:
            return FleetRow()
        return replace(_FLEET.validate_json(_unpacked(entity)), etag=_etag(entity))

    def save_fleet(self, row: FleetRow) -> FleetRow:
        """Write the fleet's row over its version, and return it as saved; raise Stale."""
        body = _packed(_FLEET.dump_json(row, exclude={"etag"}).decode())
        entity = {"PartitionKey": "fleet", "RowKey": self._fleet, "commit": row.commit, **body}
        return replace(row, etag=self._write(FLEETS, entity, row.etag))

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        if not commit:
            return None
        entity = self._get(PLANS, self._fleet, commit)
        return _PLAN.validate_json(_unpacked(entity)) if entity is not None else None

    def save_plan(self, record: PlanRecord) -> None:
        """Write a plan over what is kept for its commit."""
        entity = {
            "PartitionKey": self._fleet,
            "RowKey": record.plan.commit,
            "open": record.open,
            "at": record.at,
            **_packed(_PLAN.dump_json(record).decode()),
        }
        self._upsert(PLANS, entity)

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans made since a time, newest first."""
        return self._plans("PartitionKey eq @key and at ge @at", at=at)

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        return self._plans("PartitionKey eq @key and open eq true")

    def _plans(self, query: str, **parameters: Any) -> Sequence[PlanRecord]:
        found = self._query(PLANS, query, **parameters)
        records = [_PLAN.validate_json(_unpacked(entity)) for entity in found]
        return sorted(records, key=lambda record: record.at, reverse=True)

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are kept; a few are read side by side."""
        with ThreadPoolExecutor(_READERS) as pool:
            found = zip(ids, pool.map(lambda sha: self._get(BLOBS, self._fleet, sha), ids), strict=True)
            return {sha: entity["content"] for sha, entity in found if entity is not None}

    def keep_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs, many at a time."""
        client = self._tables[BLOBS]
        for batch in _batches(blobs):
            writes = [
                ("upsert", {"PartitionKey": self._fleet, "RowKey": sha, "content": content}, _REPLACE)
                for sha, content in batch.items()
            ]
            with _translated():
                self._making(client, partial(client.submit_transaction, writes))

    def marks(self) -> Mapping[str, str]:
        """Return the clusters' marks."""
        entity = self._get(FLEETS, "marks", self._fleet)
        return _MARKS.validate_json(_unpacked(entity)) if entity is not None else {}

    def save_marks(self, marks: Mapping[str, str]) -> None:
        """Write the clusters' marks over those that are kept."""
        body = _packed(_MARKS.dump_json(dict(marks)).decode())
        self._upsert(FLEETS, {"PartitionKey": "marks", "RowKey": self._fleet, **body})

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every kept blob but these."""
        found = self._keys(BLOBS, "PartitionKey eq @key")
        return self._remove(BLOBS, (entity for entity in found if entity["RowKey"] not in wanted))

    def prune_plans(self, keep: int) -> int:
        """Remove plans but for the newest and every open one."""
        found = self._keys(PLANS, "PartitionKey eq @key", "at", "open")
        by_age = sorted(found, key=lambda entity: entity["at"], reverse=True)
        return self._remove(PLANS, (entity for entity in by_age[keep:] if not entity["open"]))

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters."""
        found = self._keys(LETTERS, "PartitionKey eq @key and at lt @before", before=before)
        return self._remove(LETTERS, found)

    def prune_deliveries(self, before: datetime) -> int:
        """Forget deliveries that were remembered before a time."""
        found = self._keys(DELIVERIES, "PartitionKey eq @key and at lt @before", before=before)
        return self._remove(DELIVERIES, found)

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, or None."""
        entity = self._get(BUCKETS, self._fleet, key)
        return Bucket(datetime.fromisoformat(entity["fullAt"]), _etag(entity)) if entity else None

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over its version; raise Stale."""
        entity = {"PartitionKey": self._fleet, "RowKey": key, "fullAt": bucket.full_at.isoformat()}
        self._write(BUCKETS, entity, bucket.etag)

    def keep_dead_letter(self, letter: DeadLetter) -> None:
        """Keep a dead letter; twice is once."""
        key = f"{_newest_first(letter.at)}-{letter.queue}-{_key(letter.id)}"
        body = _packed(_LETTER.dump_json(letter).decode())
        self._upsert(LETTERS, {"PartitionKey": self._fleet, "RowKey": key, "at": letter.at, **body})

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, newest first."""
        pages = self._query(LETTERS, "PartitionKey eq @key", page=limit)
        return [_LETTER.validate_json(_unpacked(entity)) for entity in itertools.islice(pages, limit)]

    def count_dead_letters(self) -> int:
        """Return how many dead letters are kept."""
        return sum(1 for _ in self._keys(LETTERS, "PartitionKey eq @key"))

    def delivery_seen(self, delivery: str) -> bool:
        """Tell whether a webhook delivery was queued before."""
        return self._get(DELIVERIES, self._fleet, _key(delivery)) is not None

    def remember_delivery(self, delivery: str, at: datetime) -> None:
        """Remember a webhook delivery."""
        self._upsert(DELIVERIES, {"PartitionKey": self._fleet, "RowKey": _key(delivery), "at": at})

    def _get(self, table: str, partition: str, key: str) -> Mapping[str, Any] | None:
        with _translated():
            try:
                return self._tables[table].get_entity(partition, key)
            except ResourceNotFoundError:
                return None

    def _query(
        self,
        table: str,
        query: str,
        *,
        key: str = "",
        page: int | None = None,
        select: list[str] | None = None,
        **more: Any,
    ) -> Iterator[Mapping[str, Any]]:
        parameters = {"key": key or self._fleet, **more}
        with _translated():
            try:
                yield from self._tables[table].query_entities(
                    query, parameters=parameters, results_per_page=page, select=select
                )
            except ResourceNotFoundError:  # the table was never written to
                return

    def _keys(self, table: str, query: str, *columns: str, **more: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the keys of what is found, and a few more columns."""
        return self._query(table, query, select=["PartitionKey", "RowKey", *columns], **more)

    def _remove(self, table: str, entities: Iterable[Mapping[str, Any]]) -> int:
        """Remove at most ``_MOST_REMOVED`` entities, one call each; one that is gone is success."""
        removed = 0
        for entity in itertools.islice(entities, _MOST_REMOVED):
            with _translated():
                self._tables[table].delete_entity(entity["PartitionKey"], entity["RowKey"])
            removed += 1
        return removed

    def _write(self, table: str, entity: dict[str, Any], etag: str) -> str:
        """Insert when ``etag`` is "", else replace that version; return the new etag."""
        client = self._tables[table]
        with _translated():
            if etag:
                written = client.update_entity(
                    entity, mode=UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified
                )
                return str(written["etag"])
            return str(self._making(client, lambda: client.create_entity(entity))["etag"])

    def _upsert(self, table: str, entity: dict[str, Any]) -> None:
        client = self._tables[table]
        with _translated():
            self._making(client, lambda: client.upsert_entity(entity, mode=UpdateMode.REPLACE))

    def _making(self, client: TableClient, write: Callable[[], Any]) -> Any:
        """Write, and make the table when there is none."""
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
        raise Stale("the row was changed by somebody else") from error
    except ResourceNotFoundError as error:  # an update, or a delete, of a row that is gone
        raise Stale("the row is gone") from error
    except ClientAuthenticationError as error:
        raise Unauthenticated("Table Storage refused our identity", request_id=_request_id(error)) from error
    except HttpResponseError as error:
        code = str(getattr(error, "error_code", "") or "")
        raise from_http(
            error.status_code or 500, code, f"Table Storage: {code}", request_id=_request_id(error)
        ) from error
    except AzureError as error:
        raise Unavailable(f"Table Storage did not answer ({type(error).__name__})") from error


def _request_id(error: HttpResponseError) -> str:
    headers = getattr(error.response, "headers", {})
    return str(headers.get("x-ms-request-id", ""))


def _newest_first(moment: datetime) -> str:
    """Return the beginning of a key that sorts later moments first, to the millisecond."""
    return f"{_LAST - int(moment.timestamp() * 1000):013d}"


def _etag(entity: Any) -> str:
    return str(entity.metadata["etag"])


def _row(entity: Any) -> ClusterRow:
    return rows.from_json(_unpacked(entity), _etag(entity))


def _key(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)[:200]


def _batches(blobs: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield the blobs in as few parts as a transaction allows."""
    batch: dict[str, bytes] = {}
    size = 0
    for sha, content in blobs.items():
        if batch and (len(batch) == _BATCH or size + len(content) > _BATCH_BYTES):
            yield batch
            batch, size = {}, 0
        batch[sha] = content
        size += len(content)
    if batch:
        yield batch


def _packed(text: str) -> dict[str, Any]:
    """Return the text as properties: readable if it is short, compressed if it is long."""
    if len(text) <= 8 * _TEXT_LIMIT:
        parts = [text[i : i + _TEXT_LIMIT] for i in range(0, len(text), _TEXT_LIMIT)]
        return {f"body{n}": part for n, part in enumerate(parts)}
    data = zlib.compress(text.encode())
    chunks = [data[i : i + _BYTES_LIMIT] for i in range(0, len(data), _BYTES_LIMIT)]
    return {f"zip{n}": chunk for n, chunk in enumerate(chunks)}


def _unpacked(entity: Mapping[str, Any]) -> str:
    if "zip0" in entity:
        return zlib.decompress(b"".join(_numbered(entity, "zip"))).decode()
    return "".join(_numbered(entity, "body"))


def _numbered(entity: Mapping[str, Any], prefix: str) -> Iterator[Any]:
    number = 0
    while f"{prefix}{number}" in entity:
        yield entity[f"{prefix}{number}"]
        number += 1
