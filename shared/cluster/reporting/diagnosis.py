"""Why a cluster is in its state, and what the newest plan does to it: what comes next, what to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.cluster.failures.fleet_problem import FleetProblem
from shared.cluster.failures.remedies import NO_ACTION
from shared.cluster.failures.retry import DEFAULTS, Policies
from shared.cluster.findings.conditions import STALLED
from shared.cluster.record import READY, ClusterRecord
from shared.cluster.reporting.events import RELEASED
from shared.cluster.reporting.job_diagnosis import NEXT_COMMIT, Diagnosis, diagnose_job
from shared.cluster.review_check import ReviewCheck
from shared.frozen import dataclass, field, replace
from shared.plan.plan import Item
from shared.sentences import moment

_PASSES = "its stage passes with the commit that the cluster has"
_STARTS = "the planner starts it by itself then"
_DELETES = "the planner starts the {} by itself once that is so"
CORRECT_FILE = "Correct the file: `roadstead validate` reports every problem with its place."


@dataclass(frozen=True)
class NewestPlan:
    """The commit that was planned last, and its item for the cluster, None for none.

    ``problem`` prevents later commits from being planned, None for no problem. ``review`` is what the reviews
    say about the deletes that need approval, None if they were not read. ``successors`` has the
    record of each cluster for which the delete of this one waits, None for one that has none yet.
    """

    commit: str = ""
    item: Item | None = None
    problem: FleetProblem | None = None
    review: ReviewCheck | None = None
    successors: Mapping[str, ClusterRecord | None] = field(default_factory=dict)

    @property
    def lags(self) -> bool:
        """Whether the stage of the cluster has an earlier commit of the platform, which it has as well."""
        return self.item is not None and self.item.lags and not self.item.acts

    @property
    def stopped(self) -> Item | None:
        """The item, if the plan does not carry it out until something has ended, or an operator acts."""
        item = self.item
        waits = item is not None and (item.waits_for_time or item.awaits_replacement)
        return item if item is not None and (item.needs_action or waits) else None


def diagnose(
    record: ClusterRecord,
    newest: NewestPlan = NewestPlan(),  # noqa: B008  # frozen
    *,
    now: datetime,
    retries: Policies = DEFAULTS,
) -> Diagnosis:
    """Explain a record as it is at a time."""
    diagnosis = diagnose_job(record, now, retries)
    if record.trial:
        diagnosis = replace(diagnosis, activity=f"{record.trial}; it {diagnosis.activity}")
    stopped = newest.stopped
    if stopped and not record.job.active:
        activity = f"{diagnosis.activity}; {_not_carried_out(stopped, newest.commit)}"
        diagnosis = replace(diagnosis, activity=activity)
        if stopped.hold is not None and stopped.hold.has_an_end:
            diagnosis = replace(diagnosis, next=_STARTS, next_at=stopped.hold.until)
        if stopped.awaits_replacement:
            told = "; ".join(_stands(name, record) for name, record in newest.successors.items())
            activity = "; ".join(filter(None, (activity, told)))
            diagnosis = replace(
                diagnosis, activity=activity, next=_DELETES.format(stopped.removal), next_at=None
            )
    elif newest.lags and not record.job.active:
        activity = f"{diagnosis.activity}; gets what commit {newest.commit[:8]} changes of Flux later"
        diagnosis = replace(diagnosis, activity=activity, next=_PASSES)
    actions = [
        diagnosis.suggested_action,
        _release(stopped, newest) if stopped else "",
        newest.problem.suggested_action if newest.problem else "",
    ]
    nothing = NO_ACTION if record.job.active else ""
    return replace(diagnosis, suggested_action=" ".join(filter(None, actions)) or nothing)


def diagnose_absent(newest: NewestPlan, since: datetime) -> Diagnosis | None:
    """Explain a cluster without a record; None when the newest plan does not stop it."""
    if newest.stopped is None:
        return None
    activity = f"does not exist, and commit {newest.commit[:8]} does not create it"
    action, hold = _release(newest.stopped, newest), newest.stopped.hold
    if newest.stopped.waits_for_time and hold is not None:
        activity = f"does not exist: {_not_carried_out(newest.stopped, newest.commit)}"
        return Diagnosis(activity, hold.since or since, 0, None, _STARTS, hold.until, action)
    held = hold.since if hold is not None else None
    return Diagnosis(activity, held or since, 0, None, NEXT_COMMIT, None, action)


def diagnose_deleted(reason: str, message: str, since: datetime) -> Diagnosis:
    """Explain a cluster that is no longer recorded, by its last event."""
    gone = "is no longer of this fleet" if reason == RELEASED else "no longer exists"
    activity = f"{gone} ({reason}: {message})"
    return Diagnosis(activity, since, 0, None, "a commit that adds it again", None, "")


def _not_carried_out(item: Item, commit: str) -> str:
    if item.retained:
        waits = "needs approval" if item.needs_approval else "is on hold"
        cause = item.hold.cause if item.hold else ""
        return f"what commit {commit[:8]} takes from {', '.join(item.retained)} {waits}: {cause}"
    if item.keeps_pin and item.hold is not None:
        waits = "needs approval" if item.needs_approval else "is refused"
        return f"what commit {commit[:8]} changes of Flux {waits}: {item.hold.cause}"
    if item.keeps_version and item.hold is not None:
        return f"{item.hold.cause}, by commit {commit[:8]}"
    if (item.waits_for_time or item.awaits_replacement) and item.hold is not None:
        return f"{item.hold.cause}, by commit {commit[:8]}"
    if item.needs_approval:
        return f"the {item.removal} of commit {commit[:8]} needs approval"
    return f"commit {commit[:8]} is {item.outcome} for this cluster"


def _stands(name: str, record: ClusterRecord | None) -> str:
    """Return how far a cluster is for which a delete waits."""
    if record is None:
        return f"{name} does not exist yet"
    shown = (record.condition(READY), record.condition(STALLED))  # Stalled is that of a failed one, too
    since = next(
        (condition.since for condition in shown if condition is not None and condition.status),
        record.job.started,
    )
    reason = f": {record.job.reason}" if record.job.reason else ""
    return f"{name} is {record.phase.value} since {moment(since)}{reason}"


def _release(item: Item, newest: NewestPlan) -> str:
    """Return what an operator can do about an item that a plan does not carry out."""
    remedy = item.hold.remedy(f"`roadstead approve {newest.commit[:8]}`") if item.hold else ""
    if not remedy:
        return CORRECT_FILE
    sentences = [remedy, str(newest.review)] if item.needs_approval and newest.review else [remedy]
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)
