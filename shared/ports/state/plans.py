"""What is stored of plans, and of the fleet as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.cluster.messages import Approval
from shared.cluster.review_check import ReviewCheck
from shared.frozen import dataclass, field
from shared.plan.plan import Plan
from shared.ports.state.fleet import FleetRecord


@dataclass(frozen=True)
class PlanRecord:
    """A plan, its last reported commit status, and the approval of its deletes that need one.

    ``open``: its commit status may still change. ``settled``: only a commit or a replay can change it.
    ``not_before`` is when the status may be sent to GitHub again, ``reports`` how many were sent. ``writing``
    is when somebody began to send one who is not known to have ended; None for nobody.
    ``review`` is what the reviews on GitHub said when they were read last, None if they were not. ``held`` is
    since when each cluster's item is on hold, also by the plans before. ``etag`` is the version that was
    read, "" for a record not saved yet.
    """

    plan: Plan
    at: datetime
    open: bool = True
    settled: bool = False
    reported: str = ""
    not_before: datetime | None = None
    approval: Approval | None = None
    reports: int = 0
    review: ReviewCheck | None = None
    writing: datetime | None = None
    held: Mapping[str, datetime] = field(default_factory=dict)
    etag: str = field(default="", compare=False)


class Plans(Protocol):
    """The plans, with their reported status, and the fleet's record."""

    def fleet(self) -> FleetRecord:
        """Return the fleet's record; a new one when none was saved; raise Unreadable."""
        ...

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record over the version that was read, and return it as saved; raise Stale."""
        ...

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit; None for none, and for one that is damaged.

        Raise Unreadable for one of a newer form.
        """
        ...

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit; only the planner does."""
        ...

    def save_report(self, plan_record: PlanRecord) -> PlanRecord:
        """Write what was reported of a plan over the version that was read, and leave the plan; raise Stale.

        That is ``open``, ``settled``, ``reported``, ``not_before``, ``reports`` and ``writing``. Returns the
        record with its new etag.
        """
        ...

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over the version that was read; raise Stale."""
        ...

    def next_report_at(self) -> datetime | None:
        """Return the ``not_before`` of the newest open plan; the size of plans does not matter."""
        ...

    def plans_since(self, at: datetime) -> Listed[PlanRecord]:
        """Return the plans since a time, newest first."""
        ...

    def open_plans(self) -> Listed[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        ...

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones; return how many were removed."""
        ...
