"""Why a cluster is as it is: what it does or waits for, what was tried, what comes next, what to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.jobs.advice import advice_for
from shared.jobs.recipes import STEPS, deadline
from shared.jobs.retry import DEFAULTS, Policies
from shared.jobs.row import ClusterRow, Failure, Phase

LATE = timedelta(seconds=60)
"""How long after its time a job's message is called late."""


@dataclass(frozen=True)
class Why:
    """Sentences for a person; ``next_at`` is when Roadstead acts by itself, None when it does not."""

    doing: str
    since: datetime
    attempts: int
    failure: Failure | None
    next: str
    next_at: datetime | None
    person: str


def why(row: ClusterRow, *, now: datetime, retries: Policies = DEFAULTS) -> Why:
    """Explain a row as it is at a time."""
    if row.job.active:
        return _active(row, now, retries)
    if row.failed:
        return _failed(row)
    doing = f"nothing: generation {row.observed_generation} was verified Ready"
    return Why(doing, row.updated, 0, None, "the next commit that changes the cluster", None, "")


def _active(row: ClusterRow, now: datetime, retries: Policies) -> Why:
    job = row.job
    where = _where(row)
    attempts, failure = job.attempts, job.failure
    if job.claim is not None and job.claim.until > now:
        doing, following, at = f"runs {where} now", "what the step finds", job.claim.until
    elif failure is not None:
        limit = _limit(failure, retries)
        doing = f"tries {where} again after {failure.kind}: {failure.message}"
        following, at = f"attempt {attempts + 1}{limit}", job.next_at
    elif job.reason:
        doing, following, at = f"waits in {where}: {job.reason}", "looks again", job.next_at
    else:
        doing, following, at = f"is about to run {where}", "runs the step", job.next_at
    if at + LATE < now:
        following = "its message is late; the timer sends it again"
    advice = advice_for(failure.kind) if failure else None
    person = advice.person if advice else _while_waiting(row)
    return Why(doing, job.step_since, attempts, failure, following, at, _named(person, row))


def _failed(row: ClusterRow) -> Why:
    failure = row.job.failure
    doing = f"gave up {_where(row)}: {row.job.reason}"
    any_commit = row.given_up
    by_commit = "the next commit, whatever it changes" if any_commit else "a commit that changes the cluster"
    advice = advice_for(failure.kind) if failure else None
    person = advice.person if advice else "`roadstead replay NAME` tries again."
    since = failure.since if failure else row.updated
    following = f"nothing by itself; {by_commit}, or a replay begins the job anew"
    return Why(doing, since, row.job.attempts, failure, following, None, _named(person, row))


def _where(row: ClusterRow) -> str:
    """Name the step and its place, as "the step cluster (2 of 7 of provision)"."""
    steps = STEPS[row.job.recipe]
    step = row.job.step
    return f"the step {step.value} ({steps.index(step) + 1} of {len(steps)} of {row.job.recipe.value})"


def _limit(failure: Failure, retries: Policies) -> str:
    limits = {kind.__name__: policy.attempts for kind, policy in retries.items()}
    limit = limits.get(failure.kind)
    return f" of {limit}" if limit is not None else ""


def _while_waiting(row: ClusterRow) -> str:
    if row.phase is Phase.STALLED:
        late = f"This step takes more than its {deadline(row.job.step) / 60:g} minutes."
        return f"{row.job.person or 'See what holds it up.'} {late}"
    return row.job.person or "Nothing; it goes on by itself."


def _named(words: str, row: ClusterRow) -> str:
    return words.replace("NAME", row.name)
