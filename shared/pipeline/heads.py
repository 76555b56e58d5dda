"""Which head of the branch is believed: GitHub may show an old one for some seconds after a push."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from shared.jobs.messages import Doubt, PlanRequest
from shared.ports import FleetRow

LOOK_SECONDS = 7.0
"""Seconds from the first look to the second, twice as many to the third, and so on."""
LOOKS = 3
LAG_SECONDS = LOOK_SECONDS * sum(range(1, LOOKS + 1))
"""All of them, 42 s. More than half a minute remains when clocks differ by some seconds."""
CLOCKS_SECONDS = 7.0
"""How much the clocks of GitHub and of two workers may differ."""


def doubted(
    request: PlanRequest, head: str, fleet: FleetRow, *, now: datetime, descends: Callable[[str, str], bool]
) -> Doubt | None:
    """Return the doubt with which to look once more, None when this is believed to be the head.

    Believed at once is the commit that was planned last, and one that is newer than it both in the history
    of git and in time, unless another one was announced. Everything else can be an old answer, or a forced
    push: it is believed after three looks that all saw it, with no other plan between them. A plan that was
    begun last and not finished goes on at once. ``descends`` tells whether one commit comes after another.
    """
    if head == fleet.planning:
        return None
    last = fleet.planning or fleet.commit
    if request.commit in ("", head):
        newer = (
            _shown_since(request, now) > fleet.at + timedelta(seconds=CLOCKS_SECONDS) if fleet.at else True
        )
        if head == last or (newer and (not last or descends(head, last))):
            return None
    before = request.doubt
    same = before is not None and (before.head, before.planned) == (head, last)
    looks = before.looks if before is not None and same else 0
    return Doubt(head=head, planned=last, looks=looks + 1) if looks < LOOKS else None


def _shown_since(request: PlanRequest, now: datetime) -> datetime:
    """Return a time at which, or later, the branch was what GitHub shows now."""
    fresh = now - timedelta(seconds=LAG_SECONDS)
    return max(fresh, request.at) if request.commit and request.at else fresh
