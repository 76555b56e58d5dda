"""The planner: one actor per fleet, serialised by its Service Bus session. Reports have another session.

It reads the head of the branch, computes the plan, and carries it out: it saves it, hands each job over, and
only then records the commit as planned. Every part is an "ensure": after a crash between any two lines,
running it again completes the work.
"""

from __future__ import annotations

import logging
from functools import partial

from shared.app.door import newer_epoch
from shared.app.followed import newest
from shared.app.outbox import send, send_unlike
from shared.app.planner.approvals import approved_request, systems_staying
from shared.app.planner.branch import HeadDecision, head_to_plan, repaired_gaps
from shared.app.planner.carry_out import carry_out, carry_out_part
from shared.app.planner.compute import compute_plan, partial_plan_of
from shared.app.planner.handover import begin, may_be_saved
from shared.app.planner.line import planned_line
from shared.app.planner.pins import with_form
from shared.app.planner.plan_problems import report_failed_plan, report_outage, report_unreadable
from shared.app.planner.recovery import begin_recovery
from shared.app.planner.reporter import report, report_again
from shared.app.planner.rollouts import PlanDue, advance
from shared.app.platform.platform_plan import platform_plan, with_earlier_pins
from shared.app.repository import PlanInputs, read_known, read_resolved, tombstones_of
from shared.cluster.failures.errors import ReconcileError, Retryable, Stale, Unexpected, Unreadable
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.queues.messages import (
    ActRequest,
    PlanRequest,
    QueueRequest,
    ReportRequest,
    ReviewRequest,
    RolloutRequest,
    StatusRequest,
    ToPlan,
    commit_of,
)
from shared.cluster.reporting.measurements import PLANNED, SUPERSEDED, of_plan
from shared.frozen import replace
from shared.logs import about
from shared.ports import BranchHead, BranchRead, FleetRecord, Ports

log = logging.getLogger(__name__)

LOST_RACE_SECONDS = 5.0
"""How long a planner waits after it lost the race."""
POSTPONED = 15
"""How often a request is postponed at most; the queue gets it back then, and dead-letters it."""
OUTAGE = 3
"""After so many attempts, about a minute, an outage of the state or a queue is reported on the commit."""
SUPERSEDED_SECONDS = 120.0
"""How long after an unfinished plan the next one is repeated: the other planner may have saved records."""


def handle(request: QueueRequest, ports: Ports) -> None:
    """Plan the head of the branch and hand its jobs over; update the commit statuses.

    Postpone the request while the state or a queue does not answer: the ten deliveries of a queue take no
    time, so that a short fault would dead-letter it. The copy is sent before the message is completed, so the
    request is not lost. Raise Retryable when it cannot be postponed, or was postponed too often.
    """
    with about(commit=commit_of(request)):
        _handle_or_postpone(request, ports)


def _handle_or_postpone(request: QueueRequest, ports: Ports) -> None:
    try:
        _handle(request, ports)
    except Retryable as error:
        seconds = wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.timing.retries)
        waits = isinstance(error, Unreadable)  # for a person, however long that takes
        if seconds is None or (request.attempt >= POSTPONED and not waits):
            raise
        log.warning("a request to plan is postponed by %d s: %s: %s", seconds, error.kind, error)
        commit = "" if isinstance(request, StatusRequest) else commit_of(request)
        if commit and request.attempt == (0 if waits else OUTAGE):
            report_outage(commit, error, ports)
        send_unlike(request.next_attempt(), ports, after=seconds)


def _handle(request: QueueRequest, ports: Ports) -> None:
    match request:
        case ReportRequest():
            report(ports)
        case StatusRequest():
            report_again(request.commit, ports)
        case ReviewRequest():
            reviewed = approved_request(request, ports)
            if reviewed is not None:
                _plan_and_report(reviewed, ports)
        case ActRequest():
            if advance(request.act, ports) is not PlanDue.NONE:
                _plan_and_report(RolloutRequest(again=True, attempt=request.attempt), ports)
        case RolloutRequest():
            due = advance(None, ports)
            if due is not PlanDue.NONE or request.again:
                continued = request.model_copy(update={"again": True, "commit": ""})
                _plan_and_report(continued, ports, some=due is PlanDue.SOME and not request.again)
        case ToPlan():
            _plan_and_report(request, ports)
        case _:
            raise ValueError(f"the queue of the planner has no message of the kind {request.kind}")


