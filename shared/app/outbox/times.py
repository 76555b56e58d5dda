"""When a message comes, which requests are one message, and which wait for a newer app."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from datetime import datetime, timedelta

from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import NewerForm
from shared.cluster.reporting.measurements import WAITING_MESSAGES, Measurement
from shared.language.desired import digest_of
from shared.ports import Message, Ports, Queue

REFRESH_SECONDS = 5
"""Requests for a whole sweep or check within this many seconds are one message."""
FAR_SECONDS = 3600
"""A message for a time that is further away comes sooner, see ``at_time``."""
_AT = "at:"


def later(seconds: float, ports: Ports) -> datetime | None:
    """Return the time so many seconds from now, None for at once."""
    return ports.clock() + timedelta(seconds=seconds) if seconds else None


def slot(seconds: int, after: float, ports: Ports) -> tuple[int, datetime]:
    """Return the number and the time of the one message of all requests within the same so many seconds.

    ``after`` is in how many seconds from now the message comes at the earliest. It comes when no clock is
    before the end of these seconds any more: a request that is dropped as a duplicate is never behind it.
    """
    now = ports.clock()
    number = math.floor((now.timestamp() + after) / seconds) + 1
    return number, now.fromtimestamp(number * seconds, tz=now.tzinfo) + ports.config.clocks_differ


def at_time(at: datetime, ports: Ports) -> Iterator[tuple[str, datetime]]:
    """Yield the names and the times of the messages for what begins at a time.

    Whoever receives one asks again while that time is still to come. So to an instance whose clock is behind,
    another one comes when no clock is before that time any more. A time may be months away, and duplicate
    detection looks back ten minutes: a message that comes sooner instead bounds how many come at one moment.
    """
    now = ports.clock()
    at = min(at, slot(FAR_SECONDS, 0, ports)[1])
    name, comes = f"{_AT}{int(at.timestamp())}", at + timedelta(seconds=1)  # names have whole seconds
    yield name, comes
    if at - now <= ports.config.clocks_differ:
        yield f"{name}:again", comes + ports.config.clocks_differ


def is_at_time(name: str) -> bool:
    """Return whether a message with this name is for a time, see ``at_time``."""
    return name.startswith(_AT)


def whole(within: float, ports: Ports) -> tuple[int, datetime]:
    """Return the number of a sweep or check of the whole fleet, which is one message, and when it begins.

    With ``within`` it begins at a random moment of so many seconds, once for all requests of a minute.
    Without it, requests within ``REFRESH_SECONDS`` share one.
    """
    if not within:
        return slot(REFRESH_SECONDS, 0, ports)
    now = ports.clock()
    return int(now.timestamp() // 60), now + timedelta(seconds=within * ports.random())


# A message that this app cannot handle yet waits in its queue, as it is.

log = logging.getLogger(__name__)

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


def _port(queue: str, ports: Ports) -> Queue:
    queues = {"plans": ports.plans, "previews": ports.previews, "jobs": ports.jobs}
    return (queues | {"changes": ports.changes, "deletes": ports.deletes})[queue]
