"""What Roadstead remembers: one small protocol per kind of thing, and State, which has them all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from shared.fleet.planning.plan import Plan
from shared.jobs.events import Event
from shared.jobs.messages import Approval
from shared.jobs.rate_limits import Bucket
from shared.jobs.record import ClusterRecord


@dataclass(frozen=True)
class PlanRecord:
    """A plan as kept, what was last said about it, and the approval of its held deletes.

    ``open`` while its commit status may still change, ``settled`` when only a commit or a replay can
    change it; ``not_before`` is when GitHub may be asked again to show it.
    """

    plan: Plan
    at: datetime
    open: bool = True
    settled: bool = False
    reported: str = ""
    not_before: datetime | None = None
    approval: Approval | None = None


@dataclass(frozen=True)
class FleetRecord:
    """What was planned last, and why the newest commit could not be ("" when it could).

    ``waiting`` is why a new head is not planned yet, "" when none waits. ``planning`` is the commit whose
    jobs are being handed over, "" when none is; ``looked`` is when the head was read for the last of both, by
    the repository's clock. ``awaiting`` are the clusters to be created once their deletion has finished.
    ``etag`` is the version that was read, "" when there is none yet.
    """

    commit: str = ""
    at: datetime | None = None
    problem: str = ""
    waiting: str = ""
    planning: str = ""
    looked: datetime | None = None
    awaiting: tuple[str, ...] = ()
    etag: str = field(default="", compare=False)


@dataclass(frozen=True)
class DeadLetter:
    """A message that a queue gave up and that could not be understood; ``body`` is its beginning as text.

    ``size`` is the whole body's in bytes, ``at`` when it came to its queue.
    """

    queue: str
    id: str
    at: datetime
    reason: str
    description: str
    body: str
    size: int


class Clusters(Protocol):
    """The rows of the clusters."""

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's row, or None."""
        ...

    def clusters(self) -> Sequence[ClusterRecord]:
        """Return the rows of the whole fleet, by name."""
        ...

    def clusters_page(self, after: str, limit: int) -> Sequence[ClusterRecord]:
        """Return at most ``limit`` rows, by name, of those after a name ("": from the first)."""
        ...

    def active_clusters(self) -> Sequence[ClusterRecord]:
        """Return the rows whose job is active: as many as there is work, not as there are clusters."""
        ...

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the row over the version in ``row.etag`` ("": only if there is none); raise Stale.

        Returns the row with its new etag.
        """
        ...

    def forget(self, record: ClusterRecord) -> None:
        """Remove the row if it is still this version; raise Stale. One that is gone is success."""
        ...

    def add_group_delete_intent(self, group: str, cluster: str) -> None:
        """Note that a life of a cluster is about to delete a resource group; twice is once."""
        ...

    def group_delete_intents(self, group: str) -> Sequence[str]:
        """Return what was noted for a resource group."""
        ...

    def remove_group_delete_intent(self, group: str, cluster: str) -> None:
        """Take a note away; one that is gone is success."""
        ...


class Events(Protocol):
    """What happened to the clusters."""

    def append(self, events: Sequence[Event]) -> None:
        """Keep events; an event that was kept before is kept once."""
        ...

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Sequence[Event]:
        """Return a cluster's newest events (before a millisecond), newest first; also after it is gone."""
        ...

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove a cluster's events but for the newest; return how many."""
        ...

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove older events of clusters that are not among the living; return how many."""
        ...


class Plans(Protocol):
    """What was planned, and what was last said about it."""

    def fleet(self) -> FleetRecord:
        """Return what was planned last."""
        ...

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's row over the version that was read, and return it as saved; raise Stale."""
        ...

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        ...

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over what is kept for its commit. Only the planner writes, and it is one."""
        ...

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans made since a time, newest first."""
        ...

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        ...

    def prune_plans(self, keep: int) -> int:
        """Remove plans but for the newest and every open one; return how many."""
        ...


class Manifests(Protocol):
    """What was read of the repository, so that it is not read again."""

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are kept, by their ids; one read each, so ask for few."""
        ...

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs of at most 60,000 bytes by their ids; twice is once."""
        ...

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every kept blob but these, by their ids; return how many."""
        ...

    def marks(self) -> Mapping[str, str]:
        """Return what ``save_fingerprints`` wrote last, by cluster."""
        ...

    def save_fingerprints(self, marks: Mapping[str, str]) -> None:
        """Write the marks of the whole fleet over those that are kept; losing them costs only time."""
        ...


class Buckets(Protocol):
    """Azure's token buckets, shared by all workers."""

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, None when nothing was taken from it yet."""
        ...

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over the version in its etag ("": only if there is none); raise Stale."""
        ...


class Letters(Protocol):
    """What was delivered to us, and what the queues gave up."""

    def delivery_seen(self, delivery: str) -> bool:
        """Tell whether a webhook delivery was queued before."""
        ...

    def remember_delivery(self, delivery: str, at: datetime) -> None:
        """Remember a webhook delivery; twice is once."""
        ...

    def prune_deliveries(self, before: datetime) -> int:
        """Forget deliveries that were remembered before a time; return how many."""
        ...

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Keep a dead letter; twice is once."""
        ...

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, newest first."""
        ...

    def count_dead_letters(self) -> int:
        """Return how many dead letters are kept."""
        ...

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that is gone is success."""
        ...

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters; return how many."""
        ...


class State(Clusters, Events, Plans, Manifests, Buckets, Letters, Protocol):
    """What Roadstead remembers of one fleet. No secret is ever kept here."""
