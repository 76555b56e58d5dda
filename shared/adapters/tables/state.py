"""State in Azure Table Storage: small tables, every record written by compare-and-swap on its ETag."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from azure.data.tables import TableServiceClient
from pydantic import TypeAdapter

from shared.adapters.tables.acts import ACTS, ActsTable
from shared.adapters.tables.clusters import CLUSTERS, FLEETS, ClustersTable
from shared.adapters.tables.entities import newest_first, packed, safe_key, unpacked
from shared.adapters.tables.storage import READERS, TOGETHER, Entity, Storage, etag_of
from shared.adapters.tables.sweeps import SweepsTable
from shared.jobs import stored_forms
from shared.jobs.events import Event
from shared.jobs.rate_limits import Bucket
from shared.ports import DeadLetter, FleetRecord, PlanRecord

EVENTS, PLANS, DELIVERIES, BLOBS, DEAD_LETTERS, BUCKETS, *_ = TABLES = (
    "roadsteadevents",
    "roadsteadplans",
    "roadsteaddeliveries",
    "roadsteadblobs",
    "roadsteaddeadletters",
    "roadsteadbuckets",
    CLUSTERS,
    FLEETS,
    ACTS,
)
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)
_PLAN: TypeAdapter[PlanRecord] = TypeAdapter(PlanRecord)
_DEAD_LETTER: TypeAdapter[DeadLetter] = TypeAdapter(DeadLetter)
_FLEET: TypeAdapter[FleetRecord] = TypeAdapter(FleetRecord)
_FINGERPRINTS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_BATCH = 100
_BATCH_BYTES = 2 << 20
"""A transaction holds 100 entities of one partition and 4 MiB; bytes grow by a third in transit."""


class TablesState(ClustersTable, ActsTable, SweepsTable):
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
        """Return a cluster's newest events (before a millisecond), newest first."""
        events: list[Event] = []
        after = f"{newest_first(before)}~" if before else ""  # sorts behind the keys of that millisecond
        pages = self._storage.query(
            EVENTS,
            "PartitionKey eq @key and RowKey gt @after",
            key=f"{self._fleet}|{cluster}",
            page=limit,
            after=after,
        )
        for entity in pages:
            events.append(_EVENT.validate_json(unpacked(entity)))
            if len(events) >= limit:
                break
        return events

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove all but a cluster's newest events."""
        keys = self._storage.keys(EVENTS, "PartitionKey eq @key", key=f"{self._fleet}|{cluster}")
        return self._storage.remove(EVENTS, itertools.islice(keys, keep, None))

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove older events of clusters that are not in ``living``."""
        keys = self._storage.keys(
            EVENTS,
            "PartitionKey ge @key and PartitionKey lt @end and RowKey gt @after",
            key=f"{self._fleet}|",
            end=f"{self._fleet}~",
            after=f"{newest_first(at)}~",
        )
        return self._storage.remove(
            EVENTS, (key for key in keys if key["PartitionKey"].partition("|")[2] not in living)
        )

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

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        if not commit:
            return None
        entity = self._storage.get(PLANS, self._fleet, commit)
        return self._plan_of(entity) if entity is not None else None

    def _plan_of(self, entity: Entity) -> PlanRecord | None:
        text = self._storage.document(PLANS, entity)
        return _with_report(_plan(text), entity) if text is not None else None

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit."""
        self._save_plan(plan_record, "")

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over its version; raise Stale."""
        self._save_plan(plan_record, plan_record.etag)

    def _save_plan(self, plan_record: PlanRecord, etag: str) -> None:
        entity = {**self._plan_key(plan_record), "at": plan_record.at, **_report(plan_record)}
        text = _PLAN.dump_json(plan_record, exclude={"etag"}).decode()
        self._storage.upsert_document(PLANS, entity, text, etag=etag)

    def save_report(self, plan_record: PlanRecord) -> PlanRecord:
        """Write what was reported of a plan over its version; raise Stale."""
        entity = {**self._plan_key(plan_record), **_report(plan_record)}
        return replace(plan_record, etag=self._storage.merge(PLANS, entity, plan_record.etag))

    def _plan_key(self, plan_record: PlanRecord) -> dict[str, Any]:
        return {"PartitionKey": self._fleet, "RowKey": plan_record.plan.commit}

    def next_report_at(self) -> datetime | None:
        """Return when the newest open plan may be reported again."""
        query = "PartitionKey eq @key and open eq true"
        plans = self._storage.keys(PLANS, query, "at", "notBefore")
        newest = max(plans, key=lambda entity: entity["at"], default=None)
        return _moment(newest.get("notBefore")) if newest is not None else None

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans since a time, newest first."""
        return self._plans("PartitionKey eq @key and at ge @at", at=at)

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        return self._plans("PartitionKey eq @key and open eq true")

    def _plans(self, query: str, **parameters: Any) -> Sequence[PlanRecord]:
        entities = self._storage.query(PLANS, query, **parameters)
        found = (self._plan_of(entity) for entity in entities)
        plan_records = [plan_record for plan_record in found if plan_record is not None]
        return sorted(plan_records, key=lambda plan_record: plan_record.at, reverse=True)

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

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones."""
        keys = self._storage.keys(PLANS, "PartitionKey eq @key", "at", "open", "parts", "version")
        by_age = sorted(keys, key=lambda entity: entity["at"], reverse=True)
        return self._storage.remove_documents(PLANS, (old for old in by_age[keep:] if not old["open"]))

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters."""
        keys = self._storage.keys(DEAD_LETTERS, "PartitionKey eq @key and at lt @before", before=before)
        return self._storage.remove(DEAD_LETTERS, keys)

    def prune_deliveries(self, before: datetime) -> int:
        """Remove deliveries that were remembered before a time."""
        keys = self._storage.keys(DELIVERIES, "PartitionKey eq @key and at lt @before", before=before)
        return self._storage.remove(DELIVERIES, keys)

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

    def delivery_seen(self, digest: str) -> bool:
        """Return whether a webhook delivery was queued before."""
        return self._storage.get(DELIVERIES, self._fleet, safe_key(digest)) is not None

    def remember_delivery(self, digest: str, at: datetime) -> None:
        """Remember a webhook delivery."""
        self._storage.upsert(DELIVERIES, {"PartitionKey": self._fleet, "RowKey": safe_key(digest), "at": at})


def _event_key(event: Event) -> str:
    moment = f"{newest_first(event.at)}-{99_999_999 - event.sequence:08d}"
    return f"{moment}-{event.uid}-{event.reason}"


def _plan(text: str) -> PlanRecord:
    return _PLAN.validate_python(stored_forms.upgrade_plan(json.loads(text)))


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


def _report(plan_record: PlanRecord) -> dict[str, Any]:
    """Return what was reported of a plan as properties of its entity; none can be null."""
    return {
        "open": plan_record.open,
        "settled": plan_record.settled,
        "reported": plan_record.reported,
        "reports": plan_record.reports,
        "notBefore": plan_record.not_before.isoformat() if plan_record.not_before else "",
    }


def _with_report(plan_record: PlanRecord, entity: Entity) -> PlanRecord:
    """Return a plan with what was reported of it since; the version before saved that with the plan alone."""
    read = replace(plan_record, etag=etag_of(entity))
    if entity.get("notBefore") is None:
        return read
    return replace(
        read,
        open=entity["open"],
        settled=entity["settled"],
        reported=entity["reported"],
        reports=entity["reports"],
        not_before=_moment(entity["notBefore"]),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
