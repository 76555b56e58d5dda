"""The head of the branch: when it is read, when it counts, and which heads no webhook had planned."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache, partial

from shared.app.outbox import send, send_unlike
from shared.app.own_repository import require_own, source_of
from shared.app.planner.plan_problems import report_unreadable
from shared.app.planner.reporter import report_again
from shared.cluster.failures.errors import OtherRepository, ReconcileError
from shared.cluster.failures.fleet_problem import FailedPart
from shared.cluster.history import Gap, Gaps
from shared.cluster.queues.message_parts import HeadConfirmation
from shared.cluster.queues.messages import ToPlan
from shared.cluster.reporting.measurements import of_plan
from shared.frozen import dataclass, replace
from shared.logs import about
from shared.ports import BranchHead, BranchRead, Capability, FleetRecord, GitHost, Ports

log = logging.getLogger(__name__)

CONFIRM_SECONDS = 7.0
"""Seconds from the first read to the second; twice as many to the third, and so on."""
CONFIRM_READS = 3
LAG = timedelta(seconds=CONFIRM_SECONDS * sum(range(1, CONFIRM_READS + 1)))
"""The sum of all waits, 42 s. More than half a minute remains when clocks differ by some seconds."""
WHOLE_SECOND = timedelta(seconds=1)
"""A git host states the time of a response and of a push in whole seconds."""


@dataclass(frozen=True)
class HeadDecision:
    """What becomes of a request to plan: ``head`` is planned now, None for none.

    ``fleet`` is the fleet's record with the read of the branch; where no head is planned, it is saved if it
    has changed. ``again`` is the request that reads the branch once more, None for none. ``is_new``: the
    branch was read, so there may be something to report.
    """

    fleet: FleetRecord
    head: BranchHead | None = None
    again: ToPlan | None = None
    is_new: bool = False


def decide_head(
    request: ToPlan,
    head: BranchHead,
    fleet: FleetRecord,
    now: datetime,
    *,
    is_new: bool,
    is_descendant: Callable[[str, str], bool],
    pushed_at: Callable[[], datetime | None],
) -> HeadDecision:
    """Return what becomes of a head that was read; ``is_new``: ``fleet`` has a read that is not saved yet."""
    confirmation = needs_confirmation(request, head, fleet, is_descendant=is_descendant, pushed_at=pushed_at)
    if confirmation is not None:
        passes = _passes_in(request, head, fleet, is_descendant)
        at = whole_second(now + min(timedelta(seconds=CONFIRM_SECONDS * confirmation.reads), passes))
        again = request.model_copy(update={"confirmation": confirmation, "read_from": at})
        begins = confirmation.reads == 1 and (is_new or not fleet.waiting)
        text = describe_confirmation(request, confirmation, now, passes)
        waits = replace(fleet, waiting=text) if begins else fleet
        return HeadDecision(waits, again=again, is_new=is_new)
    # A request to plan this head again may be among those that failed, and nobody sends that once more.
    failed = fleet.problem is not None and fleet.problem.failed in (FailedPart.READ, FailedPart.REQUEST)
    if failed or head.commit != fleet.commit or request.again or fleet.planning not in ("", head.commit):
        return HeadDecision(fleet, head, is_new=is_new)
    # A push that restored this head counts as its plan: an earlier push is stale from now on. A push of
    # another commit does not: it would make those of the same second wait.
    restored = request.commit == head.commit and announced_after(request, fleet)
    reads = replace(fleet.reads, planned_at=head.at) if restored else fleet.reads
    return HeadDecision(replace(fleet, problem=None, waiting="", reads=reads), is_new=is_new)


def head_to_plan(request: ToPlan, ports: Ports) -> HeadDecision:
    """Read the head of the branch, if no read serves the request; save and ask for what the read leads to."""
    fleet, now = ports.state.fleet(), ports.clock()
    read, at = serving_read(request, fleet, now), next_read_at(fleet, now)
    if read is None and at > now:
        waiting = request.model_copy(update={"read_from": request.read_from or now})
        send_unlike(waiting, ports, after=(at - now).total_seconds())
        return HeadDecision(fleet)
    head = _read_head(request, fleet, now, ports) if read is None else read.head
    if head is None:
        log.info("the branch could not be read; another request tries again")
        return HeadDecision(fleet, is_new=read is None)
    known = fleet
    if read is None:
        known = with_read(fleet, BranchRead(head, now))
        known = replace(known, origin=replace(known.origin, source=source_of(head, ports), other_source=None))
    with about(commit=head.commit):
        decided = decide_head(
            request,
            head,
            known,
            ports.clock(),
            is_new=read is None,
            is_descendant=cache(partial(_is_descendant, ports)),  # asked twice about the same two
            pushed_at=partial(_pushed_at, head, ports),
        )
        if decided.head is None:
            _leave(request, head, decided, fleet, ports)
    return decided


def _read_head(request: ToPlan, fleet: FleetRecord, now: datetime, ports: Ports) -> BranchHead | None:
    """Return the head of the branch, None for a failed read, which is saved and reported."""
    failed = with_read(fleet, BranchRead(None, now))
    try:
        found = ports.git_host.read_head(ports.config.branch)
        require_own(found, fleet, ports)
    except ReconcileError as error:
        if isinstance(error, OtherRepository):
            failed = replace(failed, origin=replace(failed.origin, other_source=source_of(found, ports)))
        ports.services.telemetry.record(of_plan(request.commit, now, ports.clock(), error.kind))
        report_unreadable(request, error, failed, ports)
        return None
    return found


def _is_descendant(ports: Ports, commit: str, earlier: str) -> bool:
    """Return whether one commit comes after another. A failed read counts as no, which costs only time."""
    try:
        return ports.git_host.is_descendant(commit, earlier)
    except ReconcileError as error:
        log.warning("whether %s comes after %s could not be read: %s", commit[:8], earlier[:8], error)
        return False


def _pushed_at(head: BranchHead, ports: Ports) -> datetime | None:
    """Return when a head was pushed, by the host's own log. A failed read costs only time."""
    try:
        return ports.git_host.pushed_at(ports.config.branch, head.commit)
    except ReconcileError as error:
        log.warning("when %s was pushed could not be read: %s", head.commit[:8], error)
        return None


