"""The safety net: timers find the work that lost webhooks, crashes and lost messages left undone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from shared.app import outbox
from shared.app.door import newer_epoch
from shared.app.notifications import notifications_of
from shared.app.outbox import send, send_all
from shared.app.own_repository import is_own
from shared.app.pull_requests.pull_requests import preview_new
from shared.app.records import Transition, change
from shared.app.runs import record_end
from shared.cluster.failures.errors import Dependency, ReconcileError, Stale, Unreadable
from shared.cluster.failures.fleet_problem import FleetProblem
from shared.cluster.history import FoundBy
from shared.cluster.job import JobQueue
from shared.cluster.queues.continuations import Continuation, continuation_of, overdue, served_until
from shared.cluster.queues.envelopes import Envelope, continuation
from shared.cluster.queues.message_parts import MissedHead
from shared.cluster.queues.messages import (
    NotifyRequest,
    PlanRequest,
    ReportRequest,
    ReviewRequest,
    RolloutRequest,
)
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import sleep_event
from shared.cluster.reporting.measurements import of_plan, of_queues
from shared.cluster.transitions.acceptance import accept_sleep
from shared.frozen import replace
from shared.logs import about, about_record
from shared.ports import BranchHead, Capability, FleetRecord, GitHost, PlanRecord, Ports

log = logging.getLogger(__name__)

LONG_UNREAD = timedelta(minutes=15)
"""The timer asks every five minutes for the plan of a head that was not planned."""
STANDS_STILL = timedelta(minutes=2)
"""A plan without progress for so long is planned again by a timer; a part of a hand-over takes seconds."""

WEBHOOK_SECONDS = 15.0
"""How long the timer waits for the webhook of a head that it is the first to see: it comes within seconds."""

UNREAD_REVIEWS = timedelta(hours=1)
"""How long after a failed attempt the reviews of a plan are read again."""


def plan_missed_head(ports: Ports) -> bool:
    """Queue a plan of a head that needs one. A read that fails becomes the fleet's problem, which the next
    plan clears.

    A head that needs none shows that requests to plan come to their end, and so does a
    branch that the planner read a short time ago, also if it cannot plan the commit.
    """
    began = ports.clock()
    try:
        read = ports.git_host.read_head(ports.config.branch)
    except ReconcileError as error:
        ports.services.telemetry.record(of_plan("", began, ports.clock(), error.kind))
        _report_unreadable(error, ports)
        return False
    requested = request_missing_plan(read, FoundBy.TIMER, ports)
    if not requested or _was_read(ports.state.fleet(), began):
        record_end("plan_missed_head", ports)
    return requested


def plan_missed_pulls(ports: Ports) -> None:
    """Queue the plans of pull requests with a new head, where no webhook announces one."""
    host = ports.git_host
    if Capability.PULLS not in host.capabilities or _delivers(host):
        return
    preview_new(ports)


def _delivers(host: GitHost) -> bool:
    """Return whether webhooks announce pull requests: a host may have stopped to deliver them."""
    if Capability.WEBHOOKS not in host.capabilities:
        return False
    try:
        host.deliveries()
    except Dependency:
        return False
    except ReconcileError as error:
        log.info("%s does not say whether it delivers: %s", host.name, error)
    return True


def _was_read(fleet: FleetRecord, now: datetime) -> bool:
    return fleet.reads.last is not None and now - fleet.reads.last.started < LONG_UNREAD


def request_missing_plan(read: BranchHead, found_by: FoundBy, ports: Ports) -> bool:
    """Queue a plan when the head is not what was planned last, or a plan failed, waits or was not finished.

    Leaves a plan of the head alone that makes progress. The id of the request changes every minute, so that a
    request that had no effect can be repeated; that of an operator changes every second. The timer lets the
    webhook of a head come first that was pushed a moment ago.
    """
    fleet = _with_expiry(read, ports.state.fleet(), ports)
    head, known = read.commit, is_own(read, fleet, ports)
    again = bool(fleet.planning or newer_epoch(fleet, ports))
    again = again or (head == fleet.commit and _is_planned_anew(fleet, ports))
    if head == fleet.commit and known and not (fleet.problem or fleet.waiting or again):
        return False
    now = ports.clock()
    if head == fleet.planning and known and (_makes_progress(fleet, now) or fleet.paused(now)):
        return False
    with about(commit=head):
        log.warning("commit %s was not planned, or not to the end; planning it now", head[:8])
    new = bool(fleet.commit) and not (fleet.problem or fleet.waiting or fleet.planning)
    every = 60 if found_by is FoundBy.TIMER else 1
    slot = int(ports.clock().timestamp() // every)
    # The request announces no commit: this read may be as stale as the planner's.
    found = MissedHead(by=found_by, at=ports.clock())
    request = PlanRequest(reason="missed head", again=again, read_from=ports.clock(), found=found)
    after = WEBHOOK_SECONDS if new and found_by is FoundBy.TIMER else 0
    send(request, ports, message_id=f"missed:{found_by}:{head}:{slot}", after=after)
    return True


def _is_planned_anew(fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether the last plan lacks a cluster whose record can be read now, or cannot be read itself."""
    if fleet.expects.unreadable:
        now = ports.state.clusters_named(fleet.expects.unreadable)
        if len(now.unreadable) < len(fleet.expects.unreadable):
            return True
    return bool(fleet.commit) and ports.state.plan(fleet.commit) is None


