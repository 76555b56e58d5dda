"""What Roadstead stores: one small protocol per kind of record, and State, which combines them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from shared.fleet.planning.plan import Plan
from shared.jobs.failures.fleet_problem import FleetProblem
from shared.jobs.gaps import Gaps
from shared.jobs.messages import Approval
from shared.jobs.rate_limits import Bucket
from shared.jobs.reporting.events import Event
from shared.jobs.review_check import ReviewCheck
from shared.notices.routes import Route
from shared.ports.acts import Acts
from shared.ports.clusters import Clusters
from shared.ports.notices import Notices
from shared.ports.repository import BranchHead
from shared.ports.sweeps import Sweeps
from shared.ports.timers import Timers


@dataclass(frozen=True)
class PlanRecord:
    """A plan, its last reported commit status, and the approval of its deletes that need one.

    ``open``: its commit status may still change. ``settled``: only a commit or a replay can change it.
    ``not_before`` is when the status may be sent to GitHub again, ``reports`` how many were sent.
    ``review`` is what the reviews on GitHub said when they were read last, None if they were not. ``etag`` is
    the version that was read, "" for a record not saved yet.
    """

    plan: Plan
    at: datetime
    open: bool = True
    settled: bool = False
    reported: str = ""
    not_before: datetime | None = None
    approval: Approval | None = None
    reports: int = 0
    review: ReviewCheck | None = None
    etag: str = field(default="", compare=False)


@dataclass(frozen=True)
class BranchRead:
    """A read of the branch, and when it started by our clock; ``head`` is None where it failed."""

    head: BranchHead | None
    started: datetime


@dataclass(frozen=True)
class Source:
    """Where a fleet is planned from: GitHub's id of the repository, and the branch."""

    repository: int
    branch: str


@dataclass(frozen=True)
class Handover:
    """How far the planner has come with ``planning``: of ``total`` jobs, ``done`` were handed over.

    ``in_flight`` are the clusters whose records it saves, and whose messages it sends, since ``at``. It saves
    no other ones before it has written this again, and none between two invocations.
    """

    at: datetime
    done: int = 0
    total: int = 0
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetRecord:
    """The state of the planner: what it planned last, what it plans now, and what prevents the next plan."""

    commit: str = ""
    """The commit that was planned last, "" for none."""
    at: datetime | None = None
    """When that plan was created, as in its record; another time there is that of a superseded planner."""
    problem: FleetProblem | None = None
    """What prevents the newest commit from being planned, None for no problem."""
    waiting: str = ""
    """Why a new head is not planned yet, as a sentence; "" when none waits."""
    planning: str = ""
    """The commit whose jobs are being handed over, "" for none."""
    handover: Handover | None = None
    """How far that is; None for no ``planning``, or for that of the version before."""
    head_read_at: datetime | None = None
    """When the head was read for ``planning``, otherwise for ``commit``, by GitHub's clock."""
    installation: str = ""
    """The id of this state, by which two apps of one fleet differ; "" before the first plan."""
    source: Source | None = None
    """Where the fleet is planned from; None before the first plan."""
    other_source: Source | None = None
    """What was read instead at last, which a takeover accepts; None when it was ``source``."""
    contested: tuple[str, ...] = ()
    """The clusters that wait for a takeover, as of the last report."""
    last_read: BranchRead | None = None
    """The last read of the branch, by any request; None for none."""
    reads_full_at: datetime | None = None
    """When as many successive reads of the branch are allowed again as after a pause."""
    awaiting_deletion: tuple[str, ...] = ()
    """The clusters that are created again once their deletion has finished."""
    gaps: Gaps = field(default_factory=Gaps)
    """The heads that no webhook had announced."""
    flux_checked: str = ""
    """The commit whose changes were compared last with what Flux applies, "" for none yet."""
    groups_indexed: bool = False
    """Whether every cluster is a member of its resource group, as ``Clusters`` stores them."""
    routes: tuple[Route, ...] = ()
    """Who is notified, as of the last plan with a valid fleet.yaml."""
    etag: str = field(default="", compare=False)
    """The version that was read, "" for a record not saved yet."""

    @property
    def handed_over(self) -> str:
        """How far ``planning`` is, "" while nothing was handed over."""
        known = self.handover
        return f"{known.done:,} of {known.total:,} clusters handed over" if known and known.done else ""


