"""A message that only a newer version of the app understands waits in its queue, as it is."""

from __future__ import annotations

import logging
from datetime import timedelta

from shared.fleet.desired import digest_of
from shared.jobs.forms import NewerForm
from shared.jobs.reporting.measurements import NEWER_MESSAGES, Measurement
from shared.ports import Message, Ports, Queue

log = logging.getLogger(__name__)

NEWER_SECONDS = 60
"""How long such a message waits for an instance of the newer version; then any instance gets it again."""


def leave_to_newer(queue: str, session: str, body: bytes, error: NewerForm, ports: Ports) -> None:
    """Send a message again, as it is: the tenth delivery without success would dead-letter it."""
    log.warning("a message of the queue %s waits: %s", queue, error)
    ports.telemetry.record([Measurement(NEWER_MESSAGES, 1, {"queue": queue})])
    at, text = ports.clock() + timedelta(seconds=NEWER_SECONDS), body.decode()
    message_id = f"newer:{digest_of([session, text])}:{int(at.timestamp())}"
    _port(queue, ports).send(Message(session, message_id, text, at))


def _port(queue: str, ports: Ports) -> Queue:
    queues = {"plans": ports.plans, "previews": ports.previews, "jobs": ports.jobs}
    return (queues | {"changes": ports.changes, "deletes": ports.deletes})[queue]
