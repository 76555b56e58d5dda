"""A job: the recipe that brings one cluster to its spec, the step that it is at, and its next run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from shared.cluster.recipes import STEPS, Recipe, Step
from shared.frozen import dataclass, field, replace


@dataclass(frozen=True)
class Failure:
    """The last error of a step: its class, the service's message and ids, since when, and how often."""

    kind: str
    message: str
    since: datetime
    attempts: int
    code: str = ""
    request_id: str = ""
    entry: str = ""


@dataclass(frozen=True)
class Lease:
    """The worker that runs the step now, and until when no other worker may."""

    owner: str
    until: datetime
    due: datetime = field(compare=False)


class WriteKind(StrEnum):
    """What a write does."""

    PUT = "put"
    DELETE = "delete"
    UPGRADE_NODE_IMAGE = "upgrade-node-image"
    DISABLE_AUTOSCALER = "disable-autoscaler"
    EVICT_PODS = "evict-pods"
    START = "start"
    STOP = "stop"
    TAG_FOREIGN_GROUP = "tag-foreign-group"
    """A PUT met a resource group that somebody else had just created."""


@dataclass(frozen=True)
class AcceptedWrite:
    """A write that a service accepted.

    ``target`` is the node pool, "" for the cluster or the resource group of the step. ``digest`` identifies
    the content, ``attempt`` counts the same write. ``request_id`` is the service's own, "" for none.
    """

    kind: WriteKind
    target: str = ""
    digest: str = ""
    attempt: int = 1
    request_id: str = field(default="", compare=False)

    def repeats(self, other: AcceptedWrite | None) -> bool:
        """Return whether the other write is the same one, at any attempt."""
        return other is not None and replace(self, attempt=other.attempt) == other


class WaitKind(StrEnum):
    """What a step can wait on for several runs, without starting again from its beginning."""

    DRAIN = "drain"
    ROLLOUT = "rollout"


@dataclass(frozen=True)
class WaitSubject:
    """A part of a step that lasts; ``key`` is the node pool that drains, or the components that roll out."""

    kind: WaitKind
    key: str
    since: datetime


class ContestKind(StrEnum):
    """Why a cluster that carries our tags is not written to."""

    IDENTITY = "identity"
    """The kubeconfig leads to another cluster than before."""
    INSTALLATION = "installation"
    """It names another installation, as its owner or in its contest tag; or no record of ours has seen it."""
    RECOVERY = "recovery"
    """The tables do not know what was written to it last, and its job would write; or nothing of its life."""


@dataclass(frozen=True)
class Contest:
    """What an operator's takeover decides: who else may manage the cluster, as its tags said."""

    kind: ContestKind
    installations: tuple[str, ...] = ()
    life: str = ""


@dataclass(frozen=True)
class StepState:
    """The step that a job is at. The next step starts with a new state.

    ``attempts`` counts the failed attempts by class of error. ``rechecking``: Azure did not show a resource,
    and the step has done nothing since; the next read decides (NotYetVisible). ``abandoned_leases`` counts
    the leases that ran out since the last outcome: their workers died, or were cut off.
    """

    name: Step
    since: datetime
    last_progress: datetime
    attempts: Mapping[str, int] = field(default_factory=dict)
    failure: Failure | None = None
    last_write: AcceptedWrite | None = None
    waiting_on: WaitSubject | None = None
    rechecking: bool = False
    abandoned_leases: int = 0


class Delay(StrEnum):
    """What delays the next run of a step."""

    NONE = "none"
    WAIT = "wait"
    RESTORED = "restored"
    """A delete that has not started waits, because git has the cluster again."""
    RETRY = "retry"
    RATE_LIMIT = "rate-limit"


@dataclass(frozen=True)
class NextRun:
    """When the step runs next, and why not sooner.

    ``reason`` and ``action_required`` are sentences for an operator; the latter is "" when the job continues
    without one. ``reservations`` are the reserved tokens of Azure's rate limits, by bucket. ``contest`` is
    what a takeover decides, None when none is needed.
    """

    at: datetime
    delay: Delay
    reason: str = ""
    action_required: str = ""
    reservations: Mapping[str, tuple[datetime, ...]] = field(default_factory=dict)
    contest: Contest | None = None


class JobQueue(StrEnum):
    """The queues of jobs; each is received by one app."""

    JOBS = "jobs"
    CHANGES = "changes"
    """The jobs of small changes, which wait behind no large one."""
    DELETES = "deletes"

    def carries(self, recipe: Recipe) -> bool:
        """Return whether the receiving app may run a recipe: only the deleter may delete in Azure."""
        return (recipe is Recipe.DELETE) is (self is JobQueue.DELETES)


@dataclass(frozen=True)
class Job:
    """The work in progress, or the last one. ``active`` False: it has ended.

    ``sequence`` grows with every saved outcome. ``restarts`` counts how often the job went back to its first
    step because a resource had vanished. ``small_change``: it waits behind no large change. ``earlier`` is
    the failure with which it ended before a sweep found something else about its cluster, None for none.
    """

    recipe: Recipe
    sequence: int
    started: datetime
    step: StepState
    next_run: NextRun
    active: bool = True
    restarts: int = 0
    lease: Lease | None = None
    small_change: bool = False
    left: tuple[str, ...] = ()
    earlier: Failure | None = None

    @property
    def queue(self) -> JobQueue:
        """The queue of the job's next message."""
        if self.recipe is Recipe.DELETE:
            return JobQueue.DELETES
        return JobQueue.CHANGES if self.small_change else JobQueue.JOBS

    def due(self, now: datetime) -> datetime:
        """Return the time from which a message of the job has an effect."""
        return due(self.next_run.at, self.next_run.delay, self.lease.until if self.lease else None, now)

    @property
    def reason(self) -> str:
        """Why the step does not run sooner, or why the job has failed; a sentence for an operator."""
        return self.next_run.reason

    @property
    def attempts(self) -> int:
        """How often the present error has occurred, 0 for no error."""
        return self.step.failure.attempts if self.step.failure else 0


def due(at: datetime, delay: Delay, leased_until: datetime | None, now: datetime) -> datetime:
    """Return the time from which a message has an effect whose step is to run at a time."""
    at = min(now, at) if delay is Delay.NONE else at
    return at if leased_until is None else max(at, leased_until)


def start_step(step: Step, now: datetime) -> StepState:
    """Return the state of a step that starts now."""
    return StepState(step, since=now, last_progress=now)


def new_job(recipe: Recipe, *, now: datetime, sequence: int = 1) -> Job:
    """Return a job at the start of its recipe, due at once."""
    return Job(recipe, sequence, now, start_step(STEPS[recipe][0], now), NextRun(now, Delay.NONE))


def job_after(
    before: Job, recipe: Recipe, *, now: datetime, lease: Lease | None = None, left: tuple[str, ...] = ()
) -> Job:
    """Return the job that follows another one; ``lease`` is that of a step that still runs."""
    job = new_job(recipe, now=now, sequence=before.sequence + 1)
    return replace(job, lease=lease, left=left)
