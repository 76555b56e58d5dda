"""What is measured: the metrics, the spans of a commit's trace, and what a job adds to them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from shared.cluster.findings.conditions import IN_SYNC, STALLED
from shared.cluster.findings.health import HealthCondition
from shared.cluster.history import Gaps
from shared.cluster.job import JobQueue
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Retry
from shared.cluster.queues.continuations import Continuation
from shared.cluster.record import READY, ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import DELETED, RELEASED
from shared.cluster.reporting.summary import MORE, ClusterSummary
from shared.frozen import dataclass, field
from shared.language.model.cluster.drift import DriftAction

PLANNED, SUPERSEDED = "planned", "superseded"
"""The results of a plan that is no failure; another planner was faster than a superseded one."""


class MetricKind(StrEnum):
    """How the values of a metric add up, as OpenTelemetry names it."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Metric:
    """A metric: its name, kind, unit (UCUM), what it says, and the names of its attributes."""

    name: str
    kind: MetricKind
    unit: str
    description: str
    attributes: tuple[str, ...] = ()


JOB_DURATION = Metric(
    "roadstead.job.duration",
    MetricKind.HISTOGRAM,
    "s",
    "time from the start of a job to its end; of one that ends Ready, the time to Ready",
    ("recipe", "result"),
)
STEP_DURATION = Metric(
    "roadstead.step.duration",
    MetricKind.HISTOGRAM,
    "s",
    "time from the start of a step to its end, with all its waits",
    ("step",),
)
RETRIES = Metric(
    "roadstead.retries",
    MetricKind.COUNTER,
    "{retry}",
    "failed attempts of steps, sweeps and checks that are retried, by class of error; Throttled is a 429",
    ("error", "step"),
)
RATE_LIMITED = Metric(
    "roadstead.rate_limit.waits",
    MetricKind.COUNTER,
    "{wait}",
    "runs of a step, sweep or check that ended with a reservation: Azure's limit has no token left",
    ("step",),
)
FAILURES = Metric(
    "roadstead.failures",
    MetricKind.COUNTER,
    "{failure}",
    "jobs that failed, and wait for a commit or an operator, by class of error",
    ("error", "step"),
)
PLANS = Metric(
    "roadstead.plan.duration",
    MetricKind.HISTOGRAM,
    "s",
    "time from a plan's start to the end of a part of its hand-over, or to the error that ended it",
    ("result",),
)
QUEUE_DELAY = Metric(
    "roadstead.queue.delay",
    MetricKind.HISTOGRAM,
    "s",
    "time that a message waited in its queue after it was due",
    ("queue",),
)
WEBHOOKS = Metric(
    "roadstead.webhooks",
    MetricKind.COUNTER,
    "{delivery}",
    "deliveries to the webhook: queued, ignored, refused, or unsigned: their signature is wrong or missing",
    ("result",),
)
DEAD_LETTERS = Metric(
    "roadstead.dead_letters",
    MetricKind.COUNTER,
    "{message}",
    "messages that a queue gave up",
    ("queue",),
)
WAITING_MESSAGES = Metric(
    "roadstead.waiting_messages",
    MetricKind.COUNTER,
    "{message}",
    "deliveries of messages that wait for a newer version of the app, or for a record that can be read",
    ("queue",),
)
AZURE_EVENTS = Metric(
    "roadstead.azure_events",
    MetricKind.COUNTER,
    "{event}",
    "events of Azure: taken, own writes of the app, elsewhere, old, unreadable, failed, or missed by a sweep",
    ("result",),
)
CLUSTERS = Metric(
    "roadstead.clusters",
    MetricKind.GAUGE,
    "{cluster}",
    "clusters of the fleet, by phase",
    ("phase",),
)
CONDITIONS = Metric(
    "roadstead.conditions",
    MetricKind.GAUGE,
    "{cluster}",
    "clusters of the fleet, by each condition of the whole cluster and its status",
    ("condition", "status"),
)
DRIFT = Metric(
    "roadstead.drift",
    MetricKind.GAUGE,
    "{field}",
    "fields in which clusters differ from git, by what the policy does with them",
    ("policy",),
)
GAPS = Metric(
    "roadstead.repaired_gaps",
    MetricKind.GAUGE,
    "{gap}",
    "heads that were found before a webhook had them planned, since the fleet was planned first",
)
END_AGE = Metric(
    "roadstead.end.age",
    MetricKind.GAUGE,
    "s",
    "time since a sweep, or a part of a check, or a request to plan, came to its end",
    ("work",),
)
QUEUE_AGE = Metric(
    "roadstead.queue.age",
    MetricKind.GAUGE,
    "s",
    "time since the oldest continuation of a job was due that no worker has taken",
    ("queue",),
)
METRICS = (
    CLUSTERS,
    CONDITIONS,
    DRIFT,
    GAPS,
    END_AGE,
    QUEUE_AGE,
    JOB_DURATION,
    STEP_DURATION,
    RETRIES,
    RATE_LIMITED,
    FAILURES,
    PLANS,
    QUEUE_DELAY,
    WEBHOOKS,
    DEAD_LETTERS,
    WAITING_MESSAGES,
    AZURE_EVENTS,
)
"""Every metric, as docs/telemetry.md lists them."""


