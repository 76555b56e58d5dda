"""Which heads count as repaired gaps: found by the timer or an operator, and announced by no webhook.

The planner saves the count with the head that it begins to plan, over the version that it read, so that a
repeated message, a second tick or a crash counts nothing twice.
"""

from __future__ import annotations

from datetime import datetime

from shared.jobs.gaps import Gap, Gaps
from shared.jobs.messages import PlanRequest
from shared.pipeline.planner.branch.branch_head import LAG
from shared.ports import FleetRecord
from shared.ports.state import Deliveries


def repaired_gaps(request: PlanRequest, head: str, fleet: FleetRecord, deliveries: Deliveries) -> Gaps:
    """Return the fleet's gaps once ``head`` is planned for a request; reads one entity for a missed head."""
    found, before = request.found, fleet.planning or fleet.commit
    if found is None or head == before or not before:
        return fleet.gaps  # the first head of a fleet was pushed before there was anybody to announce it to
    if is_announced(deliveries.announced_at(head), fleet):
        return fleet.gaps
    return fleet.gaps.and_one(Gap(head, found.at, found.by))


def is_announced(pushed: datetime | None, fleet: FleetRecord) -> bool:
    """Return whether a push that a webhook announced brought the branch to where it is now.

    ``pushed`` is when the head was pushed at last, as announced; None if it never was. A push before the last
    plan is an earlier one: the branch has come back to this head since, and nothing announced that. The read
    of the last plan may have been stale by ``LAG``.
    """
    return pushed is not None and (fleet.head_read_at is None or pushed > fleet.head_read_at - LAG)