def _plan_and_report(request: ToPlan, ports: Ports, *, some: bool = False) -> None:
    """Plan the head, if a read of the branch says so, and have what is new reported."""
    fleet = ports.state.fleet()
    newer = newer_epoch(fleet, ports)
    if newer:
        begin_recovery(fleet, newer, ports)
        request, some = request.model_copy(update={"again": True}), False
    decided = head_to_plan(request, ports)
    if decided.head is not None:
        with about(commit=decided.head.commit):
            _plan(request, decided, decided.head, ports, some=some)
    if decided.head is not None or decided.is_new:
        send(ReportRequest(), ports, message_id=f"report:now:{int(ports.clock().timestamp())}")


def _plan(request: ToPlan, decided: HeadDecision, head: BranchHead, ports: Ports, *, some: bool) -> None:
    """Plan a head, and measure that."""
    began, result = ports.clock(), Unexpected.__name__
    try:
        result = _plan_head(request, decided, head, ports, some=some)
    except Stale:
        # This planner lost its session, and another one took over. That plan may have met our changes.
        log.warning("another planner won the race; planning again")
        result = SUPERSEDED
        send_unlike(request.model_copy(update={"commit": "", "again": True}), ports, after=LOST_RACE_SECONDS)
    except ReconcileError as error:
        result = error.kind
        report_failed_plan(head.commit, error, ports)
        raise
    finally:
        ports.services.telemetry.record(of_plan(head.commit, began, ports.clock(), result))


def _plan_head(request: ToPlan, decided: HeadDecision, head: BranchHead, ports: Ports, *, some: bool) -> str:
    """Begin a plan, compute it, and carry it out; return PLANNED, or the class of an error; raise Stale."""
    before = decided.fleet
    fleet = begin(head, before, repaired_gaps(request, head.commit, before, ports.git_host), ports)
    computed = partial_plan_of(before, fleet, ports) if some else None
    if computed is not None:
        carry_out_part(computed, ports)
        return PLANNED
    # Only now: an earlier read could lack the records that another planner has saved.
    listed = ports.state.clusters()
    records = {record.name: record for record in listed}
    known = read_known(records, ports)
    try:
        look = newest(fleet.origin.followed, ports)
        read = read_resolved(head.commit, known, ports, tombstones_of(records), look)
        unreadable = {record.key: record for record in listed.unreadable}
        platform = platform_plan(head.commit, read, records, ports)
        staying = partial(systems_staying, request, read.desired, records, platform, fleet, ports)
        planned = planned_line(head.commit, read.desired, records, unreadable, fleet, ports, staying)
        platform = with_earlier_pins(platform, planned.desired, planned.earlier, records, ports)
    except ReconcileError as error:
        report_unreadable(request, error, _as_before(fleet, before), ports)
        return error.kind
    desired = with_form(planned.desired, fleet, ports)
    line = replace(planned.line, refused=platform.is_refused)
    inputs = PlanInputs(desired, records, known, unreadable, platform, read.followed, line, read.tree.files)
    computed = compute_plan(request, before.planning, inputs, fleet, ports)
    carry_out(computed, request.approval, ports)
    if may_be_saved(before) and before.planning not in ("", head.commit):
        again = PlanRequest(again=True, reason="another plan was not finished")
        send(again, ports, message_id=f"superseded:{fleet.etag}", after=SUPERSEDED_SECONDS)
    return PLANNED


def _as_before(fleet: FleetRecord, before: FleetRecord) -> FleetRecord:
    """Return the record of a plan whose commit cannot be read: an incomplete read decides nothing."""
    last = before.reads.last
    return replace(
        fleet,
        planning=before.planning,
        handover=before.handover,
        gaps=before.gaps,
        reads=replace(before.reads, last=BranchRead(None, last.started) if last else None),
    )
