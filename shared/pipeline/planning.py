"""The planner: one actor per fleet, serialised by its Service Bus session.

It reads the head of the branch, decides the plan, saves it, hands each job over, and only then notes the
commit as planned. Every part is an ensure: a crash between any two lines is mended by running it again.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.fleet.desired import Desired, DesiredFleet, resolve
from shared.fleet.layout import Files, manifest_paths
from shared.fleet.plan import Action, Item, make_plan
from shared.jobs.errors import ReconcileError, Retryable, Stale
from shared.jobs.messages import PlanRequest
from shared.jobs.retry import wait_before_retry
from shared.jobs.row import ClusterRow, accept_change, accept_delete, accept_new
from shared.jobs.settle import accepted_event
from shared.pipeline import report
from shared.pipeline.intake import request_plan
from shared.pipeline.send import send_continuation
from shared.ports import FleetRow, PlanRecord, Ports

log = logging.getLogger(__name__)

STALE_HEAD_SECONDS = 5.0
STALE_HEAD_ATTEMPTS = 3
READ_ATTEMPTS = 8


def handle(request: PlanRequest, ports: Ports) -> None:
    """Plan the head of the branch and hand its jobs over, or bring the commit statuses up to date."""
    if request.kind == "plan":
        _plan_head(request, ports)
    report.report_open_plans(ports)


def _plan_head(request: PlanRequest, ports: Ports) -> None:
    fleet = ports.state.fleet()
    try:
        head = ports.repository.head(ports.config.branch)
        if request.commit not in ("", head):
            _look_again(request, ports)
        if head == fleet.commit and not request.again:
            log.info("commit %s is planned already", head[:8])
            return
        desired = read_desired(head, ports)
    except ReconcileError as error:
        # Nothing was changed: a read that did not complete decides nothing.
        _could_not_read(request, error, fleet, ports)
        return
    rows = {row.name: row for row in ports.state.clusters()}
    earlier = ports.state.plan(head)
    plan = make_plan(head, desired, rows).resume(earlier.plan if earlier else None)
    record = PlanRecord(plan, ports.clock())
    ports.state.save_plan(record)
    log.info("plan of %s: %s", head[:8], plan.summary)
    for item in plan.items:
        if item.acts:
            _hand_over(item, desired.clusters.get(item.cluster), head, ports)
    ports.state.save_plan(replace(record, plan=replace(plan, applied=True)))
    ports.state.save_fleet(replace(fleet, commit=head, at=ports.clock(), problem=""))


def _could_not_read(request: PlanRequest, error: ReconcileError, fleet: FleetRow, ports: Ports) -> None:
    """Note why, and try again later; after the last try the timer that looks for missed heads goes on."""
    problem = f"the repository could not be read: {error.kind}: {error}"
    log.error("%s (attempt %d)", problem, request.attempt + 1)
    if fleet.problem != problem:
        ports.state.save_fleet(replace(fleet, problem=problem))
    wait = wait_before_retry(error, request.attempt + 1, ports.random())
    if isinstance(error, Retryable) and wait is not None and request.attempt < READ_ATTEMPTS:
        _request_again(request, wait, ports)


def request_if_awaited(cluster: str, ports: Ports) -> None:
    """Plan once more when the last plan held a cluster back until its deletion had finished."""
    record = ports.state.plan(ports.state.fleet().commit)
    items = record.plan.items if record else ()
    if any(item.cluster == cluster and item.action is Action.HELD for item in items):
        message_id = f"deleted:{cluster}:{ports.unique()}"
        request_plan(PlanRequest(again=True, reason="deleted"), message_id=message_id, ports=ports)


def _look_again(request: PlanRequest, ports: Ports) -> None:
    """Read the head once more soon: it was not the commit that the push announced.

    GitHub may show a branch as it was a moment before; a late message of an older push costs a few reads.
    """
    if request.attempt < STALE_HEAD_ATTEMPTS:
        _request_again(request, STALE_HEAD_SECONDS * (request.attempt + 1), ports)


def _request_again(request: PlanRequest, seconds: float, ports: Ports) -> None:
    attempt = request.attempt + 1
    message_id = f"again:{request.commit or 'head'}:{attempt}:{ports.unique()}"
    request_plan(
        request.model_copy(update={"attempt": attempt}), message_id=message_id, ports=ports, after=seconds
    )


def read_desired(commit: str, ports: Ports) -> DesiredFleet:
    """Return what a commit asks for: one call for the tree, one for every manifest not seen before."""
    entries = ports.repository.tree(commit)
    plain = {entry.path: entry.sha for entry in entries if entry.plain}
    files = Files(plain, frozenset(entry.path for entry in entries if not entry.plain))
    contents = {path: ports.repository.blob(plain[path]) for path in manifest_paths(files)}
    return resolve(ports.config.fleet, files, contents.__getitem__)


def _hand_over(item: Item, desired: Desired | None, commit: str, ports: Ports) -> None:
    """Save the row's new generation, unless it has it already, and send its continuation."""
    while True:
        row = ports.state.cluster(item.cluster)
        if row is not None and row.generation >= item.generation:
            send_continuation(row, ports)
            return
        accepted = _accepted(item, row, desired, commit, ports)
        if accepted is None:
            return
        try:
            saved = ports.state.save(accepted)
        except Stale:
            continue  # a worker saved its step meanwhile; take its row and accept on top of it
        ports.state.append([accepted_event(saved)])
        send_continuation(saved, ports)
        return


def _accepted(
    item: Item, row: ClusterRow | None, desired: Desired | None, commit: str, ports: Ports
) -> ClusterRow | None:
    now = ports.clock()
    if item.action is Action.DELETE:
        return accept_delete(row, commit=commit, now=now) if row else None
    if desired is None:
        return None
    if row is None:
        # Only a plan that saw no row may make one: an update whose row is gone met a finished delete.
        made = accept_new(desired, uid=ports.unique(), commit=commit, now=now)
        return made if item.action is Action.CREATE else None
    return accept_change(row, desired, commit=commit, now=now)
