"""The planner: one actor per fleet, serialised by its Service Bus session.

It reads the head of the branch, decides the plan, saves it, hands each job over, and only then notes the
commit as planned. Every part is an ensure: a crash between any two lines is mended by running it again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from shared.fleet.desired import DesiredFleet
from shared.fleet.planning.plan import Item, make_plan
from shared.fleet.resolve.fingerprints import Known
from shared.jobs.diagnosis import UNREAD
from shared.jobs.errors import ReconcileError, Retryable, Stale
from shared.jobs.messages import Approval, PlanRequest
from shared.jobs.record import ClusterRecord
from shared.jobs.retry import wait_before_retry
from shared.pipeline.outbox import request_plan, request_plan_again
from shared.pipeline.planner import commit_status
from shared.pipeline.planner.branch_head import (
    CONFIRM_SECONDS,
    announced_after,
    describe_confirmation,
    needs_confirmation,
)
from shared.pipeline.planner.handover import hand_over, supersede
from shared.pipeline.pull_requests import pull_requests
from shared.pipeline.repository.commit_reader import read_desired, read_known, save_fingerprints
from shared.ports import FleetRecord, PlanRecord, Ports

log = logging.getLogger(__name__)

FASTER_SECONDS = 5.0
"""So long a planner waits that found another one faster."""
READ_ATTEMPTS = 8
OVERTAKEN_SECONDS = 120.0
"""After so long a plan that met an unfinished one is made again: that planner may have made a row since."""


def handle(request: PlanRequest, ports: Ports) -> None:
    """Plan the head of the branch and hand its jobs over, or a pull request; bring statuses up to date."""
    if request.kind == "pull":
        pull_requests.handle(request, ports)
        return
    if request.kind == "plan":
        _plan_head(request, ports)
    commit_status.report_open_plans(ports)


def _plan_head(request: PlanRequest, ports: Ports) -> None:
    fleet = ports.state.fleet()
    try:
        look = ports.repository.look(ports.config.branch)
    except ReconcileError as error:
        _could_not_read(request, error, fleet, ports)
        return
    head, confirmation = (
        look.commit,
        needs_confirmation(request, look, fleet, is_descendant=partial(_comes_after, ports)),
    )
    if confirmation is not None:
        seconds = CONFIRM_SECONDS * confirmation.looks
        why = describe_confirmation(request, confirmation, ports.clock())
        log.info("%s; looking again in %d s", why, seconds)
        if confirmation.looks == 1:
            ports.state.save_fleet(replace(fleet, waiting=why))
        request_plan_again(
            request.model_copy(update={"confirmation": confirmation}), after=seconds, ports=ports
        )
        return
    if head == fleet.commit and not request.again and fleet.planning in ("", head):
        log.info("commit %s is planned already", head[:8])
        # A push that came back to it is as good as a plan: what was pushed before is old from now on.
        looked = look.at if announced_after(request, fleet) else fleet.looked
        settled = replace(fleet, problem="", waiting="", looked=looked)
        if fleet != settled:
            ports.state.save_fleet(settled)
        return
    try:
        begun = ports.state.save_fleet(replace(fleet, planning=head, looked=look.at, waiting=""))
        if fleet.planning:
            supersede(fleet.planning, ports)
        # Only now: rows that were read before it could be those from before another planner's work.
        records = {record.name: record for record in ports.state.clusters()}
        known = read_known(records, ports)
        try:
            desired = read_desired(head, known, ports)
        except ReconcileError as error:
            # Nothing was changed: a read that did not complete decides nothing.
            as_before = replace(begun, planning=fleet.planning, looked=fleet.looked)
            fleet = ports.state.save_fleet(as_before)
            _could_not_read(request, error, fleet, ports)
            return
        _carry_out(request, head, desired, records, known, begun, ports)
        if head != fleet.commit:
            pull_requests.mark_outdated(head, ports)
        if fleet.planning not in ("", head):
            again = PlanRequest(again=True, reason="another plan was not finished")
            request_plan(again, message_id=f"overtaken:{begun.etag}", ports=ports, after=OVERTAKEN_SECONDS)
    except Stale:
        # Another planner took over, for this one lost its session. Its plan may have met our changes.
        log.warning("another planner was faster; planning once more")
        request_plan_again(
            request.model_copy(update={"commit": "", "again": True}), after=FASTER_SECONDS, ports=ports
        )


def _comes_after(ports: Ports, commit: str, earlier: str) -> bool:
    """Tell whether one commit comes after another; what cannot be told only costs more looks."""
    try:
        return ports.repository.is_descendant(commit, earlier)
    except ReconcileError as error:
        log.warning("whether %s comes after %s could not be read: %s", commit[:8], earlier[:8], error)
        return False


def _carry_out(
    request: PlanRequest,
    head: str,
    desired: DesiredFleet,
    records: Mapping[str, ClusterRecord],
    known: Mapping[str, Known],
    fleet: FleetRecord,
    ports: Ports,
) -> None:
    """Save the plan, hand each job over, note the commit as planned; raise Stale when another planner did.

    ``rows`` were read after ``fleet`` was saved.
    """
    earlier = ports.state.plan(head)
    approval = _approval(request, head, earlier if fleet.commit == head else None)
    approved = frozenset(approval.clusters) if approval else frozenset[str]()
    made = make_plan(head, desired, records, now=ports.clock(), approved=approved).resume(
        earlier.plan if earlier else None
    )
    plan = replace(made, items=tuple(_with_uid(item, ports) for item in made.items))
    plan_record = PlanRecord(plan, ports.clock(), approval=approval)
    ports.state.save_plan(plan_record)
    log.info("plan of %s: %s", head[:8], plan.summary)
    hand_over(plan, desired, fleet, ports)
    ports.state.save_plan(replace(plan_record, plan=replace(plan, applied=True)))
    save_fingerprints(plan, desired, records, known, ports)
    awaiting = tuple(item.cluster for item in plan.items if item.awaits_deletion)
    planned = replace(fleet, commit=head, at=ports.clock(), planning="", awaiting=awaiting, problem="")
    ports.state.save_fleet(planned)


def _approval(request: PlanRequest, head: str, earlier: PlanRecord | None) -> Approval | None:
    """Return the approval that counts at this commit: of exactly what was held, or one given before.

    ``earlier`` is the plan that stands. One of before other plans says nothing: a cluster of that name may
    have begun another life.
    """
    if earlier is None:
        return None
    given = request.approval
    exact = given is not None and given.commit == head and {*given.clusters} == earlier.plan.held_deletes
    return given if exact else earlier.approval


def _with_uid(item: Item, ports: Ports) -> Item:
    """Give a cluster that begins its uid now, so that a second attempt gives the same."""
    return replace(item, uid=ports.unique()) if item.begins and not item.uid else item


def _could_not_read(request: PlanRequest, error: ReconcileError, fleet: FleetRecord, ports: Ports) -> None:
    """Note why, and try again later; after the last try the timer that looks for missed heads goes on."""
    problem = f"{UNREAD}: {error.kind}: {error}"
    wait = wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.retries)
    again = wait if isinstance(error, Retryable) and request.attempt < READ_ATTEMPTS else None
    if again is None and request.approval is not None:
        problem += f"; approve {request.approval.commit[:8]} again"
    log.error("%s (attempt %d)", problem, request.attempt + 1)
    if fleet.problem != problem:
        ports.state.save_fleet(replace(fleet, problem=problem))
    if again is not None:
        request_plan_again(
            request.model_copy(update={"attempt": request.attempt + 1}), after=again, ports=ports
        )
