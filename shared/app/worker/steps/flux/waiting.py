"""The wait for what Flux has not reconciled: one, for the likeliest cause, with its commits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from shared.app.access.context import StepContext
from shared.app.followed import host_of
from shared.app.worker.steps.flux.live_pin import as_live
from shared.cluster.failures.advice import after_failure
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.health import corrects_flux
from shared.cluster.outcomes import Outcome, Restart, Wait
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.kubernetes.flux_objects import NAMESPACE
from shared.kubernetes.flux_readiness import (
    WAITS_FOR_ANOTHER,
    Attempt,
    FluxFailure,
    Progressing,
    Readiness,
    Ready,
    Suspended,
    commit_of,
    pulled_in,
)
from shared.language.pin import short_commit
from shared.platform.followed import is_artifact
from shared.ports import FleetConfig, Ports
from shared.ports.git_host import BranchCommit
from shared.resource_ids import ObjectRef

FIRST_LOOK = 3.0
"""Seconds until a step first reads Flux again: Flux applies a small change in less than a poll."""


def until_next_look(context: StepContext) -> float:
    """Return the seconds until Flux is looked at again: as many as the step has waited, at most a poll."""
    waited = context.ports.clock() - context.job.step.since
    return min(context.ports.config.timing.poll_seconds, max(FIRST_LOOK, waited.total_seconds()))


# Whether Flux has fetched, or applied, the commit of the job, or one that follows it.


def older_commit(context: StepContext, revision: str) -> Wait | None:
    """Return the wait for the commit of the job, None when Flux fetched it, or one that follows it.

    Of a pinned cluster that is the commit of its pin, and no other one. Otherwise commits are compared where
    Flux pulls the tracked branch of the fleet repository itself. Of any other source no commit was requested,
    so what Flux fetched after the request counts. A commit follows the one of the job if git says so, or if
    it is the head that the planner planned last: after a forced push it need not be a descendant.
    """
    pin = context.desired.pin
    known = pin or pulls_the_fleet(context.record, context.ports.config)
    if not known or follows(context, revision):
        return None
    wanted = pin.commit if pin else context.record.commit
    lacks = "is not" if pin else "does not contain"
    short = short_commit(wanted)
    reason = f"Flux: the source is at {revision or 'no revision'}, which {lacks} commit {short}"
    return Wait(until_next_look(context), reason)


def follows(context: StepContext, revision: str) -> bool:
    """Return whether a revision is the commit that Flux is to pull, or one of the fleet that follows it.

    Where commits come faster than Flux applies them, it never has applied what it fetched last. A pinned
    cluster pulls the commit of its pin, or the one that it is ahead at.
    """
    wanted, pin = context.record.commit, context.desired.pin
    commit = pulled_in(revision, pin.commit if pin else "")
    if pin is not None:
        followed = as_live(context, commit).pin
        return followed is not None and commit == followed.commit
    if not commit or not pulls_the_fleet(context.record, context.ports.config):
        return False
    if commit == wanted:
        return True
    fleet = context.ports.state.fleet()
    newest = commit == (fleet.planning or fleet.commit)
    return newest or context.ports.git_host.is_descendant(commit, wanted)


def pulls_the_fleet(record: ClusterRecord, config: FleetConfig) -> bool:
    """Return whether Flux pulls the fleet repository: its tracked branch, or a commit of that."""
    return config.source.serves(record.document["spec"]["flux"])


# Which commits may be why Flux cannot apply a path of the fleet: those after what it applied last.

log = logging.getLogger(__name__)

MOST = 30
"""How many commits of a path are read; their order is that of their dates, and not of their being merged."""
NAMED = 3
"""How many commits a message names."""


def commits_behind(attempt: Attempt, record: ClusterRecord, ports: Ports) -> str:
    """Return, in parentheses, the commits that may be why Flux fails, and who wrote them.

    Commits elsewhere are not named, nor those that Flux has applied. Of a pinned cluster any commit counts:
    what a folder reaches may be anywhere. That takes two calls to git; where it gives no answer, and where
    Flux follows another repository by itself, the text names the commit alone that Flux tried. "" where Flux
    did not try a commit.
    """
    tried, applied = commit_of(attempt.revision), commit_of(attempt.applied)
    if not tried:
        return ""
    text = f"Flux tried commit {tried[:8]}"
    pin = record.desired.pin
    if (pin and not is_artifact(pin.source)) or pulls_the_fleet(record, ports.config):
        path, host = "" if pin else attempt.path.removeprefix("./").strip("/"), host_of(pin, ports)
        try:
            changes = host.changes(tried, path, MOST)
            before = host.changes(applied, path, MOST) if applied and changes else ()
        except ReconcileError as error:
            log.info("who changed %s is not known: %s: %s", attempt.path, error.kind, error)
        else:
            place = "the repository" if pin else f"./{path}"
            text += described(changes, before, applied, place)
    return f" ({text})"


def described(
    changes: Sequence[BranchCommit], before: Sequence[BranchCommit], applied: str, place: str
) -> str:
    """Return what ``changes`` of a place, newest first, add to what the commit ``applied`` had ``before``.

    Without one that was applied, any change may be the cause, and only the newest is known to be tried.
    """
    if not applied:
        return f"; {place} was changed last by {_named(changes[0])}" if changes else ""
    known = {change.commit for change in before}
    since = [change for change in changes if change.commit not in known]
    text = f" and applied {applied[:8]} last"
    if not since:
        return f"{text}; nothing in {place} itself has changed since"
    if len(since) == 1:
        return f"{text}; since then {_named(since[0])} has changed {place}"
    named = ", ".join(map(_named, since[:NAMED]))
    count = f"{len(since)}" if len(since) < MOST else f"at least {MOST}"
    more = ", ..." if len(since) > NAMED else ""
    text += f"; since then {count} commits have changed {place}, and any may be the cause"
    return f"{text}; newest first: {named}{more}"


def _named(change: BranchCommit) -> str:
    return f"{change.commit[:8]} by {change.author}" if change.author else change.commit[:8]


_OF_EXTENSION = "A commit that changes the cluster then gives it to its Flux extension."
"""Azure shows no credentials, so that no step sees that there are others."""


@dataclass(frozen=True)
class FluxProgress:
    """An object of Flux and how far it is; a state of None: it no longer exists.

    ``place`` is the field of the manifest that asks for it, "" for what Flux itself applied; ``resume`` the
    command that ends its suspension.
    """

    ref: ObjectRef
    state: Readiness | None
    place: str
    resume: str


def first_wait(context: StepContext, seen: Iterable[FluxProgress], seconds: float) -> Outcome | None:
    """Return the wait for the likeliest cause among what is not reconciled, None when everything is.

    What waits for others comes last. ``seconds`` is the time until the next read where nobody has to act.
    """
    waiting = [report for report in seen if not isinstance(report.state, Ready)]
    if not waiting:
        return None
    more = len(waiting) - 1
    wait = "object of Flux waits" if more == 1 else "objects of Flux wait"
    others = f" ({more} more {wait})" if more else ""
    return _wait(context, min(waiting, key=_rank), seconds, others)


def _rank(seen: FluxProgress) -> int:
    if isinstance(seen.state, FluxFailure):
        return 2 if seen.state.reason == WAITS_FOR_ANOTHER else 0
    return 1 if isinstance(seen.state, Progressing) else 0


def _wait(context: StepContext, first: FluxProgress, seconds: float, others: str) -> Outcome:
    ref = first.ref
    name = f"Flux: {ref.kind} {'' if ref.namespace == NAMESPACE else f'{ref.namespace}/'}{ref.name}"
    match first.state:
        case None:
            return Restart(f"the {ref} no longer exists in the cluster")
        case Suspended() if corrects_flux(context.record):
            return Restart(f"somebody suspended the {ref}, and the policy resumes it")
        case Suspended():
            reason, required = f"{name}: somebody suspended it{others}", f"`{first.resume}` resumes it."
            return Wait.for_person(reason, required)
        case FluxFailure(reason, message) as failed:
            required = after_failure(failed, first.place, ref.kind)
            if context.desired.has_extension and "FLUX_GIT_PASSWORD" in required:
                required = f"{required} {_OF_EXTENSION}"
            behind = commits_behind(failed.attempt, context.record, context.ports)
            return Wait(seconds, f"{name}: {reason}: {message}{behind}{others}", action_required=required)
        case Progressing(message):
            return Wait(seconds, f"{name}: {message}{others}")
        case Ready():
            raise AssertionError("a Ready object is not waited for")
