"""What operators do to a rollout: they pause, resume, override or abort it, or approve a part, or skip one.

Only the planner writes rollouts, so an act travels in a request, and the planner checks it again.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, receipt
from shared.app.api.acts.approval import why_not_author
from shared.app.api.views.rollouts import shown
from shared.app.http_result import meant
from shared.app.outbox import send
from shared.cluster.failures.errors import Dependency, ReconcileError
from shared.cluster.queues.message_parts import RolloutAct
from shared.cluster.queues.messages import ActRequest
from shared.masking import cut
from shared.ports import Ports
from shared.rollouts.decide import Decision
from shared.rollouts.report import state_of
from shared.rollouts.rollout import Rollout, RolloutCalendar, RolloutState, Stage
from shared.rollouts.rollout_acts import ActKind

MAX_REASON = 500
MOST_AUTHORED = 1_000
"""The authors of so many commits are compared with who approves: ten pages of a comparison."""
_INSTEAD = "take it out of the stage until a rollout has completed"


@answers(202)
def act_on_rollout(
    commit: str,
    kind: ActKind,
    subject: str,
    by: str,
    ports: Ports,
    *,
    reason: str = "",
    addresses: frozenset[str] = frozenset(),
    roles: Collection[str] = (),
    person: bool = True,
) -> schema.Receipt:
    """Ask the planner to act on a rollout; ``subject`` is the stage or the cluster, "" for all of it.

    ``addresses`` are those of the person who acts, for a stage that somebody else has to approve, ``roles``
    the person's, for a stage with one of its own. ``person`` is False for the holder of a key and for an app.
    """
    rollout, held = ports.state.rollout(commit), kind is ActKind.OVERRIDE and _holds_items(commit, ports)
    if rollout is None and not held:
        raise Refusal(404, f"the commit {cut(commit, 40)} has no rollout (give the full id)")
    rollout = rollout and shown(rollout, ports.state.fleet())
    at = ports.clock()
    problem = why_not(rollout, kind, subject, by, at, person=person) if rollout and not held else ""
    if problem:
        raise Refusal(409, problem)
    if rollout and kind is ActKind.APPROVE:
        _by_role(rollout, subject, roles)
        _by_author(rollout, subject, addresses, ports)
    lifts = _lifted(rollout) if rollout and kind is ActKind.RESUME else None
    act = RolloutAct(
        commit=commit,
        kind=kind.value,
        by=by,
        at=at,
        subject=subject,
        reason=reason,
        lifts=lifts,
        person=person,
    )
    send(ActRequest(act=act), ports)
    return receipt("/".join(filter(None, (commit, subject))), by)


def _holds_items(commit: str, ports: Ports) -> bool:
    """Return whether a commit is planned last, and a freeze or a window holds some of its items."""
    if ports.state.fleet().commit != commit:
        return False
    newest = ports.state.plan(commit)
    return newest is not None and any(item.waits_for_time for item in newest.plan.items)


def _can_be_overridden(stage: Stage) -> bool:
    return bool(stage.gate.after or stage.gate.not_before or stage.gate.checks)


def _lifted(rollout: Rollout) -> datetime | None:
    """Return the time of what a resume lifts: a selection that was refused first, then a pause."""
    if rollout.refused is not None:
        return rollout.refused.at
    return rollout.people.paused.at if rollout.people.paused else None


def _by_role(rollout: Rollout, stage: str, roles: Collection[str]) -> None:
    """Refuse an approval by somebody without the role of the stage."""
    wanted = {planned.gate.role for planned in rollout.stages if planned.name == stage and planned.gate.role}
    missing = sorted(wanted - {*roles})
    if missing:
        raise Refusal(403, f"stage {stage} is approved by somebody with the role {missing[0]}")


def _by_author(rollout: Rollout, stage: str, addresses: frozenset[str], ports: Ports) -> None:
    """Refuse an approval by an author of what the rollout brings.

    That is its commit and those before it that no finished rollout brought: the commit of a merge is by
    whoever merged, and what was superseded goes on in it.
    """
    if not any(planned.gate.by_others for planned in rollout.stages if planned.name == stage):
        return
    commit, since = rollout.commit, rollout.since
    try:
        own = ports.git_host.changes(commit, "", 1)
        brought = ports.git_host.changes_since(commit, since, MOST_AUTHORED) if since else ()
    except Dependency as error:  # such as a history that was rewritten
        unknown = f"the authors since {since[:8]} cannot be compared ({error})"
        raise Refusal(403, f"approvalByOthers: {unknown}: {_INSTEAD}") from error
    except ReconcileError as error:
        raise Refusal(502, f"the authors of {commit[:8]} could not be read: {error}") from error
    if brought is None:
        many = f"{commit[:8]} has more than {MOST_AUTHORED} commits after {since[:8]}"
        raise Refusal(
            403, f"approvalByOthers: {many}, and the authors of so many are not compared: {_INSTEAD}"
        )
    changes = [*own, *brought]
    known = bool(changes) and all(change.people for change in changes)
    people = frozenset().union(*(change.people for change in changes)) if known else frozenset[str]()
    what = f"a commit of {since[:8]}..{commit[:8]}" if since else f"the commit {commit[:8]}"
    problem = why_not_author(what, "approvalByOthers", addresses, people, ports.git_host)
    if problem:
        raise Refusal(403, problem)


def why_not(
    rollout: Rollout, kind: ActKind, subject: str, by: str, now: datetime, *, person: bool = True
) -> str:
    """Return why an act has no meaning for a rollout, "" when it has one."""
    if kind is ActKind.BACK and rollout.state is RolloutState.ABORTED and not rollout.people.back:
        return ""
    if rollout.state is not RolloutState.ACTIVE:
        state = state_of(rollout, Decision(rollout)).lower()
        return f"the rollout of {rollout.commit[:8]} is not under way: {state}"
    if kind is ActKind.RESUME and _lifted(rollout) is None:
        return (
            "nobody paused the rollout; a failure budget that is spent needs a fix, a replay, or a cluster "
            "that is taken out"
        )
    if kind is ActKind.APPROVE:
        stages = enumerate(rollout.stages)
        waiting = [stage.name for number, stage in stages if rollout.missing_approvals(number, now)]
        if subject not in waiting:
            known = ", ".join(waiting) or "no stage"
            verb = "do" if len(waiting) > 1 else "does"
            waits = f"an approval is of a stage that waits for one, and {known} {verb}"
            names = [stage.name for stage in rollout.stages]
            if subject in names:
                return waits
            hint = meant(subject, names) or f"; it has {', '.join(names)}"
            return f"the rollout of {rollout.commit[:8]} has no stage {subject[:63]}{hint}; {waits}"
        if rollout.approves(subject, by, now):
            return f"you have approved stage {subject}, and it waits for somebody else"
        if not person and rollout.has_people(subject, now):
            return f"a person has approved stage {subject}, and it waits for another person, not for {by}"
        closed = [stage for stage in rollout.stages if stage.name == subject and not stage.gate.takes(now)]
        if closed:
            return f"stage {subject} is approved in its hours alone: {closed[0].gate.hours_text}"
    timed = rollout.calendar != RolloutCalendar() or any(map(_can_be_overridden, rollout.stages))
    if kind is ActKind.OVERRIDE and not timed:
        return (
            "no change window, no freeze and no gate with a time or a check is in the strategy of the rollout"
        )
    if kind is ActKind.SKIP and subject not in rollout.clusters:
        hint = meant(subject, rollout.clusters)
        return f"{subject[:63]} is not in the rollout of {rollout.commit[:8]}{hint}"
    return ""
