"""Commit statuses: what GitHub shows on a pushed commit while its plan is carried out.

Workers only ask for a report; the planner writes it, serialised with the plans, and only when the words
changed. Requests within the same few seconds are one message, so a rollout of hundreds of clusters costs
a handful of calls.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shared.fleet.plan import Action, Item, Plan
from shared.jobs.messages import PlanRequest
from shared.jobs.row import ClusterRow, Phase
from shared.ports import CommitStatus, Message, PlanRecord, Ports

log = logging.getLogger(__name__)

CONTEXT = "roadstead"
DESCRIPTION_LIMIT = 140
EVERY_SECONDS = 5
OPEN_PLANS = 20


@dataclass(frozen=True)
class Progress:
    """How far a plan is, counted over its clusters; ``first_problem`` is for a person."""

    total: int
    ready: int
    failed: int
    first_problem: str

    @property
    def settled(self) -> bool:
        """Whether nothing more will change by itself."""
        return self.ready + self.failed >= self.total


def progress_of(plan: Plan, rows: Mapping[str, ClusterRow]) -> Progress:
    """Count a plan's clusters: ready means verified at the plan's generation, or gone as asked."""
    ready = failed = 0
    problems: list[str] = []
    for item in plan.items:
        row = rows.get(item.cluster)
        problem = _problem(item, row)
        if problem:
            failed += 1
            problems.append(f"{item.cluster}: {problem}")
        elif _reached(item, row):
            ready += 1
    if not plan.items and plan.problems:
        problems.append(plan.problems[0])
    return Progress(len(plan.items), ready, failed, problems[0] if problems else "")


def _problem(item: Item, row: ClusterRow | None) -> str:
    if item.action in (Action.HELD, Action.INVALID):
        return item.reason
    if row is not None and row.phase in (Phase.FAILED, Phase.STALLED) and not _reached(item, row):
        return f"{row.phase.value} at {row.job.step.value}: {row.job.reason}"
    return ""


def _reached(item: Item, row: ClusterRow | None) -> bool:
    if row is None:  # gone: asked for here, or by a later commit
        return True
    return row.observed_generation >= item.generation


def status_of(plan: Plan, progress: Progress, *, link: str) -> CommitStatus:
    """Return the commit status for a plan at some progress."""
    if progress.first_problem:
        return CommitStatus("failure", _fit(progress.first_problem), CONTEXT, link)
    if progress.settled:
        done = (
            f"{progress.total} of {progress.total} clusters as asked ({plan.summary})"
            if plan.items
            else "no clusters"
        )
        return CommitStatus("success", _fit(done), CONTEXT, link)
    return CommitStatus(
        "pending",
        _fit(f"{progress.ready} of {progress.total} clusters as asked ({plan.summary})"),
        CONTEXT,
        link,
    )


def _fit(text: str) -> str:
    return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - 3] + "..."


def request(ports: Ports) -> None:
    """Ask the planner for a report a few seconds from now."""
    now = ports.clock()
    slot = math.floor(now.timestamp() / EVERY_SECONDS) + 1
    at = now.fromtimestamp(slot * EVERY_SECONDS, tz=now.tzinfo)
    body = PlanRequest(kind="report", reason="progress").model_dump_json()
    ports.plans.send(Message(ports.config.fleet, f"report:{slot}", body, at))


def report_open_plans(ports: Ports) -> None:
    """Write the commit status of every open plan whose words changed since the last report."""
    records = ports.state.open_plans()
    if not records:
        return
    rows = {row.name: row for row in ports.state.clusters()}
    for position, record in enumerate(records):
        _report(record, rows, ports, last_time=position >= OPEN_PLANS)


def _report(record: PlanRecord, rows: Mapping[str, ClusterRow], ports: Ports, *, last_time: bool) -> None:
    plan = record.plan
    if not plan.applied:
        return
    progress = progress_of(plan, rows)
    status = status_of(plan, progress, link=_link(ports, plan.commit))
    words = f"{status.state}: {status.description}"
    if words != record.reported:
        ports.repository.set_status(plan.commit, status)
    closed = last_time or status.state == "success"
    after = replace(record, reported=words, open=not closed, settled=progress.settled)
    if after != record:
        ports.state.save_plan(after)


def _link(ports: Ports, commit: str) -> str:
    base = ports.config.public_url
    return f"{base}/api/plans/{commit}" if base else ""
