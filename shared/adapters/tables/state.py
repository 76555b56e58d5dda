"""State in Azure Table Storage: small tables, every record written by compare-and-swap on its ETag."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter, itemgetter

from azure.data.tables import TableServiceClient

from shared.adapters.tables.acts import ACTS, ActsTable, act_of
from shared.adapters.tables.clusters import CLUSTERS, FLEETS, ClustersTable, cluster_of
from shared.adapters.tables.deliveries import DELIVERIES, DeliveriesTable
from shared.adapters.tables.entities import newest_first, packed, safe_key
from shared.adapters.tables.notices import NoticesTable, notice_of
from shared.adapters.tables.plans import PLANS, PlansTable
from shared.adapters.tables.promotions import PromotionsTable, promotion_of
from shared.adapters.tables.proposals import ProposalsTable, proposal_of
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.rollouts import RolloutsTable, rollout_of
from shared.adapters.tables.storage import MOST_REMOVED, READERS, TOGETHER, Storage, etag_of, written_at
from shared.adapters.tables.sweeps import SweepsTable
from shared.adapters.tables.timers import TimersTable, timer_of
from shared.azure.rate_limits import Bucket
from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import CLUSTER, Listed, StoredText, UnreadableRecord, WrongText
from shared.cluster.history import Event
from shared.ports import DeadLetter, FleetRecord
from shared.ports.state.clusters import readable

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
_EVENT = StoredText[Event](Event)
_DEAD_LETTER = StoredText[DeadLetter](DeadLetter)
_FLEET = StoredText[FleetRecord](FleetRecord)
_FINGERPRINTS = StoredText[dict[str, str]](dict[str, str])
_OF_FLEET: Mapping[str, Callable[[Entity], object]] = {
    "promotion": promotion_of,
    "proposal": proposal_of,
    "rollout": rollout_of,
    "notice": notice_of,
    "timer": timer_of,
}
"""What has a partition of its own in the table of fleets, named for its kind."""
_SKEW = timedelta(seconds=10)
"""How much earlier a record may have been written that shows later: each partition has a clock of its own."""
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
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
        self._reader = Reader()
        self._looked: dict[tuple[str, str], datetime] = {}

    def unreadable(self) -> Sequence[UnreadableRecord]:
        """Return the records that cannot be read now; of those read before, only what changed is read."""
        fleet = self._fleet
        for kind, table, partition, read in (
            (CLUSTER, CLUSTERS, fleet, cluster_of),
            ("act", ACTS, fleet, act_of),
            ("dead letter", DEAD_LETTERS, fleet, _dead_letter),
            *((kind, FLEETS, f"{kind}s|{fleet}", read) for kind, read in _OF_FLEET.items()),
        ):
            self._look_at_changed(kind, table, partition, read)
        self._look_at_changed("plan", PLANS, fleet, self.plan_of, " and open eq true")
        for read_one in (self.fleet, self.sweep, self.announced, self.fingerprints):
            with suppress(Unreadable):
                read_one()
        return self._reader.still_unreadable(self._storage.get)

    def _look_at_changed(
        self, kind: str, table: str, partition: str, read: Callable[[Entity], object], also: str = ""
    ) -> None:
        since = self._looked.get((table, partition), _LONG_AGO)
        query = f"PartitionKey eq @key and Timestamp ge @since{also}"
        for entity in self._storage.query(table, query, key=partition, since=since - _SKEW):
            self._reader.look(kind, table, entity, read)
            since = max(since, written_at(entity))
        self._looked[table, partition] = since

    def append(self, events: Sequence[Event]) -> None:
        """Save events, those of one cluster together."""
        for cluster, own in itertools.groupby(events, key=attrgetter("cluster")):
            keyed = {_event_key(event): event for event in own}
            entities = (
                {
                    "PartitionKey": f"{self._fleet}|{cluster}",
                    "RowKey": key,
                    **packed(_EVENT.write(event)),
                }
                for key, event in keyed.items()
            )
            while batch := list(itertools.islice(entities, TOGETHER)):
                self._storage.upsert_together(EVENTS, batch)

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Listed[Event]:
        """Return a cluster's newest events (before a millisecond), newest first.

        The record is read first: an event that is moved meanwhile is found twice, and shown once. So is one
        that a crash had somebody save again, at another time. Where the record cannot be read, those that it
        alone has are missing.
        """
        after = f"{newest_first(before)}~" if before else ""  # sorts behind the keys of that millisecond
        unreadable = list[UnreadableRecord]()
        record = readable(cluster, self)
        recent = {_event_key(event): event for event in record.recent_events} if record else {}
        pages = self._storage.query(
            EVENTS,
            "PartitionKey eq @key and RowKey gt @after",
            key=f"{self._fleet}|{cluster}",
            page=limit,
            after=after,
        )
        stored = self._reader.values("event", EVENTS, pages, _keyed_event, unreadable)
        found: dict[tuple[str, int, str], Event] = {}
        for _, event in heapq.merge(
            sorted(each for each in recent.items() if each[0] > after), stored, key=itemgetter(0)
        ):
            found.setdefault((event.uid, event.sequence, event.reason), event)
            if len(found) >= limit:
                break
        return Listed(found.values(), unreadable)

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
        """Return the fleet's record; a new one when none was saved; raise Unreadable."""
        entity = self._storage.get(FLEETS, "fleet", self._fleet)
        if entity is None:
            return FleetRecord()
        return replace(self._reader.value("fleet", FLEETS, entity, _fleet), etag=etag_of(entity))

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record over its version, and return it as saved; raise Stale."""
        body = packed(_FLEET.write(record, "etag"))
        entity = {"PartitionKey": "fleet", "RowKey": self._fleet, "commit": record.commit, **body}
        return replace(record, etag=self._storage.write(FLEETS, entity, record.etag))

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are saved; a few are read in parallel."""
        with ThreadPoolExecutor(READERS) as pool:
            entities = pool.map(lambda sha: self._storage.get(BLOBS, self._fleet, sha), ids)
            pairs = zip(ids, entities, strict=True)
            contents = {sha: entity.get("content") for sha, entity in pairs if entity is not None}
            return {sha: content for sha, content in contents.items() if isinstance(content, bytes)}

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Save blobs, many at a time."""
        for batch in _batches(blobs):
            entities = [
                {"PartitionKey": self._fleet, "RowKey": sha, "content": content}
                for sha, content in batch.items()
            ]
            self._storage.upsert_together(BLOBS, entities)

    def fingerprints(self) -> Mapping[str, str]:
        """Return the clusters' fingerprints; none where they cannot be read."""
        entity = self._storage.get(FLEETS, "marks", self._fleet)
        if entity is None:
            return {}
        return self._reader.or_else({}, "fingerprints", FLEETS, entity, self._fingerprints)

    def _fingerprints(self, entity: Entity) -> Mapping[str, str]:
        text = self._storage.document(FLEETS, entity)
        return _FINGERPRINTS.read(text) if text is not None else {}

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Write the clusters' fingerprints over the saved ones."""
        text = _FINGERPRINTS.write(dict(fingerprints))
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
        """Return one of Azure's token buckets, or None; one that cannot be read is full."""
        entity = self._storage.get(BUCKETS, self._fleet, key)
        if entity is None:
            return None
        return Bucket(self._reader.or_else(_LONG_AGO, "bucket", BUCKETS, entity, _full_at), etag_of(entity))

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over its version; raise Stale."""
        entity = {"PartitionKey": self._fleet, "RowKey": key, "fullAt": bucket.full_at.isoformat()}
        self._storage.write(BUCKETS, entity, bucket.etag)

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Save a dead letter, over an equal one."""
        body = packed(_DEAD_LETTER.write(letter))
        self._storage.upsert(DEAD_LETTERS, {**self._key_of(letter), "at": letter.at, **body})

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that does not exist is success."""
        self._storage.remove(DEAD_LETTERS, [self._key_of(letter)])

    def _key_of(self, letter: DeadLetter) -> dict[str, str]:
        key = f"{newest_first(letter.at)}-{letter.queue}-{safe_key(letter.id)}"
        return {"PartitionKey": self._fleet, "RowKey": key}

    def dead_letters(self, limit: int) -> Listed[DeadLetter]:
        """Return the newest dead letters, newest first."""
        pages = self._storage.query(DEAD_LETTERS, "PartitionKey eq @key", page=limit)
        return self._reader.listed("dead letter", DEAD_LETTERS, pages, _dead_letter, limit)

    def count_dead_letters(self) -> int:
        """Return how many dead letters are saved."""
        return sum(1 for _ in self._storage.keys(DEAD_LETTERS, "PartitionKey eq @key"))


def _event_key(event: Event) -> str:
    moment = f"{newest_first(event.at)}-{99_999_999 - event.sequence:08d}"
    return f"{moment}-{event.uid}-{event.reason}"


def _keyed_event(entity: Entity) -> tuple[str, Event]:
    return str(entity["RowKey"]), _EVENT.read(text_of(entity))


def _dead_letter(entity: Entity) -> DeadLetter:
    return _DEAD_LETTER.read(text_of(entity))


def _full_at(entity: Entity) -> datetime:
    moment = datetime.fromisoformat(entity["fullAt"])
    if moment.tzinfo is None:
        raise WrongText("fullAt is a time without a zone")
    return moment


def _fleet(entity: Entity) -> FleetRecord:
    return _FLEET.read(text_of(entity))


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
