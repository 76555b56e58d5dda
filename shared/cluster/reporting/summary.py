"""What is read of every cluster at once: a few fields of its record, which are stored next to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, timedelta

from shared.azure.availability.retirements import AHEAD, support_ends
from shared.cluster.divergence.drift import Drift, digest_of_proposal
from shared.cluster.divergence.trial import Trial
from shared.cluster.failures.advice import explained
from shared.cluster.findings.conditions import (
    IN_SYNC,
    found_of,
    is_at_rest,
    is_exempt,
    is_unfinished,
    shown_phase,
    unnamed_since,
)
from shared.cluster.findings.health import faults_of
from shared.cluster.recipes import Step
from shared.cluster.record import READY, ClusterRecord
from shared.cluster.record_parts import STUCK, Phase
from shared.cluster.sleep import CHANGES_WAIT
from shared.frozen import dataclass, field
from shared.kubernetes.kubeconfig import SOON
from shared.language.cluster_systems import systems_in
from shared.masking import cut

REASON_LIMIT = 500
"""Characters of a reason; a commit status has room for 140."""
MORE = "more"


@dataclass(frozen=True)
class SystemSummary:
    """A team's system on a cluster; ``unhealthy`` counts the objects that a check found so.

    ``revision`` is what Flux applied of it last, "" for nothing yet, and None where no check has read that.
    """

    name: str
    owners: tuple[str, ...]
    namespaces: tuple[str, ...]
    unhealthy: int
    revision: str | None


@dataclass(frozen=True)
class SummaryEnd:
    """What of a cluster ends on a day, support or a certificate, and from which day on it is warned of."""

    what: str
    on: date
    warned: date


@dataclass(frozen=True)
class SummaryDetails:
    """What only some lists select by: the class, the labels, and each condition's status by its type.

    ``versions`` are those of Kubernetes that git has and that runs, "" for one that is not known, ``images``
    those of its nodes. ``drift`` counts the fields that differ, by what the policy does with them, and as
    ``MORE`` those of which only the number is stored.
    """

    cluster_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, bool | None] = field(default_factory=dict)
    drift: Mapping[str, int] = field(default_factory=dict)
    versions: tuple[str, str] = ("", "")
    images: tuple[str, ...] = ()
    systems: tuple[SystemSummary, ...] = ()
    ends: tuple[SummaryEnd, ...] = ()


@dataclass(frozen=True)
class SummaryPlace:
    """Where the cluster lives; ``attached``: it is not in Azure."""

    environment: str
    location: str
    subscription: str
    resource_group: str
    attached: bool = False


@dataclass(frozen=True)
class SummaryDivergence:
    """How the cluster differs from git.

    ``drifted`` counts the fields that differ, ``proposed`` is a digest of those that a pull request is to
    take into the manifest, "" for none. ``to_approve`` counts the corrections that wait for an approval.
    ``differs_since`` is since when a Ready cluster has differed, None for one that does not. ``unplanned``:
    it is not known which commit its Flux is to pull, so another plan comes. ``stays`` is the sentence for a
    version that runs although git has an older one, "" for none.
    """

    drifted: int = 0
    to_approve: int = 0
    differs_since: datetime | None = None
    proposed: str = ""
    unplanned: bool = False
    stays: str = ""


@dataclass(frozen=True)
class SummarySweep:
    """What a sweep compares with the list of a subscription, and what one found of the whole cluster.

    ``at_rest``: sweeps compare it, and ``unfinished``: its last job says why it is not Ready. ``digest`` is
    that of the cluster in Azure in which nothing differs, "" for none, and ``life`` that of the cluster in
    Azure, "" where it is the ``uid``.

    ``recreated``: it is missing or stopped, and its policy has it created or started again. ``found``: a
    sweep found something, also of a suspended cluster, which has no ``finding``. ``exempt_until`` is the last
    day of the exemption by which that is ignored, "" for none, and ``unnamed_since`` since when nobody is
    known who deleted or stopped the cluster, None where that is not asked.
    """

    at_rest: bool = False
    unfinished: bool = False
    digest: str = ""
    life: str = ""
    recreated: bool = False
    found: bool = False
    exempt_until: str = ""
    unnamed_since: datetime | None = None


@dataclass(frozen=True)
class SummaryCause:
    """Why its job has failed: the class of the error and its entry of the catalogue, each "" for none.

    ``action_required`` is what an operator has to do for it, "" for nothing.
    """

    kind: str = ""
    entry: str = ""
    action_required: str = ""


@dataclass(frozen=True)
class SummaryTimes:
    """Since when it is as it is.

    ``since`` is since when its job is at its step, or has ended. ``ready_since`` is since when it has been
    Ready, None where it is not. ``failed_since`` is since when its job has failed or is refused, or a sweep
    has found something, for the same reason; None likewise. ``unhealthy_since`` is since when a check has
    found what ends its being Ready if it lasts, None where none has. ``took`` are the seconds from the start
    of its last change until it was Ready, 0 where that is not known.
    """

    since: datetime | None = None
    ready_since: datetime | None = None
    failed_since: datetime | None = None
    unhealthy_since: datetime | None = None
    took: int = 0


@dataclass(frozen=True)
class SummarySchedule:
    """When it sleeps and ends.

    ``asleep_until`` is when it is started for which changes wait, None where none does. ``in_pools``: node
    pools of it sleep, and the cluster does not. ``lifetime_pull`` is the pull request that removes it at the
    end of its lifetime, 0 for none.
    """

    asleep_until: datetime | None = None
    in_pools: bool = False
    lifetime_pull: int = 0


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster in a list of thousands; ``reason`` is ``reason_of`` it, cut to ``REASON_LIMIT``.

    ``shown_phase`` is the phase that people see. ``lost`` and ``finding`` are those of the record. ``trial``
    is the last try, which may be over. ``warned`` is the first day on which it is warned of something that
    ends, None where nothing is known to end. ``details`` are empty where they were not asked for.
    """

    name: str
    uid: str
    phase: Phase
    shown_phase: Phase
    step: Step
    reason: str
    generation: int
    observed_generation: int
    contested: bool
    place: SummaryPlace
    lost: bool = False
    finding: str = ""
    details: SummaryDetails = field(default_factory=SummaryDetails, compare=False)
    divergence: SummaryDivergence = SummaryDivergence()
    sweep: SummarySweep = SummarySweep()
    times: SummaryTimes = SummaryTimes()
    trial: Trial | None = None
    warned: date | None = None
    schedule: SummarySchedule = SummarySchedule()
    cause: SummaryCause = SummaryCause()

    @property
    def needs_action(self) -> bool:
        """Whether its job waits for an operator."""
        return bool(self.cause.action_required)

    @property
    def stuck(self) -> bool:
        """Whether nobody works on it until a person has acted, as people see it."""
        return self.needs_action or self.shown_phase in STUCK

    @property
    def tried(self) -> str:
        """Which commit of a pull request it may have instead of its own, as a sentence; "" for none."""
        return str(self.trial) if self.trial and not self.trial.back else ""

    @property
    def sleeps_soundly(self) -> bool:
        """Whether its job waits for the end of its sleep, and so looks at Azure no more before that."""
        return self.phase is Phase.SLEEPING and self.step is Step.SLEEP

    def stays_asleep(self, now: datetime) -> bool:
        """Return whether it sleeps, and a change waits for its start."""
        until = self.schedule.asleep_until
        return until is not None and until - now <= CHANGES_WAIT

    @property
    def settled(self) -> bool:
        """Whether its generation was verified Ready, and it is so, or its sleep has come since."""
        sleeps = self.phase in (Phase.UPDATING, Phase.SLEEPING) and self.times.ready_since is not None
        return self.phase is Phase.READY or sleeps


