"""Reads of the tracked branch, shared by requests: a flood of pushes costs no more of them than a few do.

A read serves every request that was there before it started. A request that no read serves has the branch
read, or waits: after ``BURST`` successive reads there is one every ``INTERVAL``. Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.frozen import replace
from shared.jobs.messages import PlanRequest
from shared.ports import BranchRead, FleetRecord

BURST = 6
INTERVAL = timedelta(seconds=3)
MAX_AGE = timedelta(seconds=10)
"""An older read serves nobody, and neither does one that a wrong clock has dated so far ahead."""


def serving_read(request: PlanRequest, fleet: FleetRecord, now: datetime) -> BranchRead | None:
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
