"""A cluster's record: all that Roadstead stores of a cluster but its older events, and its stored form.

``generation`` grows with every accepted spec; ``observed_generation`` is the last that was verified Ready.
``job.sequence`` grows with every saved outcome, so (uid, generation, sequence) identifies one moment of one
cluster, and a message of another moment is recognised as late.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from shared.azure.running_versions import UNKNOWN, RunningVersions
from shared.cluster.divergence.trial import Trial
from shared.cluster.failures.errors import (
    OUTSIDE,
    ClusterMissing,
    ClusterStopped,
    DeadLettered,
    NoLongerReady,
    Retryable,
    Unhealthy,
    classes,
)
from shared.cluster.forms import StoredText, WrongText
from shared.cluster.history import Event
from shared.cluster.job import Delay, Job
from shared.cluster.recipes import STEPS, Recipe, Step
from shared.cluster.record_parts import (
    NOTHING_REMOVED,
    AzureLife,
    ClusterObservation,
    Condition,
    Divergence,
    Ownership,
    Phase,
    Removals,
)
from shared.cluster.sleep import SleepDecision, should_be_awake
from shared.frozen import dataclass, field, replace
from shared.language.desired import Desired
from shared.language.pin import Pin
from shared.plan.plan import Postponement

READY = Step.VERIFY.condition
FINDINGS = frozenset(kind.__name__ for kind in classes(NoLongerReady))
"""The classes of what a sweep or a check finds."""
_OF_HEALTH = frozenset(kind.__name__ for kind in classes(Unhealthy))
_TRANSIENT = frozenset(kind.__name__ for kind in (*classes(Retryable), DeadLettered))


@dataclass(frozen=True)
class ClusterRecord:
    """One cluster of the fleet; ``etag`` is the version that was read, "" for a record not saved yet.

    ``removals`` are what earlier generations had and is to be removed, until the present one is Ready.
    ``rollout`` is the commit whose plan gave it its generation in a fleet with rollouts, "" in any other.
    ``recent_events`` are those that are stored with the record alone; see ``shared.app.records``.
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
    azure: AzureLife = AzureLife()
    removals: Removals = NOTHING_REMOVED
    ownership: Ownership = Ownership()
    observation: ClusterObservation = ClusterObservation()
    divergence: Divergence = Divergence()
    rollout: str = ""
    recent_events: tuple[Event, ...] = ()
    etag: str = field(default="", compare=False)

    @property
    def rebuilt_for(self) -> str:
        """The time of the rebuild that this life of the cluster was created for, "" for none."""
        return self.azure.rebuilt_for

    @property
    def lifetime_hold(self) -> Postponement | None:
        """Until when somebody holds it, also once that is over; None for a cluster without a hold."""
        return self.azure.lifetime.hold

    @property
    def recovering(self) -> bool:
        """Whether the job only compares, because the record may not know what was written last."""
        return self.ownership.recovering

    @property
    def deleting(self) -> bool:
        """Whether an accepted commit removed the cluster: its tombstone. Nothing is created after it."""
        return self.job.recipe.removes

    @property
    def restorable(self) -> bool:
        """Whether the tombstone can be taken back: its delete has certainly not started.

        Only the delete's own step says so, because it reads Azure. While it runs, and after it died, the
        delete may have started.
        """
        certain = self.job.lease is None and not self.job.step.abandoned_leases
        says_so = self.job.next_run.delay is Delay.RESTORED or self.recovering
        return self.deleting and certain and says_so

    @property
    def failed(self) -> bool:
        """Whether the job has failed."""
        return self.phase is Phase.FAILED and not self.job.active

    @property
    def refused(self) -> bool:
        """Whether somebody outside of git has to act first, so that it counts as failed meanwhile."""
        failure = self.job.step.failure
        stalled = self.job.active and self.phase is Phase.STALLED and not self.deleting
        return stalled and failure is not None and failure.kind in OUTSIDE

    @property
    def idle(self) -> bool:
        """Whether sweeps and checks say how it is: it was verified Ready, and has had no job since."""
        return bool(self.finding) or (self.phase is Phase.READY and not self.job.active)

    @property
    def trial(self) -> Trial | None:
        """The try that its Flux may have the commit of, None where it has what its stage gives it."""
        trial = self.divergence.trial
        return None if trial is None or trial.back else trial

    @property
    def ready(self) -> bool:
        """Whether its generation was verified Ready, and neither a finding nor a try has ended that since."""
        verified = self.observed_generation == self.generation and not self.lost and self.trial is None
        return verified and self.idle and self.phase is Phase.READY

    @property
    def retryable_failure(self) -> bool:
        """Whether the job failed for a reason that may have passed since, or is a delete."""
        if not self.failed:
            return False
        failure = self.job.step.failure
        return self.deleting or (failure is not None and failure.kind in _TRANSIENT)

    @property
    def running(self) -> RunningVersions:
        """What it ran when it was read last; empty if it never was."""
        return self.observation.running or UNKNOWN

    @property
    def needs_action(self) -> bool:
        """Whether the job waits for an operator; a suspension is no such wait."""
        required = bool(self.job.next_run.action_required)
        return self.job.active and required and self.phase is not Phase.SUSPENDED

    @property
    def contested(self) -> bool:
        """Whether somebody else may manage the cluster, as its job or a sweep found: a takeover decides."""
        return self.job.next_run.contest is not None

    @property
    def to_compare(self) -> bool:
        """Whether the record is recovering, and its job has neither ended nor shown what it would write."""
        waits = self.needs_action or self.phase in (Phase.SUSPENDED, Phase.STALLED)
        return self.recovering and self.job.active and not waits

    @property
    def lost(self) -> bool:
        """Whether the generation that was verified Ready has stopped being so, and is not verified again."""
        ready = self.condition(READY)
        return self.observed_generation == self.generation and ready is not None and not ready.status

    @property
    def finding(self) -> str:
        """The class of what a sweep or a check found, "" for nothing; a new job ends it."""
        failure = self.job.step.failure
        return failure.kind if self.failed and failure and failure.kind in FINDINGS else ""

    @property
    def recreated(self) -> bool:
        """Whether a sweep found that the cluster is missing, and its policy has it created again."""
        missing = self.finding == ClusterMissing.__name__ and self.job.earlier is None
        return missing and self._policy_recreates and not self.exemption

    @property
    def started_again(self) -> bool:
        """Whether a sweep found that the cluster is stopped, and its policy has it started again."""
        stopped = self.finding == ClusterStopped.__name__ and self.job.earlier is None
        return stopped and self.may_start and not self.exemption

    @property
    def may_start(self) -> bool:
        """Whether its job starts the cluster where it is stopped, unless an exemption has it so.

        One that sleeps by a schedule, or that a job of ours stopped, is started whoever stopped it.
        """
        if self.azure.slept is not None or self.document["spec"].get("sleep"):
            return True
        policy = None if self.desired.problem else self.desired.spec.drift
        return policy is not None and policy.stopped_cluster == "start"

    @property
    def exemption(self) -> str:
        """The rule by which it is ignored that the cluster was missing or stopped when it was read last."""
        return self.observation.loss.exemption if self.observation.loss else ""

    @property
    def may_create(self) -> bool:
        """Whether its job creates the cluster where Azure has none.

        A cluster that was verified Ready is missing then, and somebody may have deleted it on purpose. It is
        created again only if its policy says so, or an operator.
        """
        return not self.was_ready or self._policy_recreates

    @property
    def was_ready(self) -> bool:
        """Whether a cluster was verified, and nobody has asked for another one in its place since."""
        return self.observed_generation > 0 and not self.azure.recreating

    @property
    def _policy_recreates(self) -> bool:
        return recreates(self.desired)

    @cached_property
    def desired(self) -> Desired:
        """The spec that the job brings about: that of git, with the commit of a try."""
        left = self.job.left if self.job.active else ()
        cluster = Desired(
            self.document,
            removed_keys=self.removals.keys,
            left=frozenset(left),
            had_systems=self.azure.had_systems,
            lowered=self.divergence.lowered,
        )
        own, trial = Pin.of(self.document), self.trial
        return cluster.with_pin(trial.pin(own)) if own and trial and not trial.ended else cluster

    def sleep_at(self, now: datetime) -> SleepDecision | None:
        """Return whether the cluster is to be awake at a time; None for one that never sleeps."""
        written = self.document["spec"].get("sleep") and not self.desired.is_attached
        sleep = self.desired.spec.sleep if written and not self.desired.problem else None
        if sleep is None:
            return None
        return should_be_awake(sleep, self.divergence.order, self.desired.labels, now)

    @property
    def sleeps_in_pools(self) -> bool:
        """Whether its node pools are to sleep and not the whole cluster, or a job of ours stopped them."""
        return self.azure.pools_slept or scope_of_sleep(self.document["spec"]) == "pools"

    def fallen_asleep(self, since: datetime) -> ClusterRecord:
        """Return the record of a cluster that a job of ours stops, or finds stopped as it is to be."""
        if self.azure.slept is not None:
            return self
        pools = scope_of_sleep(self.document["spec"]) == "pools"
        return replace(self, azure=replace(self.azure, slept=since, pools_slept=pools))

    @property
    def sleep_job_runs(self) -> bool:
        """Whether the job that has it sleep goes on: what was verified before counts meanwhile."""
        return self.job.recipe is Recipe.SLEEP and self.phase in (Phase.UPDATING, Phase.SLEEPING)

    def condition(self, kind: str) -> Condition | None:
        """Return a condition by its type."""
        return next((c for c in self.conditions if c.type == kind), None)