def reason_of(record: ClusterRecord) -> str:
    """Return why a job waits or ended, for people: of a documented failure first what it means."""
    failure = record.job.step.failure
    if failure is None or not failure.entry or not _has_own_failure(record):
        return record.job.reason
    return f"{failure.kind}: {explained(failure.kind, failure.entry).removesuffix('.')}: {failure.message}"


def _has_own_failure(record: ClusterRecord) -> bool:
    """Return whether its job has failed or stalled, and no sweep or check has found something since."""
    return record.phase in STUCK and not record.finding


def summary_of(record: ClusterRecord) -> ClusterSummary:
    """Return the summary of a record."""
    drift, ends = record.divergence.drift, _ends_of(record)
    observed, pull = record.observation, record.azure.lifetime.pull
    return ClusterSummary(
        name=record.name,
        uid=record.uid,
        phase=record.phase,
        shown_phase=shown_phase(record),
        step=record.job.step.name,
        reason=cut(reason_of(record), REASON_LIMIT),
        generation=record.generation,
        observed_generation=record.observed_generation,
        contested=record.contested,
        place=SummaryPlace(
            environment=record.desired.environment,
            location=record.document["spec"]["location"],
            subscription=record.desired.id.subscription,
            resource_group=record.desired.id.resource_group,
            attached=record.desired.is_attached,
        ),
        lost=record.lost,
        finding=record.finding,
        details=SummaryDetails(
            cluster_class=record.desired.cluster_class,
            labels=record.desired.labels,
            conditions={condition.type: condition.status for condition in record.conditions},
            drift=_policies_of(drift) if drift else {},
            versions=(record.document["spec"]["kubernetesVersion"], record.running.kubernetes_version),
            images=tuple(sorted({pool.image for pool in record.running.pools.values() if pool.image})),
            systems=_systems_of(record),
            ends=ends,
        ),
        divergence=SummaryDivergence(
            drifted=drift.count if drift else 0,
            to_approve=len(drift.to_approve) if drift and record.idle else 0,
            differs_since=_differs_since(record),
            proposed=digest_of_proposal(drift),
            unplanned=any(not pin.is_known for pin in record.desired.pins.values()),
            stays=next((text for f in drift.fields if (text := f.never_back)), "") if drift else "",
        ),
        sweep=SummarySweep(
            at_rest=is_at_rest(record),
            unfinished=is_unfinished(record),
            digest=observed.verified.digest if observed.verified else "",
            life=record.azure.life,
            recreated=record.recreated or record.started_again,
            found=bool(found_of(record)),
            exempt_until=observed.loss.expires if observed.loss and is_exempt(record) else "",
            unnamed_since=unnamed_since(record),
        ),
        times=_times_of(record),
        trial=record.divergence.trial,
        warned=min((end.warned for end in ends), default=None),
        schedule=SummarySchedule(_asleep_until(record), record.sleeps_in_pools, pull.number if pull else 0),
        cause=_cause_of(record),
    )


