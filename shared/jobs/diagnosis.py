"""Why a cluster is as it is: what it does or waits for, what was tried, what comes next, what to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.fleet.planning.plan import Action, Item
from shared.jobs.errors import Throttled
from shared.jobs.recipes import STEPS, Step, deadline
from shared.jobs.record import ClusterRecord, Failure, Phase
from shared.jobs.remedies import suggested_action
from shared.jobs.retry import DEFAULTS, Policies

LATE = timedelta(seconds=60)
"""How long after its time a job's message is called late."""
_NOTHING = "Nothing; it goes on by itself."
_NEXT_COMMIT = "the next commit that changes the cluster"
_AZURE = "The activity log of the resource group in Azure tells what holds the operation up."
_FLUX = "`kubectl -n flux-system get pods,gitrepositories,kustomizations` shows what holds Flux up."
_NODES = "`kubectl get nodes`, and the activity log of the resource group in Azure, tell what holds it up."
_PLANS = "`roadstead plans`, and the activity log of the resource group in Azure, tell what holds it up."
_LOOK_AT = {
    Step.RESOURCE_GROUP: _PLANS,
    Step.NODE_POOLS: _NODES,
    Step.FLUX_COMPONENTS: _FLUX,
    Step.FLUX_SYNC: _FLUX,
    Step.VERIFY: _FLUX,
}
"""What a person looks at when a step waits too long; Azure's activity log in all others."""
UNREAD = "the repository could not be read"
"""How the problem of a fleet begins whose repository does not answer; the error follows."""
_AGAIN = "The timer plans again, if nothing does before; until then no newer commit is carried out."
_LOGS = "If it stays, find the error in the logs of the functions."
_CORRECT = "Correct the manifest: `roadstead validate` tells every mistake with its place."


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


@dataclass(frozen=True)
class Newest:
    """The commit that was planned last, and what it does to the cluster; None for nothing.

    ``problem`` is what keeps later commits from being planned, "" for nothing.
    """

    commit: str = ""
    item: Item | None = None
    problem: str = ""

    @property
    def stops(self) -> Item | None:
        """The cluster's part of that commit, if it is not carried out until a person does something."""
        stopped = (Action.INVALID, Action.REFUSED, Action.HELD)
        item = self.item
        return item if item and item.action in stopped and not item.awaits_deletion else None


def why(
    record: ClusterRecord, newest: Newest = Newest(), *, now: datetime, retries: Policies = DEFAULTS
) -> Why:
    """Explain a row as it is at a time."""
    found = _of_job(record, now, retries)
    if newest.stops and not record.job.active:
        here = f"commit {newest.commit[:8]} changes nothing here"
        found = replace(found, doing=f"{found.doing}; {here}")
    ways_out = [_way_out(newest.stops, newest.commit)] if newest.stops else []
    if newest.problem:
        ways_out.append(of_fleet(newest.problem))
    if not ways_out:
        return found
    own = [] if found.person in ("", _NOTHING) else [found.person]
    return replace(found, person=" ".join([*own, *ways_out]))


def of_fleet(problem: str) -> str:
    """Say what a person can do about the problem of a fleet."""
    kind = problem.removeprefix(f"{UNREAD}: ").partition(": ")[0]
    return f"{_AGAIN} {suggested_action(kind, failed=False) or _LOGS}"


def why_not_made(newest: Newest, since: datetime) -> Why | None:
    """Explain a cluster that only the newest plan knows; None when it does not stop that cluster."""
    if newest.stops is None:
        return None
    doing = f"nothing: there is no such cluster, and commit {newest.commit[:8]} makes none"
    return Why(doing, since, 0, None, _NEXT_COMMIT, None, _way_out(newest.stops, newest.commit))


def _way_out(item: Item, commit: str) -> str:
    """Say what a person can do about what a plan does not do: reasons end with it."""
    if item.action is Action.INVALID:
        return _CORRECT
    _, said, way_out = item.reason.rpartition("; ")
    if not said:  # fleet.yaml cannot be used
        return _CORRECT
    command = f"`roadstead approve {commit[:8]}`"
    words = way_out.replace("roadstead approve", command)
    return f"{words[0].upper()}{words[1:]}."


def _of_job(record: ClusterRecord, now: datetime, retries: Policies) -> Why:
    if record.job.active:
        return _active(record, now, retries)
    if record.failed:
        return _failed(record)
    doing = f"nothing: generation {record.observed_generation} was verified Ready"
    return Why(doing, record.updated, 0, None, _NEXT_COMMIT, None, "")


def _active(record: ClusterRecord, now: datetime, retries: Policies) -> Why:
    job = record.job
    where = _where(record)
    attempts, failure = job.attempts, job.failure
    if job.lease is not None and job.lease.until > now:
        following = "what the step finds; if its worker dies, another one runs it"
        doing, at = f"runs {where} now", job.lease.until
    elif job.reserved:
        doing, following, at = f"{job.reason}, in {where}", "takes its turn", job.next_at
    elif failure is not None:
        limit = _limit(failure, retries)
        doing = f"tries {where} again after {failure.kind}: {failure.message}"
        following, at = f"attempt {attempts + 1}{limit}", job.next_at
    elif job.reason:
        doing, following, at = f"waits in {where}: {job.reason}", "looks again", job.next_at
    else:
        doing, following, at = f"is about to run {where}", "runs the step", job.next_at
    late = at + LATE < now
    if late:
        following = "its message is late; the timer sends it again in a few minutes"
    kind = Throttled.__name__ if job.reserved else failure.kind if failure else ""
    person = suggested_action(kind, failed=False, deleting=record.deleting) or _while_waiting(record)
    due = None if late else at
    return Why(doing, job.step_since, attempts, failure, following, due, _named(person, record))


def _failed(record: ClusterRecord) -> Why:
    failure = record.job.failure
    doing = f"gave up {_where(record)}: {record.job.reason}"
    any_commit = record.retryable_failure
    by_commit = "the next commit, whatever it changes" if any_commit else "a commit that changes the cluster"
    person = suggested_action(failure.kind if failure else "", failed=True, deleting=record.deleting)
    since = failure.since if failure else record.updated
    following = f"nothing by itself; {by_commit}, or a replay begins the job anew"
    return Why(doing, since, record.job.attempts, failure, following, None, _named(person, record))


def _where(record: ClusterRecord) -> str:
    """Name the step and its place, as "the step cluster (2 of 7 of provision)"."""
    steps = STEPS[record.job.recipe]
    step = record.job.step
    return f"the step {step.value} ({steps.index(step) + 1} of {len(steps)} of {record.job.recipe.value})"


def _limit(failure: Failure, retries: Policies) -> str:
    limits = {kind.__name__: policy.attempts for kind, policy in retries.items()}
    limit = limits.get(failure.kind)
    return f" of {limit}" if limit is not None else ""


def _while_waiting(record: ClusterRecord) -> str:
    if record.phase is Phase.STALLED:
        late = f"This step takes more than its {deadline(record.job.step) / 60:g} minutes."
        return f"{record.job.person or _LOOK_AT.get(record.job.step, _AZURE)} {late}"
    return record.job.person or _NOTHING


def _named(words: str, record: ClusterRecord) -> str:
    return words.replace("NAME", record.name)
