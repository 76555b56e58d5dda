"""Hand a plan over: save the new generation of each cluster, and send its first message.

Some clusters at a time, and within the limits of an invocation: a hand-over that takes longer continues by
another message, so that a newer push comes in between.

Two planners may run at once, because a frozen planner loses its session to another one. Every save here
follows a check that no other planner has started: a conditional write of the fleet's record, which names the
clusters that may be saved until the next check.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from shared.app.outbox import send_continuations
from shared.app.records import Transition, change
from shared.app.repository import PlanInputs
from shared.cluster.continuations import continuations_of
from shared.cluster.failures.errors import Stale, TooLarge, Unreadable
from shared.cluster.history import by_whom
from shared.cluster.messages import Approval
from shared.cluster.pace import small_change, starting, starts
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import accepted_event
from shared.cluster.transitions.acceptance import (
    accept_change,
    accept_delete,
    accept_new,
    accept_retry,
    under_installation,
)
from shared.frozen import replace
from shared.language.cluster_systems import systems_in
from shared.language.desired import Desired
from shared.language.resolve.repository_layout import cluster_path
from shared.logs import about_record
from shared.plan.holds import Hold, HoldKind
from shared.plan.make_plan import unreadable_item
from shared.plan.plan import REMOVALS, Action, Item, Plan
from shared.plan.system_removals import keeping
from shared.ports import FleetRecord, Handover, PlanRecord, Ports

log = logging.getLogger(__name__)


class HandedOver(NamedTuple):
    """The plan as it was carried out, the fleet's record as saved last, and whether nothing is left to do."""

    plan: Plan
    fleet: FleetRecord
    ended: bool


def small_changes(plan: Plan, unfinished: str, inputs: PlanInputs, ports: Ports) -> frozenset[str]:
    """Return the clusters of a plan that are a small change; ``unfinished`` is the commit planned before."""
    before = ports.state.plan(unfinished) if unfinished not in ("", plan.commit) else None
    left = {i.cluster for i in before.plan.items if _is_left(i, inputs)} if before else frozenset[str]()
    running = continuations_of(inputs.records.values())
    return small_change(plan.items, left, running, most=ports.config.small_change)


def hand_over(
    plan_record: PlanRecord,
    small: Collection[str],
    inputs: PlanInputs,
    fleet: FleetRecord,
    ports: Ports,
    *,
    held: Collection[str] = (),
) -> HandedOver:
    """Start the job of every item that acts, ``small`` changes first; raise Stale for another planner.

    The items of ``held`` clusters keep their last generation: they start with a later part of the rollout.

    An item whose record cannot be stored is an invalid manifest, and concerns no other cluster. A cluster
    whose delete started meanwhile awaits its end. The records in ``inputs`` were read after ``fleet`` was
    saved. An item that its record has already was handed over before, see ``supersede``.
    """
    acting = [item for item in plan_record.plan.items if item.acts and item.cluster not in held]
    left = sorted((i for i in acting if _is_left(i, inputs)), key=lambda item: item.cluster not in small)
    since = fleet.handover.since if fleet.handover else plan_record.at
    later = starts(acting, inputs.desired.clusters, small, since)
    changed: dict[str, Item] = {}
    began, accepted = ports.elapsed(), False
    while left:
        done = len(acting) - len(left)
        some, left = left[: ports.config.handover_clusters], left[ports.config.handover_clusters :]
        names = tuple(item.cluster for item in some)
        fleet = _check(fleet, Handover(ports.clock(), since, done, len(acting), names), ports)
        start = partial(
            _start,
            plan_record=plan_record,
            small=small,
            later=later,
            inputs=inputs,
            fleet=fleet,
            ports=ports,
        )
        started: Sequence[_Started] = ports.together(start, some)
        send_continuations([each.record for each in started if each.record is not None], ports)
        changed |= {each.item.cluster: each.item for each in started}
        accepted = accepted or any(each.item.acts for each in started)
        # A part that accepts nothing would be repeated indefinitely.
        if left and accepted and ports.elapsed() - began >= ports.config.handover_seconds:
            done = len(acting) - len(left)
            fleet = _check(fleet, Handover(ports.clock(), since, done, len(acting)), ports)
            break
    items = (changed.get(item.cluster, item) for item in plan_record.plan.items)
    return HandedOver(replace(plan_record.plan, items=tuple(items)), fleet, ended=not left)


def _is_left(item: Item, inputs: PlanInputs) -> bool:
    return item.acts and _is_next(item, inputs.records.get(item.cluster))


def begun(head: str, fleet: FleetRecord, now: datetime) -> Handover:
    """Return the progress of a plan that begins after what the fleet's record says of the last one.

    It keeps what another planner may still save, until the first check says what this one saves.
    """
    if fleet.handover is None:
        return Handover(now, now)
    if fleet.planning != head:
        return Handover(now, now, in_flight=fleet.handover.in_flight)
    return replace(fleet.handover, at=now, since=fleet.handover.since if fleet.handover.done else now)


def _check(fleet: FleetRecord, handover: Handover, ports: Ports) -> FleetRecord:
    """Save how far the hand-over is, and which clusters are next; raise Stale for another planner."""
    return ports.state.save_fleet(replace(fleet, handover=handover))


class _Started(NamedTuple):
    """An item as it was carried out, and the record whose message is to be sent."""

    item: Item
    record: ClusterRecord | None


def _not_storable(item: Item, error: TooLarge) -> Item:
    details = {"problem": f"{cluster_path(item.cluster)}: {error}", "too large": "yes"}
    if item.begins:
        hold = Hold(HoldKind.INVALID_NEW_MANIFEST, details)
        return Item(item.cluster, Action.INVALID, hold=hold)
    hold = Hold(HoldKind.INVALID_MANIFEST, details)
    generation = item.generation - (item.action is not Action.RETRY)
    return Item(item.cluster, Action.INVALID, generation, item.uid, hold=hold)


