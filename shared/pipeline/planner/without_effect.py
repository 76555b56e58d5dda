"""What the API accepted and the planner finds to have no effect any more becomes an act that says why."""

from __future__ import annotations

import logging

from shared.fleet.desired import digest_of
from shared.fleet.planning.plan import Plan
from shared.jobs.acts import Act
from shared.jobs.messages import Approval, RolloutAct
from shared.ports import Ports
from shared.ports.state.acts import newest_changes
from shared.rollouts.decide import Decision
from shared.rollouts.report import state_of
from shared.rollouts.rollout import ActKind, Rollout, State
from shared.some_of import some_of

log = logging.getLogger(__name__)

BY = "planner"
"""What acts name as the program."""
NAMED = 20


def answer_approval(given: Approval, plan: Plan, ports: Ports) -> None:
    """Say of an approval that it released nothing, if so; ``plan`` is the present one, and is saved.

    One whose deletes are approved at its commit, by it or by another one, has nothing left to release.
    """
    known = ports.state.plan(given.commit)
    if known is not None and known.approval is not None and {*given.clusters} <= {*known.approval.clusters}:
        return
    if given.commit != plan.commit:
        why = f"{plan.commit[:8]} was planned since; what still needs approval is approved at that commit"
    else:
        names = sorted(plan.deletes_needing_approval)
        need = f"{some_of(names, NAMED)} need approval" if names else "none needs approval"
        why = f"the deletes of the plan changed: now {need}; approve what roadstead plans shows"
    act = Act(
        id=f"no-effect-{digest_of(given.model_dump(mode='json'))}",
        at=ports.clock(),
        action="approve",
        target=given.commit,
        by=given.by,
        client=BY,
        clusters=given.clusters,
        reason=given.reason,
        result=f"no effect: {why}",
    )
    _save(act, ports)


def answer_act(act: RolloutAct, rollout: Rollout | None, ports: Ports) -> None:
    """Say of an act on a rollout that it had no effect; ``rollout`` is as the act met it, None for none."""
    commit = act.commit[:8]
    if rollout is None:
        why = f"another commit than {commit} was planned since; act on that one"
    elif rollout.state is State.ACTIVE:
        why = f"something else pauses the rollout of {commit} since then; resume it again"
    else:
        state = state_of(rollout, Decision(rollout)).lower()
        why = f"the rollout of {commit} was no longer under way: {state}; roadstead rollout list shows others"
    _save(
        Act(
            id=f"no-effect-{digest_of(act.model_dump(mode='json'))}",
            at=ports.clock(),
            action=f"rollout-{act.kind}",
            target="/".join(filter(None, (act.commit, act.subject))),
            by=act.by,
            client=BY,
            clusters=(act.subject,) if act.kind == ActKind.SKIP.value else (),
            reason=act.reason,
            result=f"no effect: {why}",
        ),
        ports,
    )


def _save(act: Act, ports: Ports) -> None:
    """Save an act, once, also after a crash."""
    if any(each.id == act.id for each in newest_changes(ports.state)):
        return
    log.warning("%s of %s by %s: %s", act.action, act.target[:8], act.by, act.result)
    ports.state.save_act(act)