def _leave(
    request: ToPlan, head: BranchHead, decided: HeadDecision, before: FleetRecord, ports: Ports
) -> None:
    """Save what is known of a head that is not planned now, and have it read again or reported again."""
    again = decided.again
    what = f"is read again at {again.read_from}" if again else "is planned already"
    log.info("commit %s %s", head.commit[:8], what)
    if decided.fleet != before:
        ports.state.save_fleet(decided.fleet)
    if again is None:
        lost = before.problem is not None and before.problem.failed is FailedPart.REQUEST
        if request.attempt or lost:  # a request that was postponed may have reported an outage on the commit
            report_again(head.commit, ports)
        return
    confirmation, at = again.confirmation, again.read_from
    seconds = (at - ports.clock()).total_seconds() if at is not None else 0.0
    if confirmation is None or at is None or request.again or request.approval:
        send_unlike(again, ports, after=seconds)
        return
    place = f"{confirmation.head[:12]}:{confirmation.planned[:12]}:{confirmation.reads}"
    send(again, ports, message_id=f"confirm:{place}:{int(at.timestamp())}", after=seconds)


def needs_confirmation(
    request: ToPlan,
    read: BranchHead,
    fleet: FleetRecord,
    *,
    is_descendant: Callable[[str, str], bool],
    pushed_at: Callable[[], datetime | None],
) -> HeadConfirmation | None:
    """Return the confirmation with which to read the head again, None when this read is accepted.

    A read is accepted at once when it shows the commit that was planned last, or a commit that is newer both
    in the history of git and in time, unless a push announced another one. Every other read can be stale, or
    show a forced push: it is accepted after three reads that all showed the same head, with no other plan in
    between. A plan that was started last and not finished continues at once. ``is_descendant`` returns
    whether one commit comes after another, ``pushed_at`` when the head was pushed, which the first read asks
    where no other time says that it is newer. All times are by the host's clock.
    """
    head, last = read.commit, fleet.planning or fleet.commit
    if head == fleet.planning:
        return None
    before = request.confirmation
    same = before is not None and (before.head, before.planned) == (head, last)
    reads = before.reads if before is not None and same else 0
    if request.commit in ("", head):
        newer = announced_after(request, fleet) or _read_after(read, fleet)
        follows = head == last or ((newer or not reads) and (not last or is_descendant(head, last)))
        if follows and (head == last or newer or _is_after_plan(pushed_at(), fleet)):
            return None
    return HeadConfirmation(head=head, planned=last, reads=reads + 1) if reads < CONFIRM_READS else None


def _passes_in(
    request: ToPlan, read: BranchHead, fleet: FleetRecord, is_descendant: Callable[[str, str], bool]
) -> timedelta:
    """Return after how long a read of the same head is newer than the last plan, however stale it is.

    That is never so where the head does not come after the commit of that plan, or is not what was announced.
    """
    planned_at, last = fleet.reads.planned_at, fleet.planning or fleet.commit
    follows = planned_at is not None and request.commit in ("", read.commit) and read.commit != last
    if planned_at is None or not (follows and is_descendant(read.commit, last)):
        return timedelta.max
    return max(timedelta(), planned_at + LAG + WHOLE_SECOND - read.at)


