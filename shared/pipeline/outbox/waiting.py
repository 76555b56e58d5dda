"""A message that this app cannot handle yet waits in its queue, as it is."""

from __future__ import annotations

import logging
from datetime import timedelta

from shared.fleet.desired import digest_of
from shared.jobs.failures.errors import Unreadable
from shared.jobs.forms import NewerForm
from shared.jobs.reporting.measurements import WAITING_MESSAGES, Measurement
from shared.ports import Message, Ports, Queue

log = logging.getLogger(__name__)

WAITING = (NewerForm, Unreadable)
"""What a message waits for: an app of a newer version, or somebody who puts a record right."""
WAITING_SECONDS = 60
"""How long such a message waits; then any instance gets it again."""


def send_again(queue: str, session: str, body: bytes, error: Exception, ports: Ports) -> None:
    """Send a message again, as it is: the tenth delivery without success would dead-letter it."""
    log.warning("a message of the queue %s waits: %s", queue, error)
    ports.telemetry.record([Measurement(WAITING_MESSAGES, 1, {"queue": queue})])
    at, text = ports.clock() + timedelta(seconds=WAITING_SECONDS), body.decode()
    message_id = f"waiting:{digest_of([session, text])}:{int(at.timestamp())}"
    _port(queue, ports).send(Message(session, message_id, text, at))


def _port(queue: str, ports: Ports) -> Queue:
    queues = {"plans": ports.plans, "previews": ports.previews, "jobs": ports.jobs}
    return (queues | {"changes": ports.changes, "deletes": ports.deletes})[queue]