@dataclass(frozen=True)
class Measurement:
    """A value of a metric, with a value for each of its attributes."""

    metric: Metric
    value: float
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """Work that has ended, in the trace of a commit; ``failed`` is the class of an error, "" for none."""

    name: str
    commit: str
    started: datetime
    ended: datetime
    attributes: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""


def of_outcome(before: ClusterRecord, after: ClusterRecord, outcome: Outcome) -> Iterator[Measurement | Span]:
    """Yield what a step's outcome adds: its retry or failure, the end of the step, and the end of the job."""
    step, ended = before.job.step, after.updated
    error = outcome.error.kind if isinstance(outcome, Retry | Fail) else ""
    if error:
        metric = RETRIES if after.job.active else FAILURES
        yield Measurement(metric, 1, {"error": error, "step": step.name})
    if isinstance(outcome, Done | GoToStep) or not after.job.active:
        yield Measurement(STEP_DURATION, (ended - step.since).total_seconds(), {"step": step.name})
        yield Span(step.name, before.commit, step.since, ended, _names(before), error)
    if not after.job.active:
        recipe = before.job.recipe
        result = (
            (RELEASED if before.desired.is_attached else DELETED)
            if before.deleting and not error
            else after.phase
        )
        duration = (ended - before.job.started).total_seconds()
        yield Measurement(JOB_DURATION, duration, {"recipe": recipe, "result": result})
        yield Span(f"{recipe} {before.name}", before.commit, before.job.started, ended, _names(before), error)


def of_read(work: str, error: str) -> Iterator[Measurement]:
    """Yield that a sweep or a check could not read something of Azure, by class of error."""
    yield Measurement(RETRIES, 1, {"error": error, "step": work})


def of_reservation(step: str) -> Iterator[Measurement]:
    """Yield that a step, a sweep or a check waits for a token of Azure's limits."""
    yield Measurement(RATE_LIMITED, 1, {"step": step})


def of_plan(commit: str, began: datetime, ended: datetime, result: str) -> Iterator[Measurement | Span]:
    """Yield what a plan of a commit adds; ``result`` is PLANNED, SUPERSEDED or the class of an error."""
    seconds = (ended - began).total_seconds()
    yield Measurement(PLANS, seconds, {"result": result})
    yield Span("plan", commit, began, ended, failed="" if result in (PLANNED, SUPERSEDED) else result)


def of_fleet(summaries: Sequence[ClusterSummary], gaps: Gaps) -> Iterator[Measurement]:
    """Yield how many clusters are in each phase, and so on, from summaries with details."""
    phases = Counter(summary.shown_phase for summary in summaries)
    for phase in Phase:
        yield Measurement(CLUSTERS, phases[phase], {"phase": phase})
    details = [summary.details for summary in summaries]
    statuses = Counter(item for detail in details for item in detail.conditions.items())
    for kind in (READY, IN_SYNC, *HealthCondition, STALLED):
        for status, name in ((True, "True"), (False, "False"), (None, "Unknown")):
            yield Measurement(CONDITIONS, statuses[kind, status], {"condition": kind, "status": name})
    for action in (*(action for action in DriftAction if action is not DriftAction.IGNORE), MORE):
        fields = sum(detail.drift.get(action, 0) for detail in details)
        yield Measurement(DRIFT, fields, {"policy": action})
    yield Measurement(GAPS, gaps.count)


def of_ends(ends: Mapping[str, datetime], now: datetime) -> Iterator[Measurement]:
    """Yield how long ago each kind of work came to its end; ``ends`` has the last end of each by its name."""
    for work, at in ends.items():
        yield Measurement(END_AGE, max(0.0, (now - at).total_seconds()), {"work": work})


def of_queues(continuations: Iterable[Continuation], now: datetime) -> Iterator[Measurement]:
    """Yield how long the oldest continuation of a job waits in each queue, 0 for none."""
    waited = dict.fromkeys(JobQueue, 0.0)
    for continuation in continuations:
        waited[continuation.queue] = max(
            waited[continuation.queue], (now - continuation.due(now)).total_seconds()
        )
    for queue, seconds in waited.items():
        yield Measurement(QUEUE_AGE, seconds, {"queue": queue})


def _names(record: ClusterRecord) -> Mapping[str, str]:
    return {"cluster": record.name, "generation": str(record.generation)}