def since_of(record: ClusterRecord) -> datetime:
    """Return since when a job is at its step, or has ended."""
    return record.job.step.since if record.job.active else record.updated


def _cause_of(record: ClusterRecord) -> SummaryCause:
    failure = record.job.step.failure
    required = cut(record.job.next_run.action_required, REASON_LIMIT) if record.needs_action else ""
    if failure is None or not _has_own_failure(record):
        return SummaryCause(action_required=required)
    return SummaryCause(failure.kind, failure.entry, required)


def _asleep_until(record: ClusterRecord) -> datetime | None:
    sleep = record.document["spec"].get("sleep") or {}
    waits = record.phase is Phase.SLEEPING and sleep.get("changes", "wait") == "wait"
    return record.job.next_run.at if waits else None


def _ends_of(record: ClusterRecord) -> tuple[SummaryEnd, ...]:
    """Return what of a cluster leaves support, and its certificates, as the last check saw them."""
    observed = record.observation
    support = support_ends(record.document["spec"], running=record.running.kubernetes_version)
    certificates = observed.inside.certificates if observed.inside else ()
    return (
        *(SummaryEnd(what, on, _before(on, AHEAD)) for what, on in support.items()),
        *(
            SummaryEnd(f"certificate of the {certificate.of}", on, _before(on, SOON))
            for certificate in certificates
            for on in [certificate.ends.date()]
        ),
    )


def _before(day: date, span: timedelta) -> date:
    return date.fromordinal(max(1, day.toordinal() - span.days))


def _systems_of(record: ClusterRecord) -> tuple[SystemSummary, ...]:
    inside = record.observation.inside
    found = [workload.namespace for part in (inside.parts if inside else ()) for workload in part.unhealthy]
    return tuple(
        SystemSummary(
            system["name"],
            tuple(system["owners"]),
            tuple(system["namespaces"]),
            sum(namespace in system["namespaces"] for namespace in found),
            inside.systems.get(system["name"]) if inside else None,
        )
        for system in systems_in(record.document)
    )


def _policies_of(drift: Drift) -> Mapping[str, int]:
    """Return how many fields there are of each policy, without what there is none of."""
    return +Counter(
        {MORE: drift.more, **Counter(drifted_field.action.value for drifted_field in drift.fields)}
    )


def _times_of(record: ClusterRecord) -> SummaryTimes:
    ready, failure, took = record.condition(READY), record.job.step.failure, 0
    ready_since = ready.since if ready is not None and ready.status else None
    failed_since = failure.since if failure is not None and (record.failed or record.refused) else None
    changed = record.observed_generation == record.generation and not record.divergence.corrections
    if ready_since and changed and not record.job.active:  # after a correction, the last job is that
        took = max(0, int((ready_since - record.job.started).total_seconds()))
    unhealthy_since = min((fault.since for fault in faults_of(record)), default=None)
    return SummaryTimes(since_of(record), ready_since, failed_since, unhealthy_since, took)


def _differs_since(record: ClusterRecord) -> datetime | None:
    in_sync = record.condition(IN_SYNC)
    ready = record.phase is Phase.READY and not record.job.active
    return (
        in_sync.since if ready and record.divergence.drift and in_sync and in_sync.status is False else None
    )