def _awaits_deletion(item: Item, record: ClusterRecord | None) -> Item:
    """Return the item of an update that a delete prevents; the end of that delete requests another plan."""
    hold = Hold(HoldKind.AWAITS_DELETION)
    if record is not None and record.desired.is_existing:
        hold = hold.of_release()
    return Item(item.cluster, Action.ON_HOLD, item.generation - 1, item.uid, hold=hold)


def may_be_saved(fleet: FleetRecord) -> Sequence[str]:
    """Return the clusters whose records the planner of an unfinished plan may still save."""
    return fleet.handover.in_flight if fleet.handover else ()


def supersede(clusters: Sequence[str], ports: Ports) -> None:
    """Save the records that another planner may still save, unchanged, so that they have another version.

    That planner may be frozen between its check of the fleet's record and its save of a cluster's. That save
    now fails, and its next check shows that the plan was superseded. What it has saved gets its message here,
    because it may have ended before it sent one.
    """
    records: Sequence[ClusterRecord | None] = ports.together(partial(_save_unchanged, ports=ports), clusters)
    send_continuations([record for record in records if record is not None], ports)


def _save_unchanged(cluster: str, ports: Ports) -> ClusterRecord | None:
    try:
        return change(cluster, lambda record: Transition(record) if record else None, ports)
    except Unreadable as error:  # whoever wrote the record gave it another version
        log.warning("%s: its record is not saved again: %s", cluster, error)
        return None


def _start(
    item: Item,
    *,
    plan_record: PlanRecord,
    small: Collection[str],
    later: Mapping[str, datetime],
    inputs: PlanInputs,
    fleet: FleetRecord,
    ports: Ports,
) -> _Started:
    """Save the new generation of a record that does not have it yet, unless a delete prevents that.

    The job of a new cluster starts at its time in ``later``, at once where it has none.

    The check for another planner is between the read and the save, see ``supersede``: the records in
    ``inputs`` were read before ``fleet`` was saved.
    """
    desired, tried = inputs.desired.clusters.get(item.cluster), list[ClusterRecord]()

    def decide(record: ClusterRecord | None) -> Transition | _Started | None:
        # A worker has saved its step since: accept on top of that record.
        if tried and ports.state.fleet().etag != fleet.etag:
            return None
        if item.action is Action.UPDATE and _prevented(item, record):
            return _Started(_awaits_deletion(item, record), None)
        accepted = _accepted(item, record, desired, plan_record.plan.commit, ports)
        if accepted is None:
            return _Started(item, record)
        job, at = replace(accepted.job, small_change=item.cluster in small), later.get(item.cluster)
        if at is not None and record is None and at > accepted.created:
            job = starting(job, at)
        of_rollout = plan_record.plan.commit if inputs.desired.rollout else ""
        accepted = under_installation(replace(accepted, job=job, rollout=of_rollout), fleet.installation)
        restored = record is not None and record.deleting and not accepted.deleting
        tried.append(accepted)
        approved = _approved_by(accepted, plan_record.approval)
        rebuild = desired.rebuild if desired and item.action is Action.REBUILD else ""
        return Transition(accepted, [accepted_event(accepted, approved, restored=restored, rebuild=rebuild)])

    try:
        started = change(item.cluster, decide, ports, known=(inputs.records.get(item.cluster),))
    except TooLarge as error:
        with about_record(tried[-1]):
            log.error("%s: %s", item.cluster, error)  # noqa: TRY400 - it is a manifest's problem
        return _Started(_not_storable(item, error), None)
    except Unreadable as error:
        return _Started(unreadable_item(item.cluster, str(error)), None)
    if started is None:
        raise Stale("another planner has started")
    return _Started(item, started) if isinstance(started, ClusterRecord) else started


def _prevented(item: Item, record: ClusterRecord | None) -> bool:
    """Return whether the delete of a cluster began, or ended, since the plan took its removal back."""
    if record is None:
        return True
    before = record.uid == item.uid and record.generation < item.generation
    return before and record.deleting and not record.restorable


def _approved_by(record: ClusterRecord, approval: Approval | None) -> str:
    """Return who approved the delete of a cluster, or of namespaces on it, and why; "" for no approval."""
    guarded = record.deleting or record.removed_systems
    if approval is None or not guarded or record.name not in approval.clusters:
        return ""
    return by_whom(approval.by, approval.reason)


def _accepted(
    item: Item, record: ClusterRecord | None, desired: Desired | None, commit: str, ports: Ports
) -> ClusterRecord | None:
    """Return the record with the item accepted; None if it was accepted before, or if the record is newer."""
    now = ports.clock()
    if not _is_next(item, record):
        return None
    if record is None:
        if desired is None:
            return None
        return accept_new(desired, uid=item.uid, commit=commit, now=now, generation=item.generation)
    if item.action is Action.RETRY:
        return accept_retry(record, now=now, left=record.job.left)
    if item.action in (*REMOVALS, Action.REBUILD):
        return accept_delete(record, commit=commit, now=now, generation=item.generation)
    if desired is None:
        return None
    kept = keeping(desired, systems_in(record.document), item.retained)
    return accept_change(record, kept, commit=commit, now=now, generation=item.generation)


def _is_next(item: Item, record: ClusterRecord | None) -> bool:
    """Return whether an item follows a record; not if it is accepted in it already, or too old for it."""
    if record is None:
        return item.begins  # only a plan that saw no record may create one: another one was deleted since
    if item.action is Action.RETRY:
        return record.failed and record.generation == item.generation
    return record.uid == item.uid and record.generation < item.generation