def describe_confirmation(
    request: ToPlan, confirmation: HeadConfirmation, now: datetime, passes: timedelta = timedelta.max
) -> str:
    """Return why a new head is not planned yet, and when it will be: after ``passes``, or its last read."""
    rest = timedelta(seconds=CONFIRM_SECONDS * sum(range(confirmation.reads, CONFIRM_READS + 1)))
    at = f"{now + min(rest, passes):%H:%M:%S} UTC"
    if confirmation.head == confirmation.planned:
        return f"the git host does not show commit {request.commit[:8]} yet: reading again until {at}"
    if passes != timedelta.max:
        return (
            f"{confirmation.head[:8]} came within {LAG.total_seconds() + 1:.0f} s of the last plan, and no "
            f"time of its push says that it is newer: it is planned at {at} if it stays"
        )
    return f"{confirmation.head[:8]} may be a forced push or a stale read: it is planned at {at} if it stays"


def whole_second(moment: datetime) -> datetime:
    """Return the next whole second."""
    return moment if not moment.microsecond else moment.replace(microsecond=0) + WHOLE_SECOND


def announced_after(request: ToPlan, fleet: FleetRecord) -> bool:
    """Return whether a request announces a push that came after the head of the last plan was read."""
    return bool(request.commit) and _is_after_plan(request.at, fleet)


def _read_after(read: BranchHead, fleet: FleetRecord) -> bool:
    """Return whether a read shows the head as it was after that of the last plan, however stale it is."""
    return _is_after_plan(read.at - LAG, fleet)


def _is_after_plan(time: datetime | None, fleet: FleetRecord) -> bool:
    """Return whether a time is certainly after the read of the last plan: both are cut to whole seconds."""
    planned_at = fleet.reads.planned_at
    return planned_at is None or (time is not None and time >= planned_at + WHOLE_SECOND)


# Reads of the tracked branch, shared by requests: a flood of pushes costs no more of them than a few do.
#
# A read serves every request that was there before it started. A request that no read serves has the branch
# read, or waits: after ``BURST`` successive reads there is one every ``INTERVAL``. Pure.

BURST = 6
INTERVAL = timedelta(seconds=3)
MAX_AGE = timedelta(seconds=10)
"""An older read serves nobody."""


def serving_read(request: ToPlan, fleet: FleetRecord, now: datetime) -> BranchRead | None:
    """Return the last read of the branch, if it started after the request was sent; None otherwise.

    The clocks of two instances may differ by seconds, so a push is also compared by the host's clock, which
    states whole seconds. A read in the second of a push serves it only if it shows its commit.
    """
    read = fleet.reads.last
    if read is None or request.read_from is None or read.started <= request.read_from:
        return None
    if now - read.started > MAX_AGE:
        return None
    if read.head is None:  # the read failed, and its request tries again; what must not be lost does, too
        return None if request.again or request.approval else read
    later = request.at is None or request.at < read.head.at
    return read if later or request.commit == read.head.commit else None


def next_read_at(fleet: FleetRecord, now: datetime) -> datetime:
    """Return when the branch may be read again: now, or later."""
    full_at = fleet.reads.full_at
    return now if full_at is None else max(now, full_at - (BURST - 1) * INTERVAL)


def with_read(fleet: FleetRecord, read: BranchRead) -> FleetRecord:
    """Return the record with a new read."""
    full_at = fleet.reads.full_at or read.started
    reads = replace(fleet.reads, last=read, full_at=max(full_at, read.started) + INTERVAL)
    return replace(fleet, reads=reads)


# Which heads count as repaired gaps: the timer or an operator found them before a webhook had them planned.
#
# The planner saves the count with the head that it begins to plan, over the version that it read, so that a
# repeated message, a second tick or a crash counts nothing twice.


def repaired_gaps(request: ToPlan, head: str, fleet: FleetRecord, host: GitHost) -> Gaps:
    """Return the fleet's gaps once ``head`` is planned for a request; a host without webhooks has none."""
    found, before = request.found, fleet.planning or fleet.commit
    if found is None or head == before or Capability.WEBHOOKS not in host.capabilities:
        return fleet.gaps
    if not before:
        return fleet.gaps  # the first head of a fleet was pushed before there was anybody to announce it to
    if fleet.problem is not None:
        return fleet.gaps  # its webhook may have come, and its plan failed
    return Gaps(fleet.gaps.count + 1, Gap(head, found.at, found.by))
