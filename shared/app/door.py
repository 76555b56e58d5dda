"""The door: an instance whose clock is wrong handles nothing, and none writes by tables that are too old.

So what is behind it believes the clock and the records.

An instance compares its clock with that of Table Storage when it starts, every few minutes, and where it
seems to have jumped. In between, the time that has passed says what the clock should show: each reading of it
is compared, without a call.

The tables have an epoch, which also stands outside their account: in a tag of the app's resource group. It
grows before the jobs of a plan begin. Tables with a smaller one were lost, or restored from an older moment:
the next plan begins a recovery, and until each record is a part of that, no job goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from shared.app.outbox import WAITING, WAITING_SECONDS, send_again
from shared.app.records import again
from shared.azure.ownership import tag
from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.cluster.job import JobQueue
from shared.cluster.queues.messages import EXAMINATION
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.ports import FleetConfig, FleetRecord, Ports
from shared.ports.azure import GetTags, PatchTags
from shared.ports.process import KnownTime

log = logging.getLogger(__name__)

_OF_JOBS = tuple(queue.value for queue in JobQueue)

COMPARE_SECONDS = 180.0
"""How long a comparison serves."""
EPOCH_TAG = "roadstead-epoch-{fleet}-{digest}"
"""``digest`` is of the branch and the id of the settings: apps in one resource group have a tag each."""
SLOW = 3.0
"""Seconds; an answer that takes longer says too little of the time."""


class NotReady(Exception):
    """The instance handles nothing; ``now`` is the time, as Table Storage has it where that is known."""

    def __init__(self, message: str, now: datetime) -> None:
        super().__init__(message)
        self.now = now


def enter(ports: Ports, serves: float = COMPARE_SECONDS) -> Ports:
    """Return the ports for one event, behind the door; raise NotReady.

    ``serves`` is for how many seconds a comparison of the clock does: by itself, that finds no slow drift.
    """
    inside, known = watched(ports), ports.process.compared.time
    if known is None or ports.elapsed() - known.at > serves:
        _compare(ports)
    try:
        inside.clock()
    except NotReady:
        _compare(ports)
        inside.clock()
    return inside


def watched(ports: Ports) -> Ports:
    """Return the ports with a clock that raises NotReady as soon as it is wrong."""
    read, limit = ports.clock, ports.config.timing.clock_skew.total_seconds()

    def clock() -> datetime:
        now, known = read(), ports.process.compared.time
        ahead = known.ahead(now, ports.elapsed()) if known else 0.0
        if abs(ahead) <= limit:
            return now
        direction = "ahead of" if ahead > 0 else "behind"
        problem = f"the clock of this instance is {abs(ahead):.0f} s {direction} that of Table Storage"
        limited = f"it handles nothing while that is more than {limit:g} s"
        raise NotReady(f"{problem}; {limited}", now - timedelta(seconds=ahead))

    return replace(ports, clock=clock)


def enter_with_records(ports: Ports) -> Ports:
    """Return the ports for a job, behind the door; raise NotReady also for tables that are too old."""
    inside, known = enter(ports), ports.process.compared.tables_at
    if ports.config.app_group is None:
        return inside
    if known is None or ports.elapsed() - known > COMPARE_SECONDS:
        try:
            newer = newer_epoch(inside.state.fleet(), inside)
        except ReconcileError as error:
            log.warning("the epoch of the tables is not compared: %s: %s", error.kind, error)
            if known is None:
                raise NotReady(f"the epoch is not known: {error.kind}: {error}", inside.clock()) from error
            return inside
        if newer:
            reason = "the tables were lost or restored: a recovery begins with the next plan"
            raise NotReady(reason, inside.clock())
    return inside


def epoch_tag(config: FleetConfig) -> str:
    """Return the name of the tag that has the epoch of an app, by what its settings say of it."""
    return EPOCH_TAG.format(fleet=config.fleet, digest=digest_of([config.branch, config.installation])[:8])


def newer_epoch(fleet: FleetRecord, ports: Ports) -> int:
    """Return the epoch outside the tables where that of the fleet's record is smaller, otherwise 0.

    Tables that have one, and were compared some minutes ago, are not compared again.
    """
    group, known, elapsed = ports.config.app_group, ports.process.compared.tables_at, ports.elapsed()
    if group is None or (fleet.tables.epoch and known is not None and elapsed - known <= COMPARE_SECONDS):
        return 0
    found = tag({"tags": ports.azure.call(GetTags(group))}, epoch_tag(ports.config)) or ""
    outside = int(found) if found.isdecimal() else 0
    if fleet.tables.epoch < outside:
        return outside
    ports.process.compared.tables_at = elapsed
    return 0


def with_next_epoch(fleet: FleetRecord) -> FleetRecord:
    """Return the fleet's record with the next epoch, which is saved before the jobs of a plan begin."""
    next_one = replace(fleet.tables, epoch=fleet.tables.epoch + 1)
    return fleet if fleet.is_behind else replace(fleet, tables=next_one)


def put_epoch(fleet: FleetRecord, ports: Ports) -> None:
    """Write the epoch of the fleet's record outside the tables, after it was saved."""
    if ports.config.app_group is not None and not fleet.is_behind:
        tags = {epoch_tag(ports.config): str(fleet.tables.epoch)}
        body = {"operation": "Merge", "properties": {"tags": tags}}
        ports.azure.call(PatchTags(ports.config.app_group, body))


@again
def begin_epoch(ports: Ports) -> None:
    """Begin an epoch for what no plan begins, and what older tables must not lose unnoticed."""
    fleet = ports.state.fleet()
    after = with_next_epoch(fleet)
    if after is not fleet:
        put_epoch(ports.state.save_fleet(after), ports)


def time_now(ports: Ports) -> datetime:
    """Return the time, by Table Storage where the clock of this instance is wrong."""
    try:
        return watched(ports).clock()
    except NotReady as error:
        return error.now


def receive(
    queue: str, session: str, body: bytes, handle: Callable[[bytes, Ports], None], ports: Ports
) -> None:
    """Handle a message, or let it wait: for another instance, a newer app, or whoever puts a record right."""
    try:
        if EXAMINATION in body:  # it finds why the door is shut
            handle(body, ports)
        else:
            handle(body, enter_with_records(ports) if queue in _OF_JOBS else enter(ports))
    except (NotReady, *WAITING) as error:
        now = error.now if isinstance(error, NotReady) else ports.clock()
        send_again(queue, session, body, error, now + timedelta(seconds=WAITING_SECONDS), ports)


def _compare(ports: Ports) -> None:
    """Read the time; go by what is known where Table Storage does not say it, or takes too long."""
    try:
        found = _read_time(ports) or _read_time(ports)
        if found is None:
            raise Unavailable("Table Storage took too long to say its time")
        ports.process.compared.time = found
    except ReconcileError as error:
        log.warning("the clock is not compared: %s: %s", error.kind, error)
        if ports.process.compared.time is None:
            raise NotReady(f"the time is not known: {error.kind}: {error}", ports.clock()) from error


def _read_time(ports: Ports) -> KnownTime | None:
    """Return the time, None where the answer took too long: the first one of an instance includes imports."""
    began = ports.elapsed()
    read, now = ports.table_time(), ports.elapsed()
    return KnownTime.of(read, began, now) if now - began <= SLOW else None
