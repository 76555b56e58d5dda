"""The State port in memory: what Table Storage would hold, with ETags, for tests and the simulation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, TypeVar

from localcloud.tables.memory_clusters import MemoryClusters, Version
from localcloud.tables.memory_notices import MemoryNotices
from localcloud.tables.memory_promotions import MemoryPromotions
from localcloud.tables.memory_proposals import MemoryProposals
from localcloud.tables.memory_rollouts import MemoryRollouts
from shared.azure.rate_limits import Bucket
from shared.cluster.failures.errors import Stale
from shared.cluster.forms import Listed, WrongText
from shared.cluster.history import Act, Event
from shared.frozen import replace
from shared.ports import DeadLetter, FleetRecord, PlanRecord
from shared.ports.state import SweepRecord, TimerRun

_NOT_STORED = ("_lock", "_versions", "_summaries")
K = TypeVar("K")
V = TypeVar("V")


class MemoryState(MemoryClusters, MemoryNotices, MemoryProposals, MemoryPromotions, MemoryRollouts):
    """One fleet's state; records pass through their stored form when saved, so that nothing else survives."""

    def __init__(self) -> None:
        MemoryClusters.__init__(self)
        MemoryNotices.__init__(self)
        MemoryProposals.__init__(self)
        MemoryPromotions.__init__(self)
        MemoryRollouts.__init__(self)
        self._events: dict[tuple[str, str, int, str], Event] = {}
        self._fleet = FleetRecord()
        self._sweep = SweepRecord()
        self._timers: dict[str, TimerRun] = {}
        self._plans: dict[str, PlanRecord] = {}
        self._deliveries: dict[str, datetime] = {}
        self._announced: dict[str, datetime] = {}
        self._blobs: dict[str, bytes] = {}
        self._fingerprints: dict[str, str] = {}
        self._buckets: dict[str, Bucket] = {}
        self._acts: dict[tuple[datetime, str], Act] = {}
        self._settings_seen: dict[str, str] = {}
        self._dead_letters: dict[tuple[datetime, str, str], DeadLetter] = {}
        self._stored = tuple(name for name in vars(self) if name not in _NOT_STORED)

    def backup(self) -> Mapping[str, Any]:
        """Return what the tables hold now."""
        with self._lock:
            return {name: copy(vars(self)[name]) for name in self._stored}

    def restore(self, backup: Mapping[str, Any]) -> None:
        """Put a backup in place of what the tables hold; every record gets a new version."""
        with self._lock:
            vars(self).update({name: copy(value) for name, value in backup.items()})
            for name, saved in self._clusters.items():
                self._clusters[name] = Version(saved.text, f"v{next(self._versions)}")
            self._fleet = replace(self._fleet, etag=self._fleet.etag and f"v{next(self._versions)}")
            self._sweep = replace(self._sweep, etag=self._sweep.etag and f"v{next(self._versions)}")
            for name, proposal in self._proposals.items():
                self._proposals[name] = replace(proposal, etag=f"v{next(self._versions)}")
            for target, promotion in self._promotions.items():
                self._promotions[target] = replace(promotion, etag=f"v{next(self._versions)}")
            for commit, rollout in self._rollouts.items():
                self._rollouts[commit] = replace(rollout, etag=f"v{next(self._versions)}")
            known = self._remembered
            self._remembered = replace(known, etag=known.etag and f"v{next(self._versions)}")

    def lose(self) -> None:
        """Lose every table."""
        self.restore(MemoryState().backup())

    def append(self, events: Sequence[Event]) -> None:
        """Save events."""
        with self._lock:
            for event in events:
                self._events[_event_key(event)] = event

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Listed[Event]:
        """Return a cluster's newest events (before a millisecond), newest first."""
        with self._lock:
            saved = self._clusters.get(cluster)
            recent = {_event_key(event): event for event in _recent(saved)}
            stored = {key: event for key, event in self._events.items() if event.cluster == cluster}
        found = list((stored | recent).values())
        if before is not None:
            found = [event for event in found if _millisecond(event.at) < _millisecond(before)]
        return Listed(sorted(found, key=lambda event: (event.at, event.sequence), reverse=True)[:limit])

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove all but a cluster's newest events."""
        newest = set(self.events(cluster, keep))
        with self._lock:
            return _remove(self._events, lambda _, e: e.cluster == cluster and e not in newest)

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove the events of clusters that are not among the living and have none since a time."""
        with self._lock:
            since = {event.cluster for event in self._events.values() if event.at >= at}
            return _remove(self._events, lambda _, e: e.cluster not in living and e.cluster not in since)

    def fleet(self) -> FleetRecord:
        """Return what was planned last."""
        with self._lock:
            return self._fleet

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record over its version, and return it as saved; raise Stale."""
        with self._lock:
            if record.etag != self._fleet.etag:
                raise Stale("another writer changed the record")
            self._fleet = replace(record, etag=f"v{next(self._versions)}")
            return self._fleet

    def sweep(self) -> SweepRecord:
        """Return the record of the sweeps."""
        with self._lock:
            return self._sweep

    def save_sweep(self, record: SweepRecord) -> None:
        """Write the record over its version; raise Stale."""
        with self._lock:
            if record.etag != self._sweep.etag:
                raise Stale("another writer changed the record")
            self._sweep = replace(record, etag=f"v{next(self._versions)}")

    def timer_runs(self) -> Mapping[str, TimerRun]:
        """Return what is stored of each timer."""
        with self._lock:
            return dict(self._timers)

    def save_timer_run(self, timer: str, at: datetime) -> None:
        """Write that a timer has run."""
        with self._lock:
            self._timers[timer] = TimerRun(at)

    def expect_timers(self, timers: Collection[str], at: datetime) -> None:
        """Write since when timers are expected of which nothing is stored."""
        with self._lock:
            self._timers = {name: TimerRun(at, ran=False) for name in timers} | self._timers

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        with self._lock:
            return self._plans.get(commit)

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit."""
        with self._lock:
            self._plans[plan_record.plan.commit] = replace(plan_record, etag=f"v{next(self._versions)}")

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over its version; raise Stale."""
        with self._lock:
            saved = self._plans.get(plan_record.plan.commit)
            if saved is None or saved.etag != plan_record.etag:
                raise Stale("another writer changed the record")
            self._plans[saved.plan.commit] = replace(plan_record, etag=f"v{next(self._versions)}")

    def save_report(self, plan_record: PlanRecord) -> PlanRecord:
        """Write what was reported of a plan over its version; raise Stale."""
        with self._lock:
            saved = self._plans.get(plan_record.plan.commit)
            if saved is None or saved.etag != plan_record.etag:
                raise Stale("another writer changed the record")
            after = replace(plan_record, plan=saved.plan, at=saved.at, approval=saved.approval)
            after = replace(after, review=saved.review)
            after = replace(after, etag=f"v{next(self._versions)}")
            self._plans[plan_record.plan.commit] = after
            return after

    def next_report_at(self) -> datetime | None:
        """Return when the newest open plan may be reported again."""
        newest = next(iter(self.open_plans()), None)
        return newest.not_before if newest else None

    def plans_since(self, at: datetime) -> Listed[PlanRecord]:
        """Return the plans created since a time, newest first."""
        with self._lock:
            found = [plan_record for plan_record in self._plans.values() if plan_record.at >= at]
        return Listed(sorted(found, key=lambda plan_record: plan_record.at, reverse=True))

    def open_plans(self) -> Listed[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        with self._lock:
            found = [plan_record for plan_record in self._plans.values() if plan_record.open]
        return Listed(sorted(found, key=lambda plan_record: plan_record.at, reverse=True))

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are saved, by their ids."""
        with self._lock:
            return {sha: self._blobs[sha] for sha in ids if sha in self._blobs}

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Save blobs."""
        with self._lock:
            self._blobs |= blobs

    def fingerprints(self) -> Mapping[str, str]:
        """Return the clusters' fingerprints."""
        with self._lock:
            return dict(self._fingerprints)

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Write the clusters' fingerprints over the saved ones."""
        with self._lock:
            self._fingerprints = dict(fingerprints)

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every saved blob but these."""
        with self._lock:
            return _remove(self._blobs, lambda sha, _: sha not in wanted)

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones."""
        with self._lock:
            newest = sorted(self._plans, key=lambda commit: self._plans[commit].at, reverse=True)[:keep]
            return _remove(self._plans, lambda commit, plan: commit not in newest and not plan.open)

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters."""
        with self._lock:
            return _remove(self._dead_letters, lambda _, letter: letter.at < before)

    def prune_deliveries(self, before: datetime) -> int:
        """Remove deliveries that were remembered before a time."""
        with self._lock:
            pushes = _remove(self._announced, lambda _, at: at < before)
            return pushes + _remove(self._deliveries, lambda _, at: at < before)

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, or None."""
        with self._lock:
            return self._buckets.get(key)

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over its version; raise Stale."""
        with self._lock:
            present = self._buckets.get(key)
            if bucket.etag != (present.etag if present else ""):
                raise Stale("another writer changed the bucket")
            self._buckets[key] = replace(bucket, etag=f"v{next(self._versions)}")

    def save_act(self, act: Act) -> None:
        """Save an act, over an equal one."""
        with self._lock:
            self._acts[(act.at, act.id)] = act

    def acts(self, limit: int, before: datetime | None = None) -> Listed[Act]:
        """Return the newest acts (before a millisecond), newest first."""
        with self._lock:
            newest = sorted(self._acts.items(), reverse=True)
        acts = [act for _, act in newest]
        earlier = [a for a in acts if before is None or _millisecond(a.at) < _millisecond(before)]
        return Listed(earlier[:limit])

    def prune_acts(self, before: datetime) -> int:
        """Remove older acts."""
        with self._lock:
            return _remove(self._acts, lambda _, act: act.at < before)

    def settings_seen(self) -> Mapping[str, str]:
        """Return the settings that were seen last."""
        with self._lock:
            return dict(self._settings_seen)

    def save_settings_seen(self, settings: Mapping[str, str]) -> None:
        """Write the settings over those that were seen before."""
        with self._lock:
            self._settings_seen = dict(settings)

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Save a dead letter; twice is once."""
        with self._lock:
            self._dead_letters[(letter.at, letter.queue, letter.id)] = letter

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that does not exist is success."""
        with self._lock:
            self._dead_letters.pop((letter.at, letter.queue, letter.id), None)

    def dead_letters(self, limit: int) -> Listed[DeadLetter]:
        """Return the newest dead letters, newest first."""
        with self._lock:
            keys = sorted(self._dead_letters, reverse=True)[:limit]
            return Listed(self._dead_letters[key] for key in keys)

    def count_dead_letters(self) -> int:
        """Return how many dead letters are saved."""
        with self._lock:
            return len(self._dead_letters)

    def delivery_seen(self, digest: str) -> bool:
        """Return whether a webhook delivery was queued before."""
        with self._lock:
            return digest in self._deliveries

    def remember_delivery(
        self, digest: str, at: datetime, *, head: str = "", pushed: datetime | None = None
    ) -> None:
        """Remember a webhook delivery, and the head that it announced."""
        with self._lock:
            self._deliveries[digest] = at
            if head:
                self._announced[head] = pushed or at

    def announced_at(self, head: str) -> datetime | None:
        """Return when a head was pushed according to the last delivery that announced it."""
        with self._lock:
            return self._announced.get(head)


def _recent(saved: Version | None) -> Sequence[Event]:
    """Return the events that a record alone has; none where it cannot be read."""
    try:
        return saved.record.recent_events if saved else ()
    except WrongText:
        return ()


def _event_key(event: Event) -> tuple[str, str, int, str]:
    return event.cluster, event.uid, event.sequence, event.reason


def _millisecond(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _remove(stored: dict[K, V], outdated: Callable[[K, V], bool]) -> int:
    """Remove what is outdated; return how many."""
    keys = [key for key, value in stored.items() if outdated(key, value)]
    for key in keys:
        del stored[key]
    return len(keys)
