"""Stale-read protection: GitHub may show an earlier head of the branch for seconds after a push."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from shared.jobs.messages import HeadConfirmation, PlanRequest
from shared.ports import BranchHead, FleetRecord

CONFIRM_SECONDS = 7.0
"""Seconds from the first read to the second; twice as many to the third, and so on."""
CONFIRM_READS = 3
LAG = timedelta(seconds=CONFIRM_SECONDS * sum(range(1, CONFIRM_READS + 1)))
"""The sum of all waits, 42 s. More than half a minute remains when clocks differ by some seconds."""
WHOLE_SECOND = timedelta(seconds=1)
"""GitHub states the time of a response and of a push in whole seconds."""


def needs_confirmation(
    request: PlanRequest, read: BranchHead, fleet: FleetRecord, *, is_descendant: Callable[[str, str], bool]
) -> HeadConfirmation | None:
    """Return the confirmation with which to read the head again, None when this read is accepted.

    A read is accepted at once when it shows the commit that was planned last, or a commit that is newer both
    in the history of git and in time, unless a push announced another one. Every other read can be stale, or
    show a forced push: it is accepted after three reads that all showed the same head, with no other plan in
    between. A plan that was started last and not finished continues at once. ``is_descendant`` returns
    whether one commit comes after another. All times are by GitHub's clock.
    """
    head, last = read.commit, fleet.planning or fleet.commit
    if head == fleet.planning:
        return None
    if request.commit in ("", head):
        newer = announced_after(request, fleet) or _read_after(read, fleet)
        if head == last or (newer and (not last or is_descendant(head, last))):
            return None
    before = request.confirmation
    same = before is not None and (before.head, before.planned) == (head, last)
    reads = before.reads if before is not None and same else 0
    return HeadConfirmation(head=head, planned=last, reads=reads + 1) if reads < CONFIRM_READS else None


def describe_confirmation(request: PlanRequest, confirmation: HeadConfirmation, now: datetime) -> str:
    """Return why a new head is not planned yet, and when it will be."""
    rest = CONFIRM_SECONDS * sum(range(confirmation.reads, CONFIRM_READS + 1))
    at = f"{now + timedelta(seconds=rest):%H:%M:%S} UTC"
    if confirmation.head == confirmation.planned:
        return f"GitHub does not show the announced commit {request.commit[:8]} yet: reading again until {at}"
    return f"{confirmation.head[:8]} may be a forced push or a stale read: it is planned at {at} if it stays"


def whole_second(moment: datetime) -> datetime:
    """Return the next whole second."""
    return moment if not moment.microsecond else moment.replace(microsecond=0) + WHOLE_SECOND


def announced_after(request: PlanRequest, fleet: FleetRecord) -> bool:
    """Return whether a request announces a push that came after the head of the last plan was read."""
    return bool(request.commit) and (fleet.head_read_at is None or _after(request.at, fleet.head_read_at))


def _read_after(read: BranchHead, fleet: FleetRecord) -> bool:
    """Return whether a read shows the head as it was after that of the last plan, however stale it is."""
    return fleet.head_read_at is None or _after(read.at - LAG, fleet.head_read_at)


def _after(time: datetime | None, earlier: datetime) -> bool:
    """Return whether a time is certainly after another one: both are cut off to whole seconds."""
    return time is not None and time >= earlier + WHOLE_SECOND
