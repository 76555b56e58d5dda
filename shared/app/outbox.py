"""The outbox: the one place that writes to a queue.

What follows from a decision is a value, ``Envelope``. The planner and the worker save a record first and then
send its continuation. A worker that reads a record ahead of its message sends the record's continuation
again. Duplicate detection compares message ids, so messages with the same id count as one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from shared.azure.running_versions import run_lowered
from shared.cluster.failures.errors import ReconcileError, Retryable, Unreadable
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.findings.health import needs_check, next_check
from shared.cluster.forms import NewerForm
from shared.cluster.queues.bodies import commit_of
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import CheckMessage, PlanRequest, QueueMessage, QueueRequest, SweepRequest
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.measurements import WAITING_MESSAGES, Measurement
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.ports import FleetRecord, Message, Ports, Queue

log = logging.getLogger(__name__)

REFRESH_SECONDS = 5
"""Requests for a whole sweep or check within this many seconds are one message."""
HINT_SECONDS = 5
"""Hints within this many seconds are one message."""
FAR_SECONDS = 3600
"""A message for a time that is further away comes sooner, see ``_at_time``."""
_AT = "at:"


def send(
    message: QueueMessage, ports: Ports, *, message_id: str = "", after: float = 0, at: datetime | None = None
) -> None:
    """Send a message, see ``Envelope``."""
    send_all([Envelope(message, message_id, after, at)], ports)


def send_all(envelopes: Iterable[Envelope], ports: Ports) -> None:
    """Send messages in their order, those of a queue together."""
    queues = dict[str, list[Message]]()
    for envelope in envelopes:
        queues.setdefault(envelope.queue or envelope.message.QUEUE, []).append(_timed(envelope, ports))
    for queue, messages in queues.items():
        _port(queue, ports).send(*messages)


def unlike(request: QueueRequest, ports: Ports, after: float) -> Envelope:
    """Return a request that could not be finished, ``after`` seconds from now; no other is one with it."""
    name = commit_of(request)[:12] or request.kind
    return Envelope(request, f"again:{name}:{request.attempt}:{ports.unique()}", after)


def send_unlike(request: QueueRequest, ports: Ports, *, after: float) -> None:
    """Send a request that could not be finished, see ``unlike``."""
    send_all([unlike(request, ports, after)], ports)


def _timed(envelope: Envelope, ports: Ports) -> Message:
    """Return what is sent."""
    message, at = envelope.message, envelope.at
    if at is not None and isinstance(message, QueueRequest):
        name, comes = _at_time(at, ports)
        named = message.model_copy(update={message.NAME: name}) if message.NAME else message
        return _message(replace(envelope, message=named), name, comes, ports)
    if message.WINDOW and not envelope.id:
        number, comes = _slot(message.WINDOW, envelope.after, ports)
        return _message(envelope, str(number), comes, ports)
    later = ports.clock() + timedelta(seconds=envelope.after) if envelope.after else at
    return _message(envelope, "", later, ports)


def _message(envelope: Envelope, slot: str, at: datetime | None, ports: Ports) -> Message:
    message, fleet = envelope.message, ports.config.fleet
    digest = digest_of(message.model_dump(mode="json"))
    message_id = envelope.id or message.ID.format(**dict(message), digest=digest, slot=slot).rstrip(":")
    return Message(message.session(fleet, digest), message_id, message.model_dump_json(), at)


def _port(queue: str, ports: Ports) -> Queue:
    queues = {"plans": ports.plans, "previews": ports.previews, "jobs": ports.jobs}
    return (queues | {"changes": ports.changes, "deletes": ports.deletes})[queue]


def _slot(seconds: int, after: float, ports: Ports) -> tuple[int, datetime]:
    """Return the number and the time of the one message of all requests within the same so many seconds.

    ``after`` is in how many seconds from now the message comes at the earliest. It comes when no clock is
    before the end of these seconds any more: a request that is dropped as a duplicate is never behind it.
    """
    now = ports.clock()
    number = math.floor((now.timestamp() + after) / seconds) + 1
    return number, now.fromtimestamp(number * seconds, tz=now.tzinfo) + ports.config.clocks_differ


def _at_time(at: datetime, ports: Ports) -> tuple[str, datetime]:
    """Return the name and the time of the message for what begins at a time: then no clock is before it.

    Whoever receives it asks again while that time is still to come. A time may be months away, and duplicate
    detection looks back ten minutes: a message that comes sooner instead bounds how many come at one moment.
    """
    at = min(at, _slot(FAR_SECONDS, 0, ports)[1])
    comes = at + timedelta(seconds=1) + ports.config.clocks_differ  # names have whole seconds
    return f"{_AT}{int(at.timestamp())}", comes


def is_at_time(name: str) -> bool:
    """Return whether a message with this name is for a time, see ``_at_time``."""
    return name.startswith(_AT)


# A request that failed comes again a few times; then a timer, or a person, asks again.

ATTEMPTS = 5


def seconds_until_again(error: ReconcileError, request: QueueRequest, ports: Ports) -> float | None:
    """Return when a request that failed is to come again, None for not at all."""
    if not isinstance(error, Retryable) or request.attempt >= ATTEMPTS:
        return None
    return wait_before_retry(error, request.attempt + 1, ports.random(), ports.config.timing.retries)


# Sweeps and checks of the whole fleet, and the next check of a cluster.


def request_whole_sweep(ports: Ports, *, within: float = 0) -> None:
    """Ask for a sweep, see ``_whole``."""
    number, after = _whole(within, ports)
    send(SweepRequest(sweep=str(number)), ports, after=after)


def request_whole_check(ports: Ports, *, within: float = 0) -> None:
    """Ask that all clusters are checked, see ``_whole``."""
    number, after = _whole(within, ports)
    send(CheckMessage(check=str(number)), ports, after=after)


def _whole(within: float, ports: Ports) -> tuple[int, float]:
    """Return the number of a sweep or check of the whole fleet, which is one message, and when it begins.

    That is in seconds from now. With ``within`` it begins at a random moment of so many seconds, once for all
    requests of a minute. Without it, requests within ``REFRESH_SECONDS`` share one.
    """
    now = ports.clock()
    if within:
        return int(now.timestamp() // 60), within * ports.random()
    number, at = _slot(REFRESH_SECONDS, 0, ports)
    return number, (at - now).total_seconds()


def next_check_of(
    record: ClusterRecord, ports: Ports, scheduled: datetime | None = None
) -> tuple[Envelope, ...]:
    """Return the next check of a cluster that is not known to be healthy, nothing for any other one.

    All who ask for one moment ask for one message, which comes when no clock is before that moment any more.
    ``scheduled`` is the moment of the check that asks.
    """
    if not needs_check(record):
        return ()
    now, patience = ports.clock(), timedelta(seconds=ports.config.timing.unhealthy_seconds)
    at = next_check(record, max(now, scheduled or now), patience + ports.config.clocks_differ)
    message = CheckMessage(check=record.uid, clusters=(record.name,), at=at)
    return (Envelope(message, at=at + ports.config.clocks_differ),)


def request_hinted_plan(ports: Ports) -> None:
    """Ask for a read of the branch, of which somebody unknown says that it has changed.

    Whoever may send hints could send any number: all of ``HINT_SECONDS`` are one message. It comes when no
    clock is before their end, and no read from before that serves it, so none is behind it.
    """
    number, comes = _slot(HINT_SECONDS, 0, ports)
    after = (comes - ports.clock()).total_seconds()
    request = PlanRequest(reason="push", read_from=comes)
    send(request, ports, message_id=f"hint:{number}", after=after)


# What a plan waits for: that a cluster no longer exists, or that another one is Ready.


def request_awaited_plan(ports: Ports, deleted: str = "") -> FleetRecord:
    """Request a plan when the deletion of a cluster has finished that git has again.

    ``deleted`` is the cluster whose record has just been removed; without it, the record of each is read.
    Return the fleet's record.
    """
    fleet = ports.state.fleet()
    awaited = fleet.expects.deletion
    if deleted in awaited or (awaited and not deleted and _are_gone(awaited, ports)):
        _plan_again("deleted", fleet, ports)
    return fleet


def _are_gone(clusters: Sequence[str], ports: Ports) -> bool:
    """Return whether some of these clusters have no record, not even one that cannot be read."""
    found = ports.state.clusters_named(clusters)
    return len(found) + len(found.unreadable) < len(clusters)


def request_replacing_plan(record: ClusterRecord, ports: Ports) -> None:
    """Request a plan when a cluster is Ready for which the delete of the one that it replaces waits."""
    if "replaces" in record.document and record.ready:
        _request_if_awaited([record], ports.state.fleet(), ports)


ENDED_SECONDS = 20
"""How long after the end of a job a plan comes that it asks for: the record is saved by then."""


def request_plan_after(record: ClusterRecord, ports: Ports) -> None:
    """Request the plan that the end of a job makes possible.

    It goes before the record is saved, because nobody would send it again.
    """
    _request_plan_of_pin(record, ports)
    lowered = record.divergence.lowered
    if record.ready and lowered and not run_lowered(record.document["spec"], lowered, record.running):
        # The cluster was created again, at the version that git has: no plan need keep another.
        message_id = f"version:{record.uid}:{record.generation}"
        send(PlanRequest(again=True, reason="version"), ports, message_id=message_id, after=ENDED_SECONDS)


def _request_plan_of_pin(record: ClusterRecord, ports: Ports) -> None:
    """Request a plan where nobody knows a pin, of a cluster or a system, and Flux has applied it, or cannot.

    One that waits for a takeover knows no more after a plan, which would ask for the next one.
    """
    unknown = sorted(pin.commit for pin in record.desired.pins.values() if not pin.is_known)
    waits = record.needs_action or record.phase is Phase.STALLED
    fails = record.job.active and record.job.step.name is Step.VERIFY and waits and not record.contested
    if (record.ready or fails) and unknown:
        request = PlanRequest(again=True, reason="pin")
        send(
            request,
            ports,
            message_id=f"pin:{record.uid}:{record.generation}:{unknown[0][:12]}",
            after=ENDED_SECONDS,
        )


def request_awaited_deletes(fleet: FleetRecord, ports: Ports) -> None:
    """Request a plan when a cluster is Ready for which a delete waits; the record of each is read."""
    if fleet.expects.ready:
        _request_if_awaited(ports.state.clusters_named(list(fleet.expects.ready)), fleet, ports)


def _request_if_awaited(records: Sequence[ClusterRecord], fleet: FleetRecord, ports: Ports) -> None:
    awaited = fleet.expects.ready
    ready = [record for record in records if record.ready and record.name in awaited]
    if any(record.generation >= awaited[record.name] for record in ready):
        _plan_again("replaced", fleet, ports)


def _plan_again(reason: str, fleet: FleetRecord, ports: Ports) -> None:
    """Request a plan; one request in ten seconds gets through."""
    message_id = f"{reason}:{fleet.commit}:{int(ports.clock().timestamp() // 10)}"
    send(PlanRequest(again=True, reason=reason), ports, message_id=message_id)


# A message that this app cannot handle yet waits in its queue, as it is.

WAITING = (NewerForm, Unreadable)
"""What a message waits for: an app of a newer version, or somebody who puts a record right."""
WAITING_SECONDS = 60
"""How long such a message waits; then any instance gets it again."""


def send_again(queue: str, session: str, body: bytes, error: Exception, at: datetime, ports: Ports) -> None:
    """Send a message again, as it is: the tenth delivery without success would dead-letter it."""
    log.warning("a message of the queue %s waits: %s", queue, error)
    ports.telemetry.record([Measurement(WAITING_MESSAGES, 1, {"queue": queue})])
    text = body.decode()
    message_id = f"waiting:{digest_of([session, text])}:{int(at.timestamp())}"
    _port(queue, ports).send(Message(session, message_id, text, at))