def scope_of_sleep(spec: Mapping[str, Any]) -> str:
    """Return what stops at night: "cluster" or "pools", "" for a cluster that never sleeps."""
    sleep = spec.get("sleep")
    return str(sleep.get("scope", "cluster")) if sleep else ""


def sleeps_at(record: ClusterRecord) -> datetime | None:
    """Return when a cluster that is at rest is to sleep next, None for never."""
    decision = record.sleep_at(record.updated) if record.ready else None
    if decision is None:
        return None
    return decision.until if decision.awake else record.updated


def recreates(desired: Desired) -> bool:
    """Return whether the policy has a missing cluster created again; who adopts one never creates it."""
    if desired.adopt or desired.problem:
        return False
    policy = desired.spec.drift
    return policy is not None and policy.missing_cluster == "recreate"


def of_health(finding: str) -> bool:
    """Return whether a finding is that of a check inside the cluster, and not of a sweep."""
    return finding in _OF_HEALTH


def finding_of_sweep(finding: str) -> str:
    """Return the finding of a record as far as sweeps decide it: that of a check ends with a check."""
    return "" if of_health(finding) else finding


def at_another_moment(record: ClusterRecord, now: datetime) -> ClusterRecord:
    """Return the record at the next moment of its job: what is announced of it is another fact then."""
    return replace(record, job=replace(record.job, sequence=record.job.sequence + 1), updated=now)


