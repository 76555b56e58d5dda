"""The planner: one actor per fleet, serialised by its Service Bus session. Reports have another session.

It reads the head of the branch, makes the plan, saves it, hands each job over, and only then records the
commit as planned. Every part is an "ensure": after a crash between any two lines, running it again completes
the work.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from shared.app.notifications import store_approval
from shared.app.outbox import request_handover, request_outdated_marks, send, send_unlike
from shared.app.planner.approvals import approved_plan, approved_request
from shared.app.planner.branch import (
    CONFIRM_SECONDS,
    announced_after,
    describe_confirmation,
    needs_confirmation,
    next_read_at,
    repaired_gaps,
    serving_read,
    whole_second,
    with_read,
)
from shared.app.planner.handover import begun, hand_over, may_be_saved, small_changes, supersede
from shared.app.planner.identity import first_generation, identified, index_groups, with_promotions
from shared.app.planner.partial_plan import carry_out_partial_plan, partial_plan_of
from shared.app.planner.plan_problems import (
    answer_approval,
    report_failed_plan,
    report_outage,
    report_unreadable,
)
from shared.app.planner.reporter import report, report_again
from shared.app.planner.rollouts import advance, hold_items, oversized, retried, stage
from shared.app.repository import (
    PlanInputs,
    read_desired,
    read_known,
    require_own,
    save_fingerprints,
    source_of,
)
from shared.azure.ownership import new_life
from shared.cluster.failures.errors import (
    OtherRepository,
    ReconcileError,
    Retryable,
    Stale,
    Unexpected,
    Unreadable,
)
from shared.cluster.failures.remedies import Failed
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.messages import (
    ActRequest,
    HeadConfirmation,
    PlanRequest,
    PromoteRequest,
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
from shared.notifications.routes import routes_of
from shared.plan.plan import Action, Item, Plan, held_since
from shared.plan.replacements import awaited, remembered, replaced_in
from shared.ports import BranchHead, BranchRead, FleetRecord, PlanRecord, Ports

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
        seconds = wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.retries)
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
            if advance(request.act, ports):
                _plan_and_report(RolloutRequest(again=True, attempt=request.attempt), ports)
        case RolloutRequest():
            if advance(None, ports) or request.again:
                continued = request.model_copy(update={"again": True, "commit": ""})
                _plan_and_report(continued, ports, some=not request.again)
        case ToPlan():
            _plan_and_report(request, ports)
        case _:
            raise ValueError(f"the queue of the planner has no message of the kind {request.kind}")


def _plan_and_report(request: ToPlan, ports: Ports, *, some: bool = False) -> None:
    if _plan_head(request, ports, some=some):
        send(ReportRequest(), ports, message_id=f"report:now:{int(ports.clock().timestamp())}")


def _plan_head(request: ToPlan, ports: Ports, *, some: bool = False) -> bool:
    """Plan the head, if a read of the branch says so; return whether there is something new to report.

    A new read is saved with what follows from it. ``some``: only the clusters of its rollout that may start
    are needed.
    """
    fleet, now = ports.state.fleet(), ports.clock()
    read, at = serving_read(request, fleet, now), next_read_at(fleet, now)
    new = read is None
    if read is None and at > now:
        waiting = request.model_copy(update={"read_from": request.read_from or now})
        send_unlike(waiting, ports, after=(at - now).total_seconds())
        return False
    head = read.head if read is not None else _read_head(request, fleet, now, ports)
    if head is None:
        log.info("the branch could not be read; another request tries again")
        return new
    known = _with_head(head, fleet, now, ports) if new else fleet
    with about(commit=head.commit):
        confirmation = needs_confirmation(request, head, fleet, is_descendant=partial(_is_descendant, ports))
        if confirmation is not None:
            _confirm(request, confirmation, known, ports, new=new)
        elif head.commit == fleet.commit and not request.again and fleet.planning in ("", head.commit):
            _acknowledge(request, head, known, fleet, ports)
        else:
            _plan(request, head, known, ports, some=some)
            return True
    return new


def _read_head(request: ToPlan, fleet: FleetRecord, now: datetime, ports: Ports) -> BranchHead | None:
    """Return the head of the branch, None for a failed read, which is saved and reported."""
    failed = with_read(fleet, BranchRead(None, now))
    try:
        found = ports.repository.read_head(ports.config.branch)
        require_own(found, fleet, ports)
    except ReconcileError as error:
        if isinstance(error, OtherRepository):
            failed = replace(failed, other_source=source_of(found, ports))
        ports.telemetry.record(of_plan(request.commit, now, ports.clock(), error.kind))
        report_unreadable(request, error, failed, ports)
        return None
    return found


def _with_head(head: BranchHead, fleet: FleetRecord, now: datetime, ports: Ports) -> FleetRecord:
    read = with_read(fleet, BranchRead(head, now))
    return replace(read, source=source_of(head, ports), other_source=None)


def _acknowledge(
    request: ToPlan, read: BranchHead, known: FleetRecord, fleet: FleetRecord, ports: Ports
) -> None:
    """Save that a head is planned already; ``known`` is ``fleet`` with the last read."""
    head = read.commit
    log.info("commit %s is planned already", head[:8])
    # A push that restored this head counts as its plan: an earlier push is stale from now on. A push of
    # another commit does not: it would make those of the same second wait.
    restored = request.commit == head and announced_after(request, fleet)
    read_at = read.at if restored else fleet.head_read_at
    planned = replace(known, problem=None, waiting="", head_read_at=read_at)
    if fleet != planned:
        ports.state.save_fleet(planned)
    lost = known.problem is not None and known.problem.failed is Failed.REQUEST
    if request.attempt or lost:  # a request that was postponed may have reported an outage on the commit
        report_again(head, ports)


def _plan(request: ToPlan, read: BranchHead, fleet: FleetRecord, ports: Ports, *, some: bool) -> None:
    began, result = ports.clock(), Unexpected.__name__
    try:
        result = _make_plan(request, read, fleet, ports, some=some)
    except ReconcileError as error:
        result = error.kind
        report_failed_plan(read.commit, error, ports)
        raise
    finally:
        ports.telemetry.record(of_plan(read.commit, began, ports.clock(), result))


def _make_plan(request: ToPlan, read: BranchHead, fleet: FleetRecord, ports: Ports, *, some: bool) -> str:
    """Plan a head that was confirmed, and return the result: PLANNED, SUPERSEDED or the class of an error.

    ``fleet`` may have a read of the branch that is not saved yet.
    """
    head = read.commit
    try:
        planning = replace(fleet, planning=head, head_read_at=read.at, waiting="")
        planning = replace(planning, handover=begun(head, fleet, ports.clock()))
        planning = replace(planning, gaps=repaired_gaps(request, head, fleet, ports.state))
        started = ports.state.save_fleet(identified(planning, ports))
        saved_by_another = may_be_saved(fleet)
        supersede(saved_by_another, ports)
        found = partial_plan_of(head, fleet, ports) if some else None
        if found is not None:
            carry_out_partial_plan(found, started, ports)
            return PLANNED
        # Only now: an earlier read could lack the records that another planner has saved.
        listed = ports.state.clusters()
        records = {record.name: record for record in listed}
        known = read_known(records, ports)
        try:
            desired = read_desired(head, known, ports)
        except ReconcileError as error:
            # Nothing has changed: an incomplete read decides nothing.
            failed = BranchRead(None, fleet.last_read.started) if fleet.last_read else None
            as_before = replace(started, planning=fleet.planning, handover=fleet.handover)
            as_before = replace(as_before, head_read_at=fleet.head_read_at, gaps=fleet.gaps)
            report_unreadable(request, error, replace(as_before, last_read=failed), ports)
            return error.kind
        inputs = PlanInputs(desired, records, known, {record.key: record for record in listed.unreadable})
        ended = _carry_out(request, fleet.planning, inputs, started, ports)
        if ended and head != fleet.commit:
            request_outdated_marks(head, ports)
        if fleet.planning not in ("", head) and saved_by_another:
            again = PlanRequest(again=True, reason="another plan was not finished")
            send(again, ports, message_id=f"superseded:{started.etag}", after=SUPERSEDED_SECONDS)
    except Stale:
        # This planner lost its session, and another one took over. That plan may have met our changes.
        log.warning("another planner won the race; planning again")
        send_unlike(request.model_copy(update={"commit": "", "again": True}), ports, after=LOST_RACE_SECONDS)
        return SUPERSEDED
    return PLANNED


def _confirm(
    request: ToPlan, confirmation: HeadConfirmation, fleet: FleetRecord, ports: Ports, *, new: bool
) -> None:
    """Read the head again later; the fleet's record says why. ``new``: it has a read that is not saved yet.

    Requests that confirm the same head at the same time continue as one message.
    """
    now = ports.clock()
    at = whole_second(now + timedelta(seconds=CONFIRM_SECONDS * confirmation.reads))
    reason = describe_confirmation(request, confirmation, now)
    log.info("%s; reading again at %s", reason, at)
    begins = confirmation.reads == 1 and (new or not fleet.waiting)
    if new or begins:
        ports.state.save_fleet(replace(fleet, waiting=reason) if begins else fleet)
    again = request.model_copy(update={"confirmation": confirmation, "read_from": at})
    seconds = (at - now).total_seconds()
    if request.again or request.approval:
        send_unlike(again, ports, after=seconds)
        return
    place = f"{confirmation.head[:12]}:{confirmation.planned[:12]}:{confirmation.reads}"
    send(again, ports, message_id=f"confirm:{place}:{int(at.timestamp())}", after=seconds)


def _is_descendant(ports: Ports, commit: str, earlier: str) -> bool:
    """Return whether one commit comes after another. A failed read counts as no, which costs only time."""
    try:
        return ports.repository.is_descendant(commit, earlier)
    except ReconcileError as error:
        log.warning("whether %s comes after %s could not be read: %s", commit[:8], earlier[:8], error)
        return False


def _carry_out(
    request: ToPlan, unfinished: str, inputs: PlanInputs, fleet: FleetRecord, ports: Ports
) -> bool:
    """Save the plan of ``fleet.planning``, hand its jobs over, and then record the commit as planned.

    ``unfinished`` is the commit that was being planned before, "" for none. Return False for a hand-over that
    continues by another message. Raises Stale when superseded. The records in ``inputs`` were read after
    ``fleet`` was saved.
    """
    head = fleet.planning
    continues = isinstance(request, RolloutRequest) and head == fleet.commit
    earlier = ports.state.plan(head)
    fleet = replace(fleet, first_generation=first_generation(inputs, fleet, ports))
    approved = approved_plan(request, inputs, fleet, earlier, ports)
    before = earlier.plan if earlier else None
    planned = approved.plan.without_oversized(before)
    plan, fleet = hold_items(planned, before, inputs, fleet, ports, continues=continues)
    plan = plan.resume(before)
    plan = replace(plan, items=tuple(_with_uid(item, inputs, fleet, ports) for item in plan.items))
    plan_record = PlanRecord(
        plan,
        ports.clock(),
        approval=approved.approval,
        reports=earlier.reports if earlier else 0,
        review=approved.review,
        writing=earlier.writing if earlier else None,
        held=_held(plan, earlier, fleet, ports),
    )
    store_approval(earlier, plan_record, ports)
    ports.state.save_plan(plan_record)
    log.info("plan of %s: %s", head[:8], plan.summary)
    index_groups(plan, inputs, fleet, ports)
    small = small_changes(plan, unfinished, inputs, ports)
    staged = stage(plan, inputs, fleet, ports)
    held = staged.held | (retried(plan, before) if continues else frozenset())
    replaced, known = replaced_in(inputs.desired, inputs.records, fleet.replacing), fleet.replacing
    # Before the first record: a new cluster that has one no longer shows whose delete it holds.
    fleet = replace(fleet, rollout=staged.commit, last_valid=staged.last_valid)
    fleet = replace(fleet, replacing={**known, **remembered(replaced, plan.items)})
    plan, fleet, ended = hand_over(plan_record, small, inputs, fleet, ports, held=held)
    if request.approval is not None:
        answer_approval(request.approval, plan, ports)
    if not ended:
        log.info("%s: %s; continuing by another message", head[:8], fleet.handed_over)
        save_fingerprints(plan, inputs, ports)
        request_handover(fleet, ports, rollout=continues)
        return False
    ports.state.save_plan(replace(plan_record, plan=replace(plan, applied=True)))
    save_fingerprints(plan, inputs, ports)
    again = (item for item in plan.items if item.awaits_deletion or item.action is Action.REBUILD)
    awaiting = tuple(item.cluster for item in again)
    notified = inputs.desired.notifications
    if notified is not None:
        fleet = replace(fleet, routes=routes_of(notified), subscriptions=inputs.desired.subscriptions)
        fleet = with_promotions(fleet, inputs.desired, plan_record.at)
    ended_fleet = replace(fleet, commit=head, at=plan_record.at, planning="", handover=None, problem=None)
    ended_fleet = replace(ended_fleet, awaiting_deletion=awaiting, unreadable=plan.unreadable)
    replacing = remembered(replaced, plan.items)
    replacing = {**{old: new for old, new in known.items() if old in inputs.unreadable}, **replacing}
    ports.state.save_fleet(replace(ended_fleet, replacing=replacing, awaiting_ready=awaited(plan.items)))
    if fleet.rollout and oversized(plan) - oversized(plan_record.plan):
        send(RolloutRequest(), ports)  # it goes on without them
    if fleet.promotions:
        send(PromoteRequest(), ports)
    return True


def _held(plan: Plan, earlier: PlanRecord | None, fleet: FleetRecord, ports: Ports) -> Mapping[str, datetime]:
    """Return since when each item is on hold; ``earlier`` is the plan of the same commit, None for none."""
    if not any(item.hold for item in plan.items):
        return {}
    former = earlier or ports.state.plan(fleet.commit)
    since = former.held if former else {}
    return held_since(plan, former.plan if former else None, since, ports.clock())


def _with_uid(item: Item, inputs: PlanInputs, fleet: FleetRecord, ports: Ports) -> Item:
    """Return the item of a new cluster with its uid and generation, so that a second attempt has the same."""
    if not item.begins or item.uid:
        return item
    uid = new_life(ports.unique(), inputs.desired.clusters[item.cluster].rebuild)
    return item.with_life(uid, max(fleet.first_generation, 1))
