"""The requests for the planner, for pull requests, reports, notifications, sweeps and proposals."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

from shared.app.outbox.times import at_time, later, slot, whole
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.messages import (
    OutdatedRequest,
    Outgoing,
    PlanRequest,
    QueueRequest,
    RolloutRequest,
    SweepRequest,
    commit_of,
)
from shared.cluster.record import ClusterRecord
from shared.language.desired import digest_of
from shared.ports import FleetRecord, Message, Ports

log = logging.getLogger(__name__)


def send(
    request: QueueRequest, ports: Ports, *, message_id: str = "", after: float = 0, at: datetime | None = None
) -> None:
    """Send a request ``after`` so many seconds at the earliest, or ``at`` a time.

    Those of its class with the same id are one message, which comes at the end of the window of that class.
    One with a ``message_id`` of its own waits for no window.
    """
    if at is not None:
        for name, comes in at_time(at, ports):
            _send(request, name, comes, ports)
    elif request.WINDOW and not message_id:
        number, comes = slot(request.WINDOW, after, ports)
        _send(request, str(number), comes, ports)
    else:
        _send(request, "", later(after, ports), ports, message_id)


def send_all(messages: Iterable[Outgoing], ports: Ports) -> None:
    """Send the messages that follow from a decision."""
    for each in messages:
        send(each.message, ports, message_id=each.id, after=each.after, at=each.at)


def unlike(request: QueueRequest, ports: Ports, after: float) -> Outgoing:
    """Return a request that could not be finished, ``after`` seconds from now; no other is one with it."""
    name = commit_of(request)[:12] or request.kind
    return Outgoing(request, f"again:{name}:{request.attempt}:{ports.unique()}", after)


def send_unlike(request: QueueRequest, ports: Ports, *, after: float) -> None:
    """Send a request that could not be finished, see ``unlike``."""
    send_all([unlike(request, ports, after)], ports)


def _send(request: QueueRequest, slot: str, at: datetime | None, ports: Ports, message_id: str = "") -> None:
    body = request.model_dump(mode="json")
    known = {**dict(request), "fleet": ports.config.fleet, "digest": digest_of(body), "slot": slot}
    own = message_id or request.ID.format(**known).rstrip(":")
    queue = ports.previews if request.QUEUE == "previews" else ports.plans
    queue.send(Message(request.SESSION.format(**known), own, request.model_dump_json(), at))


def request_handover(fleet: FleetRecord, ports: Ports, *, rollout: bool = False) -> None:
    """Request that the planner continues a hand-over; requests that wait in its session come before.

    ``rollout``: only the next clusters of a rollout are handed over.

    The plan of the commit that was planned last is the only one that needs ``again``: without it, the request
    has no effect once a newer push has been planned.
    """
    again = fleet.planning == fleet.commit
    kind = RolloutRequest if rollout else PlanRequest
    request = kind(again=again, reason="handover", read_from=ports.clock())
    send(request, ports, message_id=f"handover:{fleet.planning[:12]}:{fleet.etag}")


def request_outdated_marks(commit: str, ports: Ports) -> None:
    """Ask that the plans of pull requests are marked as out of date. An error must not prevent a plan."""
    try:
        send(OutdatedRequest(commit=commit), ports)
    except ReconcileError as error:
        log.warning("pull requests are not marked as out of date: %s: %s", error.kind, error)


def request_awaited_plan(ports: Ports, deleted: str = "") -> FleetRecord:
    """Request a plan when the deletion of a cluster has finished that git has again.

    ``deleted`` is the cluster whose record has just been removed; without it, the record of each is read.
    Return the fleet's record.
    """
    fleet = ports.state.fleet()
    awaited = fleet.awaiting_deletion
    if deleted in awaited or (awaited and not deleted and _are_gone(awaited, ports)):
        message_id = f"deleted:{fleet.commit}:{int(ports.clock().timestamp() // 10)}"
        send(PlanRequest(again=True, reason="deleted"), ports, message_id=message_id)
    return fleet


def _are_gone(clusters: Sequence[str], ports: Ports) -> bool:
    """Return whether some of these clusters have no record, not even one that cannot be read."""
    found = ports.state.clusters_named(clusters)
    return len(found) + len(found.unreadable) < len(clusters)


def request_replacing_plan(record: ClusterRecord, ports: Ports) -> None:
    """Request a plan when a cluster is Ready for which the delete of the one that it replaces waits.

    ``record`` is that of a cluster whose job has ended.
    """
    if "replaces" in record.document and record.ready:
        _request_if_awaited([record], ports.state.fleet(), ports)


def request_awaited_deletes(fleet: FleetRecord, ports: Ports) -> None:
    """Request a plan when a cluster is Ready for which a delete waits; the record of each is read."""
    if fleet.awaiting_ready:
        _request_if_awaited(ports.state.clusters_named(list(fleet.awaiting_ready)), fleet, ports)


def _request_if_awaited(records: Sequence[ClusterRecord], fleet: FleetRecord, ports: Ports) -> None:
    awaited = fleet.awaiting_ready
    ready = [each for each in records if each.ready and each.name in awaited]
    if any(each.generation >= awaited[each.name] for each in ready):
        message_id = f"replaced:{fleet.commit}:{int(ports.clock().timestamp() // 10)}"
        send(PlanRequest(again=True, reason="replaced"), ports, message_id=message_id)


def request_unfinished_plan(commit: str, ports: Ports) -> None:
    """Request a plan again over which a superseded planner wrote one of its own, which it did not carry out.

    One request a minute gets through.
    """
    message_id = f"unfinished:{commit}:{int(ports.clock().timestamp() // 60)}"
    send(PlanRequest(again=True, reason="unfinished"), ports, message_id=message_id)


def request_sweep_at(at: datetime, cluster: str, ports: Ports) -> None:
    """Ask for a sweep of a cluster ``at`` a time."""
    for name, when in at_time(at, ports):
        _send(SweepRequest(sweep=name, clusters=(cluster,)), "", when, ports)


def request_whole_sweep(ports: Ports, *, within: float = 0) -> None:
    """Ask for a sweep, see ``whole``."""
    number, at = whole(within, ports)
    _send(SweepRequest(sweep=str(number)), "", at, ports)
