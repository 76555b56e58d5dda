"""The plan of a commit with the approval that counts: one that was sent, an earlier one, or a review."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from shared.fleet.planning.make_plan import make_plan
from shared.fleet.planning.plan import Plan
from shared.jobs.messages import Approval, PlanRequest
from shared.jobs.review_check import ReviewCheck
from shared.pipeline.planner.approval.team_reviews import ask, ask_again
from shared.pipeline.repository.commit_reader import PlanInputs
from shared.ports import FleetRecord, PlanRecord, Ports


@dataclass(frozen=True)
class Approved:
    """A plan, the approval that it has, and what the reviews on GitHub say if it holds a delete."""

    plan: Plan
    approval: Approval | None = None
    review: ReviewCheck | None = None


def approved_plan(
    request: PlanRequest, inputs: PlanInputs, fleet: FleetRecord, earlier: PlanRecord | None, ports: Ports
) -> Approved:
    """Return the plan of ``fleet.planning``; ``earlier`` is the one that was saved for that commit before."""
    head, teams = fleet.planning, ports.config.approval_teams
    make = partial(
        make_plan,
        head,
        inputs.desired,
        inputs.records,
        now=ports.clock(),
        reviewers=teams,
        replacing=fleet.replacing,
        unreadable=inputs.problems,
    )
    approval = _given(request, head, earlier if fleet.commit == head else None)
    approved = frozenset(approval.clusters) if approval else frozenset[str]()
    plan = make(approved=approved)
    deletes = plan.deletes_needing_approval
    by_review = all(item.hold.by_review for item in plan.items if item.hold and item.needs_approval)
    if not (teams and deletes) or not by_review:
        # A review is of a removal that its pull request shows; for other deletes, nothing says that.
        return Approved(plan, approval)
    asked = ask(head, {name: inputs.records[name].created for name in deletes}, fleet, ports)
    if asked.approval is not None:
        return Approved(make(approved=approved | deletes), asked.approval, asked.check)
    ask_again(asked, request, head, ports, first=earlier is None or earlier.review is None)
    return Approved(plan, approval, asked.check)


def _given(request: PlanRequest, head: str, earlier: PlanRecord | None) -> Approval | None:
    """Return the approval that counts at this commit: of exactly the deletes that need it, or an earlier one.

    ``earlier`` is the present plan, None when other commits were planned since: the clusters of an older plan
    may have been deleted and created again.
    """
    if earlier is None:
        return None
    given = request.approval
    exact = (
        given is not None
        and given.commit == head
        and {*given.clusters} == earlier.plan.deletes_needing_approval
    )
    return given if exact else earlier.approval
