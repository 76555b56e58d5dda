"""Hand a plan over: begin, save the new generation of each cluster, and send its first message.

Some clusters at a time, and within the limits of an invocation: a hand-over that takes longer continues by
another message, so that a newer push comes in between.

Two planners may run at once, because a frozen planner loses its session to another one. Every save here
follows a check that no other planner has started: a conditional write of the fleet's record, which names the
clusters that may be saved until the next check.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from shared.app.door import put_epoch, with_next_epoch
from shared.app.outbox import send_all
from shared.app.planner.compute import ComputedPlan
from shared.app.records import Transition, change
from shared.cluster.failures.errors import Stale, TooLarge, Unreadable
from shared.cluster.history import Gaps, by_whom
from shared.cluster.lifetime import recovering
from shared.cluster.pace import starting, starts
from shared.cluster.queues.envelopes import continuation
from shared.cluster.queues.message_parts import Approval
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import accepted_event
from shared.cluster.transitions.acceptance import accept, follows, is_prevented, under_installation
from shared.frozen import replace
from shared.language.resolve.repository_layout import cluster_path
from shared.logs import about_record
from shared.plan.holds import Hold, HoldKind
from shared.plan.make_plan import unreadable_item
from shared.plan.plan import Action, Item, Plan
from shared.ports import BranchHead, FleetRecord, Handover, Ports

log = logging.getLogger(__name__)


def begin(head: BranchHead, fleet: FleetRecord, gaps: Gaps, ports: Ports) -> FleetRecord:
    """Save that a head is being planned, and return the fleet's record; raise Stale."""
    started = replace(
        fleet,
        planning=head.commit,
        reads=replace(fleet.reads, planned_at=head.at),
        waiting="",
        handover=_begun(head.commit, fleet, ports.clock()),
        gaps=gaps,
    )
    saved = ports.state.save_fleet(_identified(started, ports))
    if may_be_saved(fleet):
        _supersede(may_be_saved(fleet), ports)
    return saved


def _begun(head: str, fleet: FleetRecord, now: datetime) -> Handover:
    """Return the progress of a plan that begins after what the fleet's record says of the last one."""
    if fleet.handover is None:
        return Handover(now, now)
    if fleet.planning != head:
        return Handover(now, now, in_flight=fleet.handover.in_flight)
    return replace(fleet.handover, at=now, since=fleet.handover.since if fleet.handover.done else now)


def _identified(fleet: FleetRecord, ports: Ports) -> FleetRecord:
    """Return the fleet's record with the id of the app, and with those that it had before."""
    before = fleet.app.installation
    mine = ports.config.installation or before or ports.unique()
    former = fleet.app.former if before in ("", mine) else (*fleet.app.former, before)
    identity = replace(fleet.app, installation=mine, former=tuple(dict.fromkeys(former)))
    return replace(fleet, app=identity)


def may_be_saved(fleet: FleetRecord) -> Sequence[str]:
    """Return the clusters whose records the planner of an unfinished plan may still save."""
    return fleet.handover.in_flight if fleet.handover else ()


def _supersede(clusters: Sequence[str], ports: Ports) -> None:
    """Save the records that another planner may still save, unchanged, so that they have another version.

    That planner may be frozen between its check of the fleet's record and its save of a cluster's. That save
    now fails, and its next check shows that the plan was superseded. What it has saved gets its message here,
    because it may have ended before it sent one.
    """
    records: Sequence[ClusterRecord | None] = ports.together(partial(_save_unchanged, ports=ports), clusters)
    _send_continuations(records, ports)


def _save_unchanged(cluster: str, ports: Ports) -> ClusterRecord | None:
    try:
        return change(cluster, lambda record: Transition(record) if record else None, ports)
    except Unreadable as error:  # whoever wrote the record gave it another version
        log.warning("%s: its record is not saved again: %s", cluster, error)
        return None


def _send_continuations(records: Iterable[ClusterRecord | None], ports: Ports) -> None:
    """Send the messages that some records wait for; None for a record has none."""
    now = ports.clock()
    send_all((message for record in records if record for message in continuation(record, now)), ports)


class HandoverResult(NamedTuple):
    """The plan as it was carried out, the fleet's record as saved last, and whether nothing is left to do."""

    plan: Plan
    fleet: FleetRecord
    ended: bool


def hand_over(computed: ComputedPlan, ports: Ports) -> HandoverResult:
    """Start the job of every item that acts, small changes first; raise Stale for another planner.

    The items of clusters that start later keep their last generation.

    An item whose record cannot be stored is an invalid manifest, and concerns no other cluster. A cluster
    whose delete started meanwhile awaits its end. The records were read after ``fleet`` was saved. An item
    that its record has already was handed over before, see ``_supersede``.
    """
    plan, records = computed.plan_record.plan, computed.inputs.records
    fleet, small = computed.fleet, computed.small
    acting = [item for item in plan.items if item.acts and item.cluster not in computed.held]
    waiting = (item for item in acting if follows(item, records.get(item.cluster)))
    left = sorted(waiting, key=lambda item: item.cluster not in small)
    since = fleet.handover.since if fleet.handover else computed.plan_record.at
    later = starts(acting, computed.inputs.desired.clusters, small, since)
    changed: dict[str, Item] = {}
    began, accepted = ports.elapsed(), False
    while left:
        done = len(acting) - len(left)
        some, left = (
            left[: ports.config.limits.handover_clusters],
            left[ports.config.limits.handover_clusters :],
        )
        names = tuple(item.cluster for item in some)
        fleet = with_next_epoch(fleet) if not changed else fleet
        fleet = _check(fleet, Handover(ports.clock(), since, done, len(acting), names), ports)
        if not changed:
            put_epoch(fleet, ports)
        start = partial(_start, computed=replace(computed, fleet=fleet), later=later, ports=ports)
        started: Sequence[_Started] = ports.together(start, some)
        _send_continuations([start.record for start in started], ports)
        changed |= {start.item.cluster: start.item for start in started}
        accepted = accepted or any(start.item.acts for start in started)
        # A part that accepts nothing would be repeated indefinitely.
        if left and accepted and ports.elapsed() - began >= ports.config.limits.handover_seconds:
            done = len(acting) - len(left)
            fleet = _check(fleet, Handover(ports.clock(), since, done, len(acting)), ports)
            break
    items = (changed.get(item.cluster, item) for item in plan.items)
    return HandoverResult(replace(plan, items=tuple(items)), fleet, ended=not left)


