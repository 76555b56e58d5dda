"""The head of the branch: when it is read, when it counts, and which heads no webhook announced."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from shared.cluster.history import Gap, Gaps
from shared.cluster.messages import HeadConfirmation, ToPlan
from shared.frozen import replace
from shared.ports import BranchHead, BranchRead, FleetRecord
from shared.ports.state import Deliveries

CONFIRM_SECONDS = 7.0
"""Seconds from the first read to the second; twice as many to the third, and so on."""
CONFIRM_READS = 3
LAG = timedelta(seconds=CONFIRM_SECONDS * sum(range(1, CONFIRM_READS + 1)))
"""The sum of all waits, 42 s. More than half a minute remains when clocks differ by some seconds."""
WHOLE_SECOND = timedelta(seconds=1)
"""GitHub states the time of a response and of a push in whole seconds."""


def needs_confirmation(
    request: ToPlan, read: BranchHead, fleet: FleetRecord, *, is_descendant: Callable[[str, str], bool]
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


def describe_confirmation(request: ToPlan, confirmation: HeadConfirmation, now: datetime) -> str:
    """Return why a new head is not planned yet, and when it will be."""
    rest = CONFIRM_SECONDS * sum(range(confirmation.reads, CONFIRM_READS + 1))
    at = f"{now + timedelta(seconds=rest):%H:%M:%S} UTC"
    if confirmation.head == confirmation.planned:
        return f"GitHub does not show the announced commit {request.commit[:8]} yet: reading again until {at}"
    return f"{confirmation.head[:8]} may be a forced push or a stale read: it is planned at {at} if it stays"


def whole_second(moment: datetime) -> datetime:
    """Return the next whole second."""
    return moment if not moment.microsecond else moment.replace(microsecond=0) + WHOLE_SECOND


def announced_after(request: ToPlan, fleet: FleetRecord) -> bool:
    """Return whether a request announces a push that came after the head of the last plan was read."""
    return bool(request.commit) and (fleet.head_read_at is None or _after(request.at, fleet.head_read_at))


def _read_after(read: BranchHead, fleet: FleetRecord) -> bool:
    """Return whether a read shows the head as it was after that of the last plan, however stale it is."""
    return fleet.head_read_at is None or _after(read.at - LAG, fleet.head_read_at)


def _after(time: datetime | None, earlier: datetime) -> bool:
    """Return whether a time is certainly after another one: both are cut off to whole seconds."""
    return time is not None and time >= earlier + WHOLE_SECOND


# Reads of the tracked branch, shared by requests: a flood of pushes costs no more of them than a few do.
#
# A read serves every request that was there before it started. A request that no read serves has the branch
# read, or waits: after ``BURST`` successive reads there is one every ``INTERVAL``. Pure.

BURST = 6
INTERVAL = timedelta(seconds=3)
MAX_AGE = timedelta(seconds=10)
"""An older read serves nobody, and neither does one that a wrong clock has dated so far ahead."""


def serving_read(request: ToPlan, fleet: FleetRecord, now: datetime) -> BranchRead | None:
    """Return the last read of the branch, if it started after the request was sent; None otherwise.

    The clocks of two instances may differ by seconds, so a push is also compared by GitHub's clock, which
    states whole seconds. A read in the second of a push serves it only if it shows its commit.
    """
    read = fleet.last_read
    if read is None or request.read_from is None or read.started <= request.read_from:
        return None
    if abs(now - read.started) > MAX_AGE:
        return None
    if read.head is None:  # the read failed, and its request tries again; what must not be lost does, too
        return None if request.again or request.approval else read
    later = request.at is None or request.at < read.head.at
    return read if later or request.commit == read.head.commit else None


def next_read_at(fleet: FleetRecord, now: datetime) -> datetime:
    """Return when the branch may be read again: now, or later."""
    full_at = fleet.reads_full_at
    if full_at is None or full_at - now > BURST * INTERVAL:  # the latter by a clock that was set back
        return now
    return max(now, full_at - (BURST - 1) * INTERVAL)


def with_read(fleet: FleetRecord, read: BranchRead) -> FleetRecord:
    """Return the record with a new read."""
    full_at = fleet.reads_full_at
    if full_at is None or full_at - read.started > BURST * INTERVAL:
        full_at = read.started
    return replace(fleet, last_read=read, reads_full_at=max(full_at, read.started) + INTERVAL)


# Which heads count as repaired gaps: found by the timer or an operator, and announced by no webhook.
#
# The planner saves the count with the head that it begins to plan, over the version that it read, so that a
# repeated message, a second tick or a crash counts nothing twice.


def repaired_gaps(request: ToPlan, head: str, fleet: FleetRecord, deliveries: Deliveries) -> Gaps:
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
