"""Commit statuses: what GitHub shows on a pushed commit while its plan is carried out.

Workers only request a report; the planner writes it, serialised with the plans, and only when its text has
changed. Requests within the same few seconds are one message, so a rollout of hundreds of clusters costs
a handful of calls.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.fleet.planning.plan import Action, Item, Plan
from shared.jobs.errors import ReconcileError, Retryable
from shared.jobs.fleet_problem import FleetProblem
from shared.jobs.job import FARTHEST
from shared.jobs.record import ClusterRecord, Phase
from shared.jobs.retry import wait_before_retry
from shared.pipeline.outbox import REPORT_SECONDS, request_report, request_unfinished_plan
from shared.ports import CommitStatus, FleetRecord, PlanRecord, Ports
from shared.ports.repository import status_line

log = logging.getLogger(__name__)

CONTEXT = "roadstead"
OPEN_PLANS = 20
MAX_PENDING = 800
"""GitHub takes 1,000 statuses of a commit and context; the rest is for those that end it."""


@dataclass(frozen=True)
class Progress:
    """How far a plan is, counted over its clusters; ``first_problem`` is a sentence for an operator.

    ``waits`` are clusters that continue once an operator acts; ``first_wait`` describes the first one.
    """

    total: int
    ready: int
    failed: int
    first_problem: str
    suspended: int = 0
    first_wait: str = ""
    waits: int = 0

    @property
    def settled(self) -> bool:
        """Whether nothing more will change by itself soon; a worker reports the end of a suspension."""
        return self.ready + self.failed + self.suspended + self.waits >= self.total


def progress_of(plan: Plan, records: Mapping[str, ClusterRecord], *, newest: bool) -> Progress:
    """Count a plan's clusters: ready means verified at the plan's generation, or deleted.

    ``newest``: no later commit was planned, so none can have removed a cluster that does not exist.
    """
    ready = failed = suspended = 0
    problems: list[str] = []
    waits: list[str] = []
    for item in plan.items:
        record = records.get(item.cluster)
        if _reached(item, record, newest=newest):
            ready += 1
            continue
        problem = _problem(item, record)
        suspended += record is not None and record.phase is Phase.SUSPENDED and not problem
        if record is not None and record.needs_action and not problem:
            waits.append(f"{item.cluster}: {record.job.reason}")
        if record is None and item.awaits_deletion and not newest:
            waits.append(f"{item.cluster} does not exist")
        if problem:
            failed += 1
            problems.append(f"{item.cluster}: {problem}")
    if not plan.items and plan.problems:
        problems.append(plan.problems[0])
    if plan.fleet_file_problem:
        problems.insert(0, plan.fleet_file_problem)
    first_problem, first_wait = (texts[0] if texts else "" for texts in (problems, waits))
    return Progress(len(plan.items), ready, failed, first_problem, suspended, first_wait, len(waits))


def _problem(item: Item, record: ClusterRecord | None) -> str:
    if item.needs_action:
        return item.reason
    if record is not None and record.phase in (Phase.FAILED, Phase.STALLED):
        return f"{record.phase.value} at {record.job.step.name}: {record.job.reason}"
    return ""


def _reached(item: Item, record: ClusterRecord | None, *, newest: bool) -> bool:
    if item.awaits_deletion and record is not None:
        if record.uid != item.uid:
            return record.observed_generation > 0  # a later commit had it created again
        return record.observed_generation > item.generation  # a later plan took its removal back
    if item.not_carried_out:
        return False
    if record is None:
        removed = item.being_deleted or item.action in (Action.DELETE, Action.RETRY)
        return not newest or (removed and not item.awaits_deletion)
    if record.uid != item.uid:  # a later cluster of that name, or a plan that a superseded planner wrote
        return not newest
    return record.observed_generation >= item.generation


def status_of(plan: Plan, progress: Progress, *, link: str, superseded_by: str = "") -> CommitStatus:
    """Return the commit status for a plan at some progress.

    ``superseded_by`` is the newest commit, where only that one can still change the clusters; "" otherwise.
    """
    if progress.first_problem:
        return CommitStatus("failure", status_line(progress.first_problem), CONTEXT, link)
    if progress.ready >= progress.total:
        done = (
            f"{progress.total} of {progress.total} clusters in sync ({plan.summary})"
            if plan.items
            else "no clusters"
        )
        return CommitStatus("success", status_line(done), CONTEXT, link)
    suspended = f", {progress.suspended} suspended" if progress.suspended else ""
    waiting = f"; {progress.first_wait}" if progress.first_wait else f" ({plan.summary})"
    description = f"{progress.ready} of {progress.total} clusters in sync{suspended}{waiting}"
    if superseded_by:
        return CommitStatus(
            "error", status_line(f"superseded by {superseded_by[:8]}: {description}"), CONTEXT, link
        )
    return CommitStatus("pending", status_line(description), CONTEXT, link)


def status_of_problem(problem: FleetProblem) -> CommitStatus:
    """Return the commit status for a commit that could not be planned."""
    return CommitStatus("error", status_line(str(problem)), CONTEXT)


def report_open_plans(ports: Ports) -> None:
    """Write the commit status of every open plan whose text changed since the last report.

    A status that GitHub refuses is abandoned, and the plan records that; when GitHub does not answer, the
    report is requested again for the time that GitHub states. Neither prevents a plan.
    """
    plan_records, fleet = ports.state.open_plans(), ports.state.fleet()
    if not (plan_records or fleet.contested) or fleet.other_source:
        return
    records, newest = {record.name: record for record in ports.state.clusters()}, fleet.commit
    contested = tuple(name for name, record in records.items() if record.contested)
    if contested != fleet.contested:
        ports.state.save_fleet(replace(fleet, contested=contested))
    for position, plan_record in enumerate(plan_records):
        if plan_record.not_before is not None and _waits(plan_record.not_before, ports.clock()):
            continue
        if _is_overwritten(plan_record, fleet):
            request_unfinished_plan(fleet.commit, ports)
            continue
        try:
            _report(plan_record, records, newest, ports, last_time=position >= OPEN_PLANS)
        except Retryable as error:
            log.warning("the commit status waits: %s: %s", error.kind, error)
            wait = wait_before_retry(error, 3, ports.random(), ports.config.retries) or REPORT_SECONDS
            until = ports.clock() + timedelta(seconds=wait)
            ports.state.save_plan(replace(plan_record, not_before=until))
            request_report(ports, after=wait)
            return
        except ReconcileError as error:
            log.exception("the commit status of %s is abandoned", plan_record.plan.commit[:8])
            reported = f"not reported: {error.kind}: {error}"[:500]
            ports.state.save_plan(replace(plan_record, reported=reported, open=False, settled=True))


def _is_overwritten(plan_record: PlanRecord, fleet: FleetRecord) -> bool:
    """Return whether a superseded planner has written its plan over that of the newest commit."""
    done = plan_record.plan.applied and plan_record.at == fleet.at
    return plan_record.plan.commit == fleet.commit and not fleet.planning and not done


def _waits(until: datetime, now: datetime) -> bool:
    """Return whether a report waits for its time; one that no service asks for is of a wrong clock."""
    return now < until < now + FARTHEST


def _report(
    plan_record: PlanRecord,
    records: Mapping[str, ClusterRecord],
    newest: str,
    ports: Ports,
    *,
    last_time: bool,
) -> None:
    plan, link = plan_record.plan, _link(ports, plan_record.plan.commit)
    if plan.applied:
        progress = progress_of(plan, records, newest=plan.commit == newest)
        settled = progress.settled
        ended = plan.commit != newest and (settled or last_time)
        status = status_of(plan, progress, link=link, superseded_by=newest if ended else "")
        closed = last_time or status.state == "success"
    elif ports.state.fleet().planning == plan.commit or newest in ("", plan.commit):
        return
    else:
        superseded = f"superseded by {newest[:8]} before it was carried out"
        status, settled, closed = CommitStatus("error", superseded, CONTEXT, link), True, True
    reported, reports = f"{status.state}: {status.description}", plan_record.reports
    if status.state == "pending" and reports >= MAX_PENDING:
        reported = plan_record.reported
    if reported != plan_record.reported:
        ports.repository.set_status(plan.commit, status)
        reports += 1
    after = replace(
        plan_record, reported=reported, reports=reports, open=not closed, settled=settled, not_before=None
    )
    if after != plan_record:
        ports.state.save_plan(after)


def _link(ports: Ports, commit: str) -> str:
    base = ports.config.public_url
    return f"{base}/api/plans/{commit}/page" if base else ""
