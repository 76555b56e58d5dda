"""Which head of the branch is believed; GitHub may show a branch as it was a moment before a push."""

from __future__ import annotations

from collections.abc import Callable

from shared.jobs.messages import Doubt, PlanRequest
from shared.ports import FleetRow

LOOK_SECONDS = 7.0
"""Seconds from the first look to the second, twice as many to the third, and so on: 42 s for all of them.

More than half a minute remains when clocks differ by some seconds.
"""
LOOKS = 3


def doubted(
    request: PlanRequest, head: str, fleet: FleetRow, *, known: bool, descends: Callable[[str, str], bool]
) -> Doubt | None:
    """Return the doubt with which to look once more, None when this is believed to be the head.

    Believed at once is the commit that was planned last, and one that descends from it and has no plan yet
    (``known``), unless another one was announced. Everything else can be an old answer, or a forced push: it
    is believed after three looks that all saw it, with no other plan between them. A plan that was begun
    last and not finished goes on at once. ``descends`` tells whether one commit comes after another.
    """
    if head == fleet.planning:
        return None
    last = fleet.planning or fleet.commit
    if request.commit in ("", head):
        newer = not known and (not last or descends(head, last))
        if newer or head == last:
            return None
    before = request.doubt
    same = before is not None and (before.head, before.planned) == (head, last)
    looks = before.looks if before is not None and same else 0
    return Doubt(head=head, planned=last, looks=looks + 1) if looks < LOOKS else None
