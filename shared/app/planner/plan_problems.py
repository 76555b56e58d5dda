"""What prevents a plan, or leaves an act without effect, is said on the commit and in the records."""

from __future__ import annotations

import logging
from datetime import timedelta

from shared.app.notifications import store_act
from shared.app.outbox import send_unlike
from shared.app.planner.commit_status import status_of_problem
from shared.app.planner.reporter import report_again
from shared.cluster.failures.errors import ReconcileError, Retryable, Stale
from shared.cluster.failures.fleet_problem import FailedPart, FleetProblem
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.history import Act
from shared.cluster.queues.message_parts import Approval, RolloutAct
from shared.cluster.queues.messages import ToPlan
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.plan.plan import Plan
from shared.ports import FleetRecord, Ports
from shared.ports.git_host import Capability
from shared.rollouts.decide import Decision
from shared.rollouts.report import state_of
from shared.rollouts.rollout import Rollout, RolloutState
from shared.rollouts.rollout_acts import ActKind
from shared.sentences import some_of

log = logging.getLogger(__name__)

READ_ATTEMPTS = 8


def report_outage(commit: str, error: ReconcileError, ports: Ports) -> None:
    """Say on a pushed commit that it cannot be planned, while no record can; its plan replaces that."""
    try:
        ports.state.fleet()  # an answer: the record can say it
    except Retryable:
        _say_on(commit, _failed(error), ports)


def _say_on(commit: str, problem: FleetProblem, ports: Ports) -> None:
    if Capability.STATUSES not in ports.git_host.capabilities:
        return
    try:
        ports.git_host.set_status(commit, status_of_problem(problem))
    except ReconcileError as error:
        log.warning("the problem could not be said on the commit: %s: %s", error.kind, error)


def report_failed_plan(head: str, error: ReconcileError, ports: Ports) -> None:
    """Say on the commit and in the fleet's record that the state, or a queue, failed; as far as possible.

    The next plan clears both. Another planner may have planned the head meanwhile, and its status counts.
    """
    problem = _failed(error)
    log.error("%s", problem)
    try:
        fleet = ports.state.fleet()
        if fleet.problem == problem or fleet.planning != head:
            return
        _say_on(head, problem, ports)
        ports.state.save_fleet(replace(fleet, problem=problem))
    except Stale:
        report_again(head, ports)
    except ReconcileError as second:
        log.warning("the problem could not be reported: %s: %s", second.kind, second)


def report_unreadable(request: ToPlan, error: ReconcileError, fleet: FleetRecord, ports: Ports) -> None:
    """Record the problem and retry later; after the last attempt the timer for missed heads takes over."""
    wait = wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.timing.retries)
    seconds = wait if isinstance(error, Retryable) and request.attempt < READ_ATTEMPTS else None
    lost_approval = request.approval.commit if seconds is None and request.approval else ""
    problem = FleetProblem.of_read(error, fleet.commit, lost_approval)
    log.error("%s (attempt %d)", problem, request.attempt + 1)
    ports.state.save_fleet(replace(fleet, problem=problem))
    if seconds is not None:
        again = request.next_attempt().model_copy(
            update={"read_from": ports.clock() + timedelta(seconds=seconds)}
        )
        send_unlike(again, ports, after=seconds)


def _failed(error: ReconcileError) -> FleetProblem:
    return FleetProblem(str(error), FailedPart.PLAN, error.kind)


# What the API accepted and the planner finds to have no effect any more becomes an act that says why.

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
    _answer(given, "approve", given.commit, given.clusters, why, ports)


def answer_act(act: RolloutAct, rollout: Rollout | None, ports: Ports) -> None:
    """Say of an act on a rollout that it had no effect; ``rollout`` is as the act met it, None for none."""
    commit = act.commit[:8]
    if rollout is None:
        why = f"another commit than {commit} was planned since; act on that one"
    elif rollout.state is RolloutState.ACTIVE:
        why = f"something else pauses the rollout of {commit} since then; resume it again"
    else:
        state = state_of(rollout, Decision(rollout)).lower()
        why = f"the rollout of {commit} was no longer under way: {state}; roadstead rollout list shows others"
    target = "/".join(filter(None, (act.commit, act.subject)))
    clusters = (act.subject,) if act.kind == ActKind.SKIP.value else ()
    _answer(act, f"rollout-{act.kind}", target, clusters, why, ports)


def _answer(
    asked: Approval | RolloutAct, action: str, target: str, clusters: tuple[str, ...], why: str, ports: Ports
) -> None:
    """Store the act of somebody that had no effect, and why."""
    act = Act(
        id=f"no-effect-{digest_of(asked.model_dump(mode='json'))}",
        at=ports.clock(),
        action=action,
        target=target,
        by=asked.by,
        client=BY,
        clusters=clusters,
        reason=asked.reason,
        result=f"no effect: {why}",
    )
    log.warning("%s of %s by %s: %s", action, target[:8], asked.by, act.result)
    store_act(act, ports)
