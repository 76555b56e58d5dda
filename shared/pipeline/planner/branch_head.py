"""Which head of the branch is believed: GitHub may show an old one for some seconds after a push."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from shared.jobs.messages import HeadConfirmation, PlanRequest
from shared.ports import BranchHead, FleetRecord

CONFIRM_SECONDS = 7.0
"""Seconds from the first look to the second, twice as many to the third, and so on."""
CONFIRM_READS = 3
LAG = timedelta(seconds=CONFIRM_SECONDS * sum(range(1, CONFIRM_READS + 1)))
"""All of them, 42 s. More than half a minute remains when clocks differ by some seconds."""
WHOLE_SECOND = timedelta(seconds=1)
"""GitHub tells the time of an answer and of a push in whole seconds."""


def needs_confirmation(
    request: PlanRequest, look: BranchHead, fleet: FleetRecord, *, is_descendant: Callable[[str, str], bool]
) -> HeadConfirmation | None:
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
        if head == last or (newer and (not last or is_descendant(head, last))):
            return None
    before = request.confirmation
    same = before is not None and (before.head, before.planned) == (head, last)
    looks = before.looks if before is not None and same else 0
    return HeadConfirmation(head=head, planned=last, looks=looks + 1) if looks < CONFIRM_READS else None


def describe_confirmation(request: PlanRequest, confirmation: HeadConfirmation, now: datetime) -> str:
    """Return why a new head is not planned yet, and when it will be."""
    rest = CONFIRM_SECONDS * sum(range(confirmation.looks, CONFIRM_READS + 1))
    at = f"{now + timedelta(seconds=rest):%H:%M:%S} UTC"
    if confirmation.head == confirmation.planned:
        return (
            f"GitHub does not show {request.commit[:8]} yet, which was announced: it is looked for until {at}"
        )
    return f"{confirmation.head[:8]} may be a forced push or a stale answer: planned at {at} if it stays"


def announced_after(request: PlanRequest, fleet: FleetRecord) -> bool:
    """Tell whether a request announces a push that came after the look at the last plan's head."""
    return bool(request.commit) and (fleet.looked is None or _after(request.at, fleet.looked))


def _was_head_after(look: BranchHead, fleet: FleetRecord) -> bool:
    """Tell whether what a look saw was the head after that of the last plan was read, however old it is."""
    return fleet.looked is None or _after(look.at - LAG, fleet.looked)


def _after(time: datetime | None, earlier: datetime) -> bool:
    """Tell whether a time comes after another one for sure: both are cut off to whole seconds."""
    return time is not None and time >= earlier + WHOLE_SECOND
