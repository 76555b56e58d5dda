"""A cluster's row: everything Roadstead remembers of a cluster, and its stored form.

``generation`` grows with every accepted spec; ``observed_generation`` is the last that was verified Ready.
``job.sequence`` grows with every saved outcome, so (uid, generation, sequence) names one moment of one
cluster, and a message that names another moment is known to be late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from shared.fleet.aks.removed_keys import keys_to_remove
from shared.fleet.desired import Desired
from shared.jobs.errors import DeadLettered, Retryable
from shared.jobs.recipes import STEPS, Recipe, Step

_PASSING = frozenset(kind.__name__ for kind in (*Retryable.__subclasses__(), DeadLettered))


class Phase(StrEnum):
    """What a person reads first."""

    PROVISIONING = "Provisioning"
    UPDATING = "Updating"
    DELETING = "Deleting"
    READY = "Ready"
    STALLED = "Stalled"
    SUSPENDED = "Suspended"
    FAILED = "Failed"


@dataclass(frozen=True)
class Condition:
    """As in Kubernetes; ``since`` is when ``status`` last changed."""

    type: str
    status: bool
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True)
class Failure:
    """What went wrong last: class, the service's words, since when, how often, and its request id."""

    kind: str
    message: str
    since: datetime
    code: str = ""
    request_id: str = ""


@dataclass(frozen=True)
class Lease:
    """Who runs the step now, and until when nobody else may."""

    owner: str
    until: datetime


@dataclass(frozen=True)
class Job:
    """The work under way, or the last one. ``active`` False: nothing more will happen by itself.

    ``attempts`` are those of the error that is tried again now, ``tries`` counts them by class. ``wrote`` is
    the write of this step that Azure accepted last, "" for none, ``request_id`` the service's own of it, and
    ``moved`` when the step last came on; ``part`` is the part of it that is waited for, "" where no part has
    a time of its own; ``person`` is what a person can do about the wait, "" when it goes on by itself;
    ``reserved`` are turns at Azure's token buckets that the step waits for. ``lost`` counts the claims since
    the last outcome that ran out: their workers died, or were cut off. ``looked``: nothing was done since a
    look that found nothing, which is made once more (NotYetVisible). ``restarts`` counts how often the job
    went back to its first step, because something had vanished.
    """

    recipe: Recipe
    step: Step
    sequence: int
    started: datetime
    step_since: datetime
    next_at: datetime
    active: bool = True
    attempts: int = 0
    tries: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    wrote: str = ""
    request_id: str = ""
    moved: datetime | None = None
    part: str = ""
    part_since: datetime | None = None
    person: str = ""
    failure: Failure | None = None
    lease: Lease | None = None
    lost: int = 0
    looked: bool = False
    restarts: int = 0
    reserved: Mapping[str, tuple[datetime, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterRecord:
    """One cluster of the fleet; ``etag`` is the version that was read, "" for a row not saved yet.

    ``begun``: Azure was asked for the cluster, or may have been; never taken back. ``owned``: the cluster
    has had our tags, for Azure accepted a write of it or it was as the manifest asks; never taken back.
    ``dropped`` is what of each node pool earlier generations had, and what is to be taken away until the
    present one is Ready.
    """

    name: str
    uid: str
    document: Mapping[str, Any]
    digest: str
    generation: int
    observed_generation: int
    phase: Phase
    job: Job
    commit: str
    created: datetime
    updated: datetime
    conditions: tuple[Condition, ...] = ()
    begun: bool = False
    owned: bool = False
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    etag: str = field(default="", compare=False)

    @property
    def deleting(self) -> bool:
        """Whether an accepted commit removed the cluster: its tombstone. Nothing is created after it."""
        return self.job.recipe is Recipe.DELETE

    @property
    def failed(self) -> bool:
        """Whether the job gave up."""
        return not self.job.active and self.phase is Phase.FAILED

    @property
    def retryable_failure(self) -> bool:
        """Whether the job gave up over something that may have passed by now, or is a delete."""
        failure = self.job.failure
        passing = failure is not None and failure.kind in _PASSING
        return self.failed and (passing or self.deleting)

    @property
    def needs_action(self) -> bool:
        """Whether the job goes on only, or sooner, once a person does something; a suspension is none."""
        return self.job.active and bool(self.job.person) and self.phase is not Phase.SUSPENDED

    @cached_property
    def desired(self) -> Desired:
        """The spec to bring about."""
        return Desired.from_document(self.document, self.dropped)

    def condition(self, kind: str) -> Condition | None:
        """Return a condition by its type."""
        return next((c for c in self.conditions if c.type == kind), None)


_STORED = TypeAdapter(ClusterRecord)


def to_json(record: ClusterRecord) -> str:
    """Return the stored form, without the etag."""
    return _STORED.dump_json(record, exclude={"etag"}).decode()


def from_json(text: str, etag: str) -> ClusterRecord:
    """Read the stored form."""
    return replace(_STORED.validate_json(text), etag=etag)


def with_etag(record: ClusterRecord, etag: str) -> ClusterRecord:
    """Return the row as the version it was saved as."""
    return replace(record, etag=etag)


def new_job(recipe: Recipe, *, sequence: int, now: datetime) -> Job:
    """Return a job at the beginning of its recipe, due at once."""
    return Job(recipe, STEPS[recipe][0], sequence, started=now, step_since=now, next_at=now)


def accept_new(desired: Desired, *, uid: str, commit: str, now: datetime) -> ClusterRecord:
    """Return the row of a cluster that git has for the first time."""
    return ClusterRecord(
        name=desired.name,
        uid=uid,
        document=desired.document(),
        digest=desired.digest,
        generation=1,
        observed_generation=0,
        phase=Phase.PROVISIONING,
        job=new_job(Recipe.PROVISION, sequence=1, now=now),
        commit=commit,
        created=now,
        updated=now,
    )


def accept_change(record: ClusterRecord, desired: Desired, *, commit: str, now: datetime) -> ClusterRecord:
    """Return the row with a new spec; a step that runs now keeps its claim until it has ended."""
    job = new_job(Recipe.PROVISION, sequence=record.job.sequence + 1, now=now)
    document = desired.document()
    return replace(
        record,
        document=document,
        dropped=keys_to_remove(record.document, document, record.dropped),
        digest=desired.digest,
        generation=record.generation + 1,
        phase=Phase.UPDATING if record.observed_generation else Phase.PROVISIONING,
        job=replace(job, lease=record.job.lease),
        commit=commit,
        updated=now,
    )


def accept_retry(record: ClusterRecord, *, now: datetime) -> ClusterRecord:
    """Return the row with its failed job begun anew; the spec and its generation stay."""
    job = new_job(record.job.recipe, sequence=record.job.sequence + 1, now=now)
    return replace(record, phase=working_phase(record), job=job, updated=now)


def working_phase(record: ClusterRecord) -> Phase:
    """Return the phase of a row whose job goes on."""
    if record.deleting:
        return Phase.DELETING
    return Phase.UPDATING if record.observed_generation else Phase.PROVISIONING


def accept_delete(record: ClusterRecord, *, commit: str, now: datetime) -> ClusterRecord:
    """Return the row with its tombstone: from now on nothing is created for it."""
    job = new_job(Recipe.DELETE, sequence=record.job.sequence + 1, now=now)
    return replace(
        record,
        generation=record.generation + 1,
        phase=Phase.DELETING,
        job=replace(job, lease=record.job.lease),
        commit=commit,
        updated=now,
    )