@dataclass(frozen=True)
class DeadLetter:
    """A message that a queue gave up and that could not be handled; ``body`` is its beginning as text.

    ``size`` is the size of the whole body in bytes, ``at`` is when the message reached its queue.
    """

    queue: str
    id: str
    at: datetime
    reason: str
    description: str
    body: str
    size: int


class Events(Protocol):
    """What happened to the clusters."""

    def append(self, events: Sequence[Event]) -> None:
        """Save events; an event that was saved before is not duplicated."""
        ...

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Sequence[Event]:
        """Return a cluster's newest events (before a millisecond), newest first, even of a deleted one."""
        ...

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove all but a cluster's newest events; return how many were removed."""
        ...

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove older events of clusters that are not in ``living``; return how many were removed."""
        ...


class Plans(Protocol):
    """The plans, with their reported status, and the fleet's record."""

    def fleet(self) -> FleetRecord:
        """Return the fleet's record; a new one when none was saved."""
        ...

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record over the version that was read, and return it as saved; raise Stale."""
        ...

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        ...

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit; only the planner does."""
        ...

    def save_report(self, plan_record: PlanRecord) -> PlanRecord:
        """Write what was reported of a plan over the version that was read, and leave the plan; raise Stale.

        That is ``open``, ``settled``, ``reported``, ``not_before`` and ``reports``. Returns the record with
        its new etag.
        """
        ...

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over the version that was read; raise Stale."""
        ...

    def next_report_at(self) -> datetime | None:
        """Return the ``not_before`` of the newest open plan; the size of plans does not matter."""
        ...

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans since a time, newest first."""
        ...

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        ...

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones; return how many were removed."""
        ...


class Manifests(Protocol):
    """A cache of the repository: blobs, and the fingerprints of resolved clusters."""

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are saved, by their ids; each takes one read."""
        ...

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Save blobs of at most 60,000 bytes by their ids."""
        ...

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every saved blob except these, by their ids; return how many were removed."""
        ...

    def fingerprints(self) -> Mapping[str, str]:
        """Return what ``save_fingerprints`` wrote last, by cluster."""
        ...

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Write the fingerprints of the whole fleet over the saved ones; their loss costs only time."""
        ...


class Buckets(Protocol):
    """Azure's token buckets, shared by all workers."""

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, None for one that no call has used yet."""
        ...

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over the version in its etag ("": only if there is none); raise Stale."""
        ...


class Deliveries(Protocol):
    """The webhook deliveries that were accepted, by the digest of their bodies."""

    def delivery_seen(self, digest: str) -> bool:
        """Return whether a webhook delivery was queued before."""
        ...

    def remember_delivery(
        self, digest: str, at: datetime, *, head: str = "", pushed: datetime | None = None
    ) -> None:
        """Remember a webhook delivery, and the ``head`` that it announced; twice is once.

        ``pushed`` is when the head was pushed, by GitHub's clock; ``at`` stands in for a delivery without it.
        """
        ...

    def announced_at(self, head: str) -> datetime | None:
        """Return when a head was pushed according to the last delivery that announced it, None for none."""
        ...

    def prune_deliveries(self, before: datetime) -> int:
        """Remove deliveries that were remembered before a time; return how many were removed."""
        ...


class DeadLetters(Protocol):
    """The messages that the queues gave up."""

    def save_dead_letter(self, letter: DeadLetter) -> None:
        """Save a dead letter, over an equal one."""
        ...

    def dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Return the newest dead letters, newest first."""
        ...

    def count_dead_letters(self) -> int:
        """Return how many dead letters are saved."""
        ...

    def delete_dead_letter(self, letter: DeadLetter) -> None:
        """Remove a dead letter; one that does not exist is success."""
        ...

    def prune_dead_letters(self, before: datetime) -> int:
        """Remove older dead letters; return how many were removed."""
        ...


class _Rest(Acts, Sweeps, Timers, Notices, Protocol):
    """What has a module of its own."""


class State(Clusters, Events, Plans, Manifests, Buckets, Deliveries, DeadLetters, _Rest, Protocol):
    """The stored state of one fleet. It never contains a secret."""
