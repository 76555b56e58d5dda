"""The door: an instance whose clock is wrong handles nothing. So what is behind it believes the clock.

An instance compares its clock with that of Table Storage when it starts, every few minutes, and where it
seems to have jumped. In between, the time that has passed says what the clock should show: each reading of it
is compared, without a call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from shared.app.outbox import WAITING, WAITING_SECONDS, send_again
from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.frozen import replace
from shared.ports import Ports
from shared.ports.process import KnownTime

log = logging.getLogger(__name__)

COMPARE_SECONDS = 180.0
"""How long a comparison serves."""
SLOW = 3.0
"""Seconds; an answer that takes longer says too little of the time."""


class NotReady(Exception):
    """The instance handles nothing; ``now`` is the time, as Table Storage has it where that is known."""

    def __init__(self, message: str, now: datetime) -> None:
        super().__init__(message)
        self.now = now


def enter(ports: Ports) -> Ports:
    """Return the ports for one event, behind the door; raise NotReady."""
    inside, known = watched(ports), ports.known_times.last
    if known is None or ports.elapsed() - known.at > COMPARE_SECONDS:
        _compare(ports)
    try:
        inside.clock()
    except NotReady:
        _compare(ports)
        inside.clock()
    return inside


def watched(ports: Ports) -> Ports:
    """Return the ports with a clock that raises NotReady as soon as it is wrong."""
    read, limit = ports.clock, ports.config.clock_skew.total_seconds()

    def clock() -> datetime:
        now, known = read(), ports.known_times.last
        ahead = known.ahead(now, ports.elapsed()) if known else 0.0
        if abs(ahead) <= limit:
            return now
        direction = "ahead of" if ahead > 0 else "behind"
        problem = f"the clock of this instance is {abs(ahead):.0f} s {direction} that of Table Storage"
        limited = f"it handles nothing while that is more than {limit:g} s"
        raise NotReady(f"{problem}; {limited}", now - timedelta(seconds=ahead))

    return replace(ports, clock=clock)


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
        handle(body, enter(ports))
    except (NotReady, *WAITING) as error:
        now = error.now if isinstance(error, NotReady) else ports.clock()
        send_again(queue, session, body, error, now + timedelta(seconds=WAITING_SECONDS), ports)


def _compare(ports: Ports) -> None:
    """Read the time; go by what is known where Table Storage does not say it, or takes too long."""
    began = ports.elapsed()
    try:
        read = ports.table_time()
        if ports.elapsed() - began > SLOW:
            raise Unavailable("Table Storage took too long to say its time")
    except ReconcileError as error:
        log.warning("the clock is not compared: %s: %s", error.kind, error)
        if ports.known_times.last is None:
            raise NotReady(f"the time is not known: {error.kind}: {error}", ports.clock()) from error
        return
    ports.known_times.last = KnownTime.of(read, began, ports.elapsed())
