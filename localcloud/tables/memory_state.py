"""The State port in memory: what Table Storage would keep, with ETags, for tests and the simulation."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from shared.jobs.errors import Stale
from shared.jobs.events import Event
from shared.jobs.rate_limits import Bucket
from shared.jobs.record import ClusterRecord, from_json, to_json, with_etag
from shared.ports import DeadLetter, FleetRecord, PlanRecord

K = TypeVar("K")
V = TypeVar("V")


class MemoryState:
    """One fleet's state; rows go through their stored form when saved, so that nothing else is remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions = itertools.count(1)
        self._clusters: dict[str, ClusterRecord] = {}
        self._leaving: set[tuple[str, str]] = set()
        self._events: dict[tuple[str, str, int, str], Event] = {}
        self._fleet = FleetRecord()
        self._plans: dict[str, PlanRecord] = {}
        self._deliveries: dict[str, datetime] = {}
        self._blobs: dict[str, bytes] = {}
        self._marks: dict[str, str] = {}
        self._buckets: dict[str, Bucket] = {}
        self._letters: dict[tuple[datetime, str, str], DeadLetter] = {}

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's row, or None."""
        with self._lock:
            return self._clusters.get(name)

    def clusters(self) -> Sequence[ClusterRecord]:
        """Return the rows of the whole fleet, by name."""
        with self._lock:
            return [record for _, record in sorted(self._clusters.items())]

    def clusters_page(self, after: str, limit: int) -> Sequence[ClusterRecord]:
        """Return at most ``limit`` rows, by name, of those after a name."""
        return [record for record in self.clusters() if record.name > after][:limit]

    def active_clusters(self) -> Sequence[ClusterRecord]:
        """Return the rows whose job is active."""
        return [record for record in self.clusters() if record.job.active]

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the row over its version, or as a new one; raise Stale."""
        with self._lock:
            self._check(record)
            etag = f"v{next(self._versions)}"
            self._clusters[record.name] = from_json(to_json(record), etag)
        return with_etag(record, etag)

    def forget(self, record: ClusterRecord) -> None:
        """Remove the row if it is still this version; raise Stale."""
        with self._lock:
            if record.name in self._clusters:
                self._check(record)
                del self._clusters[record.name]

    def _check(self, record: ClusterRecord) -> None:
        kept = self._clusters.get(record.name)
        if (kept.etag if kept else "") != record.etag:
            raise Stale("the row was changed by somebody else")

    def add_group_delete_intent(self, group: str, cluster: str) -> None:
        """Note that a cluster is about to delete a resource group."""
        with self._lock:
            self._leaving.add((group, cluster))

    def group_delete_intents(self, group: str) -> Sequence[str]:
        """Return the clusters that were noted for a resource group."""
        with self._lock:
            return sorted(cluster for noted, cluster in self._leaving if noted == group)

    def remove_group_delete_intent(self, group: str, cluster: str) -> None:
        """Take a note away; one that is gone is success."""
        with self._lock:
            self._leaving.discard((group, cluster))

    def append(self, events: Sequence[Event]) -> None:
        """Keep events."""
        with self._lock:
            for event in events:
                self._events[(event.cluster, event.uid, event.sequence, event.reason)] = event

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Sequence[Event]:
        """Return a cluster's newest events (before a millisecond), newest first."""
        with self._lock:
            found = [event for event in self._events.values() if event.cluster == cluster]
        if before is not None:
            found = [event for event in found if _millisecond(event.at) < _millisecond(before)]
        return sorted(found, key=lambda event: (event.at, event.sequence), reverse=True)[:limit]

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove a cluster's events but for the newest."""
        newest = set(self.events(cluster, keep))
        with self._lock:
            return _remove(self._events, lambda _, e: e.cluster == cluster and e not in newest)

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove older events of clusters that are not among the living."""
        with self._lock:
            return _remove(self._events, lambda _, e: e.cluster not in living and e.at < at)

    def fleet(self) -> FleetRecord:
        """Return what was planned last."""
        with self._lock:
            return self._fleet

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's row over its version, and return it as saved; raise Stale."""
        with self._lock:
            if record.etag != self._fleet.etag:
                raise Stale("the row was changed by somebody else")
            self._fleet = replace(record, etag=f"v{next(self._versions)}")
            return self._fleet

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        with self._lock:
            return self._plans.get(commit)

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over what is kept for its commit."""
        with self._lock:
            self._plans[plan_record.plan.commit] = plan_record

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans made since a time, newest first."""
        with self._lock:
            found = [plan_record for plan_record in self._plans.values() if plan_record.at >= at]
        return sorted(found, key=lambda plan_record: plan_record.at, reverse=True)

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        with self._lock:
            found = [plan_record for plan_record in self._plans.values() if plan_record.open]
        return sorted(found, key=lambda plan_record: plan_record.at, reverse=True)

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are kept, by their ids."""
        with self._lock:
            return {sha: self._blobs[sha] for sha in ids if sha in self._blobs}

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs."""
        with self._lock:
            self._blobs |= blobs

    def marks(self) -> Mapping[str, str]:
        """Return the clusters' marks."""
        with self._lock:
            return dict(self._marks)

    def save_fingerprints(self, marks: Mapping[str, str]) -> None:
        """Write the clusters' marks over those that are kept."""
        with self._lock:
            self._marks = dict(marks)

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every kept blob but these."""
        with self._lock:
            return _remove(self._blobs, lambda sha, _: sha not in wanted)

    def prune_plans(self, keep: int) -> int:
        """Remove plans but for the newest and every open one."""
        with self._lock:
            newest = sorted(self._plans, key=lambda commit: self._plans[commit].at, reverse=True)[:keep]
            return _remove(self._plans, lambda commit, plan: commit not in newest and not plan.open)

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters."""
        with self._lock:
            return _remove(self._letters, lambda _, letter: letter.at < before)

    def prune_deliveries(self, before: datetime) -> int:
        """Forget deliveries that were remembered before a time."""
        with self._lock:
            return _remove(self._deliveries, lambda _, at: at < before)

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, or None."""
        with self._lock:
            return self._buckets.get(key)

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over its version; raise Stale."""
        with self._lock:
            present = self._buckets.get(key)
            if bucket.etag != (present.etag if present else ""):
                raise Stale("the bucket was changed by somebody else")
            self._buckets[key] = replace(bucket, etag=f"v{next(self._versions)}")

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Keep a dead letter; twice is once."""
        with self._lock:
            self._letters[(letter.at, letter.queue, letter.id)] = letter

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that is gone is success."""
        with self._lock:
            self._letters.pop((letter.at, letter.queue, letter.id), None)

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, newest first."""
        with self._lock:
            return [self._letters[key] for key in sorted(self._letters, reverse=True)[:limit]]

    def count_dead_letters(self) -> int:
        """Return how many dead letters are kept."""
        with self._lock:
            return len(self._letters)

    def delivery_seen(self, delivery: str) -> bool:
        """Tell whether a webhook delivery was queued before."""
        with self._lock:
            return delivery in self._deliveries

    def remember_delivery(self, delivery: str, at: datetime) -> None:
        """Remember a webhook delivery."""
        with self._lock:
            self._deliveries[delivery] = at


def _millisecond(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _remove(kept: dict[K, V], doomed: Callable[[K, V], bool]) -> int:
    """Remove what is doomed; return how many."""
    gone = [key for key, value in kept.items() if doomed(key, value)]
    for key in gone:
        del kept[key]
    return len(gone)