def _check(fleet: FleetRecord, handover: Handover, ports: Ports) -> FleetRecord:
    """Save how far the hand-over is, and which clusters are next; raise Stale for another planner."""
    return ports.state.save_fleet(replace(fleet, handover=handover))


class _Started(NamedTuple):
    """An item as it was carried out, and the record whose message is to be sent."""

    item: Item
    record: ClusterRecord | None


def _not_storable(item: Item, error: TooLarge) -> Item:
    details = {"problem": f"{cluster_path(item.cluster)}: {error}"}
    if item.begins:
        hold = Hold(HoldKind.INVALID_NEW_MANIFEST, details)
        return Item(item.cluster, Action.INVALID, hold=hold)
    hold = Hold(HoldKind.INVALID_MANIFEST, details)
    generation = item.generation - (item.action is not Action.RETRY)
    return Item(item.cluster, Action.INVALID, generation, item.uid, hold=hold)


def _awaits_deletion(item: Item, record: ClusterRecord | None) -> Item:
    """Return the item of an update that a delete prevents; the end of that delete requests another plan."""
    hold = Hold(HoldKind.AWAITS_DELETION)
    if record is not None and record.desired.is_attached:
        hold = hold.of_release()
    return Item(item.cluster, Action.ON_HOLD, item.generation - 1, item.uid, hold=hold)


def _start(item: Item, *, computed: ComputedPlan, later: Mapping[str, datetime], ports: Ports) -> _Started:
    """Save the new generation of a record that does not have it yet, unless a delete prevents that.

    The job of a new cluster starts at its time in ``later``, at once where it has none.

    The check for another planner is between the read and the save, see ``_supersede``: the records of the
    plan were read before ``fleet`` was saved.
    """
    known, tried = computed.inputs.records.get(item.cluster), list[ClusterRecord]()

    def decide(record: ClusterRecord | None) -> Transition | _Started | None:
        # A worker has saved its step since: accept on top of that record.
        if tried and ports.state.fleet().etag != computed.fleet.etag:
            return None
        if is_prevented(item, record):
            return _Started(_awaits_deletion(item, record), None)
        started = _started(item, record, computed, later.get(item.cluster), ports.clock())
        if started is None:
            return _Started(item, record)
        tried.append(started.record)
        return started

    try:
        saved = change(item.cluster, decide, ports, known=(known,))
    except TooLarge as error:
        with about_record(tried[-1]):
            log.error("%s: %s", item.cluster, error)  # noqa: TRY400 - it is a manifest's problem
        return _Started(_not_storable(item, error), None)
    except Unreadable as error:
        return _Started(unreadable_item(item.cluster, str(error)), None)
    if saved is None:
        raise Stale("another planner has started")
    return _Started(item, saved) if isinstance(saved, ClusterRecord) else saved


def _started(
    item: Item, record: ClusterRecord | None, computed: ComputedPlan, at: datetime | None, now: datetime
) -> Transition | None:
    """Return the record with an item accepted, whose job may start ``at`` a time, and its event."""
    plan_record, wanted = computed.plan_record, computed.inputs.desired
    commit, desired = plan_record.plan.commit, wanted.clusters.get(item.cluster)
    accepted = accept(item, record, desired, commit=commit, now=now)
    if accepted is None:
        return None
    job = replace(accepted.job, small_change=item.cluster in computed.small)
    if at is not None and record is None and at > accepted.created:
        job = starting(job, at)
    accepted = replace(accepted, job=job, rollout=commit if wanted.rollout else "")
    accepted = under_installation(accepted, computed.fleet.app.installation)
    if record is None and computed.fleet.is_behind:
        accepted = recovering(accepted)
    restored = record is not None and record.deleting and not accepted.deleting
    approved = _approved_by(accepted, plan_record.approval)
    rebuild = desired.rebuild if desired and item.action is Action.REBUILD else ""
    return Transition(accepted, [accepted_event(accepted, approved, restored=restored, rebuild=rebuild)])


def _approved_by(record: ClusterRecord, approval: Approval | None) -> str:
    """Return who approved the delete of a cluster, or of namespaces on it, and why; "" for no approval."""
    guarded = record.deleting or record.removals.systems
    if approval is None or not guarded or record.name not in approval.clusters:
        return ""
    return by_whom(approval.by, approval.reason)
