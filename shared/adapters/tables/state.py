"""State in Azure Table Storage: small tables, every record written by compare-and-swap on its ETag."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import attrgetter, itemgetter

from azure.data.tables import TableServiceClient
from pydantic import TypeAdapter

from shared.adapters.tables.acts import ACTS, ActsTable
from shared.adapters.tables.clusters import CLUSTERS, FLEETS, ClustersTable
from shared.adapters.tables.deliveries import DELIVERIES, DeliveriesTable
from shared.adapters.tables.entities import newest_first, packed, safe_key, unpacked
from shared.adapters.tables.notices import NoticesTable
from shared.adapters.tables.plans import PLANS, PlansTable
from shared.adapters.tables.promotions import PromotionsTable
from shared.adapters.tables.proposals import ProposalsTable
from shared.adapters.tables.rollouts import RolloutsTable
from shared.adapters.tables.storage import MOST_REMOVED, READERS, TOGETHER, Entity, Storage, etag_of
from shared.adapters.tables.sweeps import SweepsTable
from shared.adapters.tables.timers import TimersTable
from shared.jobs import stored_forms
from shared.jobs.event import Event
from shared.jobs.rate_limits import Bucket
from shared.ports import DeadLetter, FleetRecord

EVENTS, BLOBS, DEAD_LETTERS, BUCKETS, *_ = TABLES = (
    "roadsteadevents",
    "roadsteadblobs",
    "roadsteaddeadletters",
    "roadsteadbuckets",
    PLANS,
    CLUSTERS,
    FLEETS,
    ACTS,
    DELIVERIES,
)
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_DEAD_LETTER: TypeAdapter[DeadLetter] = TypeAdapter(DeadLetter)
_FLEET: TypeAdapter[FleetRecord] = TypeAdapter(FleetRecord)
_FINGERPRINTS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_BATCH = 100
_BATCH_BYTES = 2 << 20
"""A transaction holds 100 entities of one partition and 4 MiB; bytes grow by a third in transit."""


class TablesState(
    ClustersTable,
    PlansTable,
    ActsTable,
    DeliveriesTable,
    SweepsTable,
    ProposalsTable,
    PromotionsTable,
    RolloutsTable,
    TimersTable,
    NoticesTable,
):
    """The State port for one fleet."""

    def __init__(self, service: TableServiceClient, fleet: str) -> None:
        self._fleet = fleet
        self._storage = Storage(service, TABLES, fleet)

    def append(self, events: Sequence[Event]) -> None:
        """Save events, those of one cluster together."""
        for cluster, own in itertools.groupby(events, key=attrgetter("cluster")):
            keyed = {_event_key(event): event for event in own}
            entities = (
                {
                    "PartitionKey": f"{self._fleet}|{cluster}",
                    "RowKey": key,
                    **packed(_EVENT.dump_json(event).decode()),
                }
                for key, event in keyed.items()
            )
            while batch := list(itertools.islice(entities, TOGETHER)):
                self._storage.upsert_together(EVENTS, batch)

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Sequence[Event]:
        """Return a cluster's newest events (before a millisecond), newest first.

        The record is read first: an event that is moved meanwhile is found twice, and shown once. So is one
        that a crash had somebody save again, at another time.
        """
        after = f"{newest_first(before)}~" if before else ""  # sorts behind the keys of that millisecond
        record = self.cluster(cluster)
        recent = {_event_key(event): event for event in record.recent_events} if record else {}
        pages = self._storage.query(
            EVENTS,
            "PartitionKey eq @key and RowKey gt @after",
            key=f"{self._fleet}|{cluster}",
            page=limit,
            after=after,
        )
        stored = ((str(entity["RowKey"]), _EVENT.validate_json(unpacked(entity))) for entity in pages)
        found: dict[tuple[str, int, str], Event] = {}
        for _, event in heapq.merge(
            sorted(each for each in recent.items() if each[0] > after), stored, key=itemgetter(0)
        ):
            found.setdefault((event.uid, event.sequence, event.reason), event)
            if len(found) >= limit:
                break
        return list(found.values())

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove all but a cluster's newest events."""
        keys = self._storage.keys(EVENTS, "PartitionKey eq @key", key=f"{self._fleet}|{cluster}")
        return self._storage.remove(EVENTS, itertools.islice(keys, keep, None))

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove the events of clusters that are not in ``living`` and have none since a time.

        Those of living clusters may be millions. So each query is for what is between two of them.
        """
        after, first = f"{newest_first(at)}~", f"{self._fleet}|"
        borders = [first, *(f"{first}{name}" for name in sorted(living)), f"{self._fleet}~"]
        with ThreadPoolExecutor(READERS) as pool:
            expired = pool.map(partial(self._expired_between, after=after), itertools.pairwise(borders))
            return self._storage.remove(EVENTS, itertools.chain.from_iterable(expired))

    def _expired_between(self, borders: tuple[str, str], *, after: str) -> Sequence[Entity]:
        """Return the keys of the events between two partitions of clusters that have none since.

        No more than are removed, because there may be millions.
        """
        query = "PartitionKey gt @key and PartitionKey lt @end and RowKey gt @after"
        keys = self._storage.keys(EVENTS, query, key=borders[0], end=borders[1], after=after)
        by_cluster = itertools.groupby(keys, key=itemgetter("PartitionKey"))
        expired = (own for partition, own in by_cluster if not self._has_events_since(partition, after))
        return list(itertools.islice(itertools.chain.from_iterable(expired), MOST_REMOVED))

    def _has_events_since(self, partition: str, after: str) -> bool:
        query = "PartitionKey eq @key and RowKey le @after"
        newer = self._storage.keys(EVENTS, query, key=partition, page=1, after=after)
        return next(newer, None) is not None

    def fleet(self) -> FleetRecord:
        """Return the fleet's record; a new one when none was saved."""
        entity = self._storage.get(FLEETS, "fleet", self._fleet)
        if entity is None:
            return FleetRecord()
        return replace(_fleet(unpacked(entity)), etag=etag_of(entity))

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record over its version, and return it as saved; raise Stale."""
        body = packed(_FLEET.dump_json(record, exclude={"etag"}).decode())
        entity = {"PartitionKey": "fleet", "RowKey": self._fleet, "commit": record.commit, **body}
        return replace(record, etag=self._storage.write(FLEETS, entity, record.etag))

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are saved; a few are read in parallel."""
        with ThreadPoolExecutor(READERS) as pool:
            entities = pool.map(lambda sha: self._storage.get(BLOBS, self._fleet, sha), ids)
            pairs = zip(ids, entities, strict=True)
            return {sha: entity["content"] for sha, entity in pairs if entity is not None}

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Save blobs, many at a time."""
        for batch in _batches(blobs):
            entities = [
                {"PartitionKey": self._fleet, "RowKey": sha, "content": content}
                for sha, content in batch.items()
            ]
            self._storage.upsert_together(BLOBS, entities)

    def fingerprints(self) -> Mapping[str, str]:
        """Return the clusters' fingerprints."""
        entity = self._storage.get(FLEETS, "marks", self._fleet)
        text = self._storage.document(FLEETS, entity) if entity is not None else None
        return _FINGERPRINTS.validate_json(text) if text is not None else {}

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Write the clusters' fingerprints over the saved ones."""
        text = _FINGERPRINTS.dump_json(dict(fingerprints)).decode()
        self._storage.upsert_document(FLEETS, {"PartitionKey": "marks", "RowKey": self._fleet}, text)

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every saved blob except these."""
        keys = self._storage.keys(BLOBS, "PartitionKey eq @key")
        return self._storage.remove(BLOBS, (key for key in keys if key["RowKey"] not in wanted))

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters."""
        keys = self._storage.keys(DEAD_LETTERS, "PartitionKey eq @key and at lt @before", before=before)
        return self._storage.remove(DEAD_LETTERS, keys)

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, or None."""
        entity = self._storage.get(BUCKETS, self._fleet, key)
        return Bucket(datetime.fromisoformat(entity["fullAt"]), etag_of(entity)) if entity else None

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over its version; raise Stale."""
        entity = {"PartitionKey": self._fleet, "RowKey": key, "fullAt": bucket.full_at.isoformat()}
        self._storage.write(BUCKETS, entity, bucket.etag)

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Save a dead letter, over an equal one."""
        body = packed(_DEAD_LETTER.dump_json(letter).decode())
        self._storage.upsert(DEAD_LETTERS, {**self._key_of(letter), "at": letter.at, **body})

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that does not exist is success."""
        self._storage.remove(DEAD_LETTERS, [self._key_of(letter)])

    def _key_of(self, letter: DeadLetter) -> dict[str, str]:
        key = f"{newest_first(letter.at)}-{letter.queue}-{safe_key(letter.id)}"
        return {"PartitionKey": self._fleet, "RowKey": key}

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, newest first."""
        pages = self._storage.query(DEAD_LETTERS, "PartitionKey eq @key", page=limit)
        return [_DEAD_LETTER.validate_json(unpacked(entity)) for entity in itertools.islice(pages, limit)]

    def count_dead_letters(self) -> int:
        """Return how many dead letters are saved."""
        return sum(1 for _ in self._storage.keys(DEAD_LETTERS, "PartitionKey eq @key"))


def _event_key(event: Event) -> str:
    moment = f"{newest_first(event.at)}-{99_999_999 - event.sequence:08d}"
    return f"{moment}-{event.uid}-{event.reason}"


def _fleet(text: str) -> FleetRecord:
    return _FLEET.validate_python(stored_forms.upgrade_fleet(json.loads(text)))


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