def _with_expiry(read: BranchHead, fleet: FleetRecord, ports: Ports) -> FleetRecord:
    """Return the fleet's record with when the token ends: saved where a read finds another one."""
    last, expires = fleet.reads.last, read.credential_expires
    if last is None or last.head is None or last.head.credential_expires == expires:
        return fleet
    head = replace(last.head, credential_expires=expires)
    reads = replace(fleet.reads, last=replace(last, head=head))
    try:
        return ports.state.save_fleet(replace(fleet, reads=reads))
    except Stale:
        return ports.state.fleet()  # the next tick finds it again


def _makes_progress(fleet: FleetRecord, now: datetime) -> bool:
    return fleet.handover is not None and now - fleet.handover.at < STANDS_STILL


def _report_unreadable(error: ReconcileError, ports: Ports) -> None:
    fleet = ports.state.fleet()
    approve_again = fleet.problem.approve_again if fleet.problem else ""
    problem = FleetProblem.of_read(error, fleet.commit, approve_again)
    log.error("%s. %s", problem, problem.suggested_action)
    if fleet.problem == problem:
        return
    try:
        ports.state.save_fleet(replace(fleet, problem=problem))
    except Stale:
        log.info("the planner has saved the fleet's record meanwhile; it reads the branch itself")


def wake_notifier(ports: Ports) -> None:
    """Ask the notifier to look, where there is somebody to notify: its own message may be lost."""
    if ports.state.fleet().rules.routes:
        send(NotifyRequest(), ports)


def resend_overdue(ports: Ports) -> int:
    """Send the continuation of every overdue record again; return how many there are.

    A continuation is overdue two leases after its time: by then a worker that received it has ended or died.
    One that waits in a backlog is not. In a pause none is sent, until no clock says that it lasts.
    """
    now, continuations = ports.clock(), ports.state.continuations()
    pause = ports.state.fleet().paused(now - ports.config.clocks_differ)
    ports.services.telemetry.record(of_queues(continuations, now))
    served = {queue: served_until(continuations, queue, now) for queue in JobQueue}

    def times(continuation: Continuation) -> int:
        if pause is not None:
            return 0
        return overdue(
            continuation,
            now=now,
            grace=2 * ports.config.timing.lease_seconds,
            served=served[continuation.queue],
        )

    late, names = (
        list[Envelope](),
        [continuation.name for continuation in continuations if times(continuation)],
    )
    for record in ports.state.clusters_named(names) if names else ():
        again = times(continuation_of(record)) if record.job.active else 0
        if again:
            late += continuation(record, now, f"overdue{again}")  # each gets through once
            with about_record(record):
                due = record.job.due(now)
                log.warning("%s: its continuation is overdue since %s; sending it again", record.name, due)
    send_all(late, ports)
    open_plans = ports.state.open_plans()
    if not all(plan_record.settled for plan_record in open_plans):
        outbox.send(ReportRequest(), ports)
    _ask_for_unread_reviews(open_plans, ports)
    fleet = outbox.request_awaited_plan(ports)
    outbox.request_awaited_deletes(fleet, ports)
    if fleet.rollout or fleet.closed.lets_start(now):
        outbox.send(RolloutRequest(), ports)
    return len(late)


def _ask_for_unread_reviews(open_plans: Sequence[PlanRecord], ports: Ports) -> None:
    """Have reviews of the newest plan read again that could not be read: a permission may be there now."""
    before = ports.clock() - UNREAD_REVIEWS
    unread = [r.plan.commit for r in open_plans if r.review and r.review.unread_since(before)]
    newest = ports.state.fleet().commit if unread else ""
    if newest in unread:
        outbox.send(ReviewRequest(commit=newest), ports)


# Clusters that are to sleep now: a timer finds them, and reads the records of these alone.


MOST = 500
"""So many clusters are put to sleep in a run of the timer; the next one has the others."""


def put_to_sleep(ports: Ports) -> int:
    """Start the job that has a cluster sleep, where it is time for that; return how many there are.

    In a pause none is started, until no clock says that it lasts. A record that cannot be read is left.
    """
    now = ports.clock()
    due = ports.state.due_to_sleep(now)[:MOST]
    if not due or ports.state.fleet().paused(now - ports.config.clocks_differ):
        return 0
    for name in due:
        try:
            change(name, partial(_asleep, ports=ports), ports)
        except Unreadable as error:
            with about(cluster=name):
                log.warning("%s is not put to sleep: %s", name, error)
    return len(due)


def _asleep(record: ClusterRecord | None, *, ports: Ports) -> Transition | None:
    """Return the record with its job; one whose sleep was missed as a whole is due for the next one."""
    now = ports.clock()
    if record is None or not record.ready:
        return None
    after = accept_sleep(record, now)
    if after is None:
        return Transition(replace(record, updated=now))
    events = [sleep_event(after)]
    return Transition(after, events, notifications_of(record, after, ports), then=continuation(after, now))
