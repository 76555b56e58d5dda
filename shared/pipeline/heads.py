"""Which head of the branch is believed: GitHub may show an old one for some seconds after a push."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from shared.jobs.messages import Doubt, PlanRequest
from shared.ports import FleetRow, Look

LOOK_SECONDS = 7.0
"""Seconds from the first look to the second, twice as many to the third, and so on."""
LOOKS = 3
LAG = timedelta(seconds=LOOK_SECONDS * sum(range(1, LOOKS + 1)))
"""All of them, 42 s. More than half a minute remains when clocks differ by some seconds."""
WHOLE_SECOND = timedelta(seconds=1)
"""GitHub tells the time of an answer and of a push in whole seconds."""


def doubted(
    request: PlanRequest, look: Look, fleet: FleetRow, *, descends: Callable[[str, str], bool]
) -> Doubt | None:
    """Return the doubt with which to look once more, None when this is believed to be the head.

    Believed at once is the commit that was planned last, and one that is newer than it both in the history
    of git and in time, unless another one was announced. Everything else can be an old answer, or a forced
    push: it is believed after three looks that all saw it, with no other plan between them. A plan that was
    begun last and not finished goes on at once. ``descends`` tells whether one commit comes after another.
    All times are of one clock, GitHub's.
    """
    head, last = look.commit, fleet.planning or fleet.commit
    if head == fleet.planning:
        return None
    if request.commit in ("", head):
        newer = announced_after(request, fleet) or _was_head_after(look, fleet)
        if head == last or (newer and (not last or descends(head, last))):
            return None
    before = request.doubt
    same = before is not None and (before.head, before.planned) == (head, last)
    looks = before.looks if before is not None and same else 0
    return Doubt(head=head, planned=last, looks=looks + 1) if looks < LOOKS else None


def why_doubted(request: PlanRequest, doubt: Doubt, now: datetime) -> str:
    """Return why a new head is not planned yet, and when it will be."""
    rest = LOOK_SECONDS * sum(range(doubt.looks, LOOKS + 1))
    at = f"{now + timedelta(seconds=rest):%H:%M:%S} UTC"
    if doubt.head == doubt.planned:
        return (
            f"GitHub does not show {request.commit[:8]} yet, which was announced: it is looked for until {at}"
        )
    return f"{doubt.head[:8]} may be a forced push or an old answer of GitHub: planned at {at} if it stays"


def announced_after(request: PlanRequest, fleet: FleetRow) -> bool:
    """Tell whether a request announces a push that came after the look at the last plan's head."""
    return bool(request.commit) and (fleet.looked is None or _after(request.at, fleet.looked))


def _was_head_after(look: Look, fleet: FleetRow) -> bool:
    """Tell whether what a look saw was the head after that of the last plan was read, however old it is."""
    return fleet.looked is None or _after(look.at - LAG, fleet.looked)


def _after(time: datetime | None, earlier: datetime) -> bool:
    """Tell whether a time comes after another one for sure: both are cut off to whole seconds."""
    return time is not None and time >= earlier + WHOLE_SECOND
