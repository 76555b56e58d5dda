"""Hand a plan over: save the new generation of each cluster, and send its first message.

Two planners may run at once, because a frozen planner loses its session to another one. Every save here
follows a check that no other planner has started.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from shared.fleet.desired import Desired
from shared.fleet.planning.holds import Hold, HoldKind
from shared.fleet.planning.plan import Action, Item, Plan
from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.resolve.repository_layout import cluster_path
from shared.jobs.acts import by_whom
from shared.jobs.errors import Stale, TooLarge
from shared.jobs.events import accepted_event
from shared.jobs.messages import Approval
from shared.jobs.record import ClusterRecord, accept_change, accept_delete, accept_new, accept_retry
from shared.pipeline.outbox import send_continuation
from shared.ports import FleetRecord, PlanRecord, Ports

log = logging.getLogger(__name__)


def hand_over(plan_record: PlanRecord, desired: DesiredFleet, fleet: FleetRecord, ports: Ports) -> Plan:
    """Start the job of every item that acts; raise Stale when another planner has started.

    Return the plan as it was carried out: an item whose record cannot be stored is an invalid manifest, and
    concerns no other cluster. A cluster whose delete started meanwhile awaits its end.
    """
    items = []
    for item in plan_record.plan.items:
        try:
            wanted = desired.clusters.get(item.cluster)
            started = not item.acts or _start(item, wanted, plan_record, fleet, ports)
            items.append(item if started else _awaits_deletion(item))
        except TooLarge as error:
            log.error("%s: %s", item.cluster, error)  # noqa: TRY400 - it is a manifest's problem
            items.append(_not_storable(item, error))
    return replace(plan_record.plan, items=tuple(items))


def _not_storable(item: Item, error: TooLarge) -> Item:
    details = {"problem": f"{cluster_path(item.cluster)}: {error}"}
    if item.begins:
        hold = Hold(HoldKind.INVALID_NEW_MANIFEST, details)
        return Item(item.cluster, Action.INVALID, hold=hold)
    hold = Hold(HoldKind.INVALID_MANIFEST, details)
    generation = item.generation - (item.action is not Action.RETRY)
    return Item(item.cluster, Action.INVALID, generation, item.uid, hold=hold)


def _awaits_deletion(item: Item) -> Item:
    """Return the item of an update that a delete prevents; the end of that delete requests another plan."""
    hold = Hold(HoldKind.AWAITS_DELETION)
    return Item(item.cluster, Action.ON_HOLD, item.generation - 1, item.uid, hold=hold)


def supersede(commit: str, ports: Ports) -> None:
    """Save the records that an unfinished plan acts on, unchanged, so that they have another version.

    The planner of that plan may be frozen between its read of the fleet's record and its save of a cluster's.
    That save now fails, and the planner's next read shows that the plan was superseded.
    """
    unfinished = ports.state.plan(commit)
    for item in unfinished.plan.items if unfinished else ():
        while item.acts and (record := ports.state.cluster(item.cluster)) is not None:
            try:
                ports.state.save(record)
            except Stale:
                continue
            break


def _start(
    item: Item, desired: Desired | None, plan_record: PlanRecord, fleet: FleetRecord, ports: Ports
) -> bool:
    """Save the new generation of a record that does not have it yet, and send the record's continuation.

    Return False if a delete prevents that. The check for another planner is between the read and the save:
    see ``supersede``.
    """
    while True:
        record = ports.state.cluster(item.cluster)
        if ports.state.fleet().etag != fleet.etag:
            raise Stale("another planner has started")
        if item.action is Action.UPDATE and _prevented(item, record):
            return False
        accepted = _accepted(item, record, desired, plan_record.plan.commit, ports)
        if accepted is None:
            if record is not None:
                send_continuation(record, ports)
            return True
        try:
            saved = ports.state.save(replace(accepted, installation=fleet.installation))
        except Stale:
            continue  # a worker has saved its step since; accept on top of that record
        restored = record is not None and record.deleting and not saved.deleting
        approved = _approved_by(saved, plan_record.approval)
        ports.state.append([accepted_event(saved, approved, restored=restored)])
        send_continuation(saved, ports)
        return True


def _prevented(item: Item, record: ClusterRecord | None) -> bool:
    """Return whether the delete of a cluster began, or ended, since the plan took its removal back."""
    if record is None:
        return True
    before = (record.uid, record.generation) == (item.uid, item.generation - 1)
    return before and record.deleting and not record.restorable


def _approved_by(record: ClusterRecord, approval: Approval | None) -> str:
    """Return who approved the delete of a cluster, and why; "" for no approval."""
    if approval is None or not record.deleting or record.name not in approval.clusters:
        return ""
    return by_whom(approval.by, approval.reason)


def _accepted(
    item: Item, record: ClusterRecord | None, desired: Desired | None, commit: str, ports: Ports
) -> ClusterRecord | None:
    """Return the record with the item accepted; None if it was accepted before, or if the record is newer."""
    now = ports.clock()
    if record is None:
        # Only a plan that saw no record may create one: the record of an update was deleted since.
        if not item.begins or desired is None:
            return None
        return accept_new(desired, uid=item.uid, commit=commit, now=now)
    if item.action is Action.RETRY:
        current = record.failed and record.generation == item.generation
        return accept_retry(record, now=now) if current else None
    if record.uid != item.uid or record.generation != item.generation - 1:
        return None
    if item.action is Action.DELETE:
        return accept_delete(record, commit=commit, now=now)
    return accept_change(record, desired, commit=commit, now=now) if desired else None
