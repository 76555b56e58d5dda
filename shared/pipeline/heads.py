"""Which head of the branch is believed; GitHub may show a branch as it was a moment before a push."""

from __future__ import annotations

from shared.jobs.messages import Doubt, PlanRequest
from shared.ports import FleetRow, PlanRecord

LOOK_SECONDS = 7.0
"""Seconds from the first look to the second, twice as many to the third, and so on: 42 s for all of them.

More than half a minute remains when clocks differ by some seconds.
"""
LOOKS = 3


def doubted(request: PlanRequest, head: str, fleet: FleetRow, earlier: PlanRecord | None) -> Doubt | None:
    """Return the doubt with which to look once more, None when this is believed to be the head.

    A head that is not the announced commit, that nobody announced, that has a plan already (``earlier``), or
    was announced before the last plan, is believed after three looks that all saw it, with no other plan
    between them: it can be a forced push. A plan that was begun last and not finished goes on at once.
    """
    if head == fleet.planning or (head == fleet.commit and not request.commit):
        return None
    before = request.doubt
    overtaken = bool(request.at and fleet.at and request.at <= fleet.at)
    returned = head != fleet.commit and (earlier is not None or overtaken)
    if announced(request, fleet) == head and not returned:
        return None
    same = before is not None and (before.head, before.planned) == (head, fleet.commit)
    looks = before.looks if before is not None and same else 0
    return Doubt(head=head, planned=fleet.commit, looks=looks + 1) if looks < LOOKS else None


def announced(request: PlanRequest, fleet: FleetRow) -> str:
    """Return the commit that a request announces; "" once another plan came between its looks.

    It is older than that plan then, whatever the clocks say.
    """
    overtaken = request.doubt is not None and request.doubt.planned != fleet.commit
    return "" if overtaken else request.commit
