"""What prevents a plan is said on the commit and in the fleet's record, until the next plan clears it."""

from __future__ import annotations

import logging
from datetime import timedelta

from shared.frozen import replace
from shared.jobs.failures.errors import ReconcileError, Retryable, Stale
from shared.jobs.failures.fleet_problem import Failed, FleetProblem
from shared.jobs.failures.retry import wait_before_retry
from shared.jobs.messages import PlanRequest
from shared.pipeline.outbox import request_plan_again
from shared.pipeline.planner.reports.commit_status import status_of_problem
from shared.pipeline.planner.reports.reporter import report_again
from shared.ports import FleetRecord, Ports

log = logging.getLogger(__name__)

READ_ATTEMPTS = 8


def report_outage(commit: str, error: ReconcileError, ports: Ports) -> None:
    """Say on a pushed commit that it cannot be planned, while no record can; its plan replaces that."""
    try:
        ports.state.fleet()  # an answer: the record can say it
    except Retryable:
        _say_on(commit, _failed(error), ports)


def _say_on(commit: str, problem: FleetProblem, ports: Ports) -> None:
    try:
        ports.repository.set_status(commit, status_of_problem(problem))
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


def report_unreadable(request: PlanRequest, error: ReconcileError, fleet: FleetRecord, ports: Ports) -> None:
    """Record the problem and retry later; after the last attempt the timer for missed heads takes over."""
    wait = wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.retries)
    seconds = wait if isinstance(error, Retryable) and request.attempt < READ_ATTEMPTS else None
    lost_approval = request.approval.commit if seconds is None and request.approval else ""
    problem = FleetProblem(str(error), Failed.READ, error.kind, lost_approval)
    log.error("%s (attempt %d)", problem, request.attempt + 1)
    ports.state.save_fleet(replace(fleet, problem=problem))
    if seconds is not None:
        again = request.next_attempt().model_copy(
            update={"read_from": ports.clock() + timedelta(seconds=seconds)}
        )
        request_plan_again(again, after=seconds, ports=ports)


def _failed(error: ReconcileError) -> FleetProblem:
    return FleetProblem(str(error), Failed.PLAN, error.kind)