def working_phase(record: ClusterRecord) -> Phase:
    """Return the phase of a record whose job continues."""
    if record.deleting:
        return Phase.DELETING
    return Phase.UPDATING if record.observed_generation else Phase.PROVISIONING


# The record of a cluster as it is stored.

_STORED = StoredText[ClusterRecord](ClusterRecord)
_PLACE = ("subscriptionId", "resourceGroup", "location", "kubernetesVersion")
"""The texts of a spec that are read without a check of the whole spec."""


def to_json(record: ClusterRecord) -> str:
    """Return the stored form, without the etag."""
    return _STORED.write(record, "etag")


def from_json(text: str, etag: str) -> ClusterRecord:
    """Read the stored form; raise WrongText."""
    record = _STORED.read(text)
    _check(record)
    return replace(record, etag=etag)


def _check(record: ClusterRecord) -> None:
    """Raise WrongText where the parts of a record do not fit together, or its document is not one."""
    if record.job.step.name not in STEPS[record.job.recipe]:
        raise WrongText("job.step.name is no step of job.recipe")
    spec = record.document.get("spec")
    if record.document.get("name") != record.name:
        raise WrongText("document.name is not name")
    if not isinstance(spec, Mapping):
        raise WrongText("document.spec is missing, or has a wrong type")
    for name in _PLACE:
        if not isinstance(spec.get(name), str):
            raise WrongText(f"document.spec.{name} is missing, or has a wrong type")
