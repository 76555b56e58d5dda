"""Messages that follow from a decision, as values: what is sent, and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from shared.cluster.queues.messages import (
    CHECKED_TOGETHER,
    CheckMessage,
    JobMessage,
    QueueMessage,
    ReadinessMessage,
)
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass


def job_message(record: ClusterRecord, at: datetime | None = None) -> JobMessage:
    """Return the message that the record waits for: its continuation."""
    return JobMessage(
        cluster=record.name, uid=record.uid, generation=record.generation, sequence=record.job.sequence, at=at
    )


def continuation_id(record: ClusterRecord, copy: str = "") -> str:
    """Return the message id of the record's continuation; the same moment gives the same id.

    ``copy`` names a deliberate second copy, which duplicate detection lets through once. An id has at
    most 63 + 1 + 8 characters, two numbers and a short word, below Service Bus' limit of 128.
    """
    moment = JobMessage.ID.format(**dict(job_message(record)))
    return f"{moment}@{copy}" if copy else moment


# Messages that follow from a decision, as values.


@dataclass(frozen=True)
class Envelope:
    """A message that follows from a decision, as a value: what is sent, and when.

    It comes ``after`` so many seconds at the earliest, at the end of the window of its class, or ``at`` a
    time. One with an ``id`` of its own waits for no window; otherwise its class gives it one. ``queue`` is
    empty where its class says it.
    """

    message: QueueMessage
    id: str = ""
    after: float = 0
    at: datetime | None = None
    queue: str = ""


def continuation(record: ClusterRecord, now: datetime, copy: str = "") -> tuple[Envelope, ...]:
    """Return the message that a record waits for, at its time; nothing for a job that has ended."""
    return continuation_at(record, record.job.due(now), now, copy)


def continuation_at(
    record: ClusterRecord, due: datetime, now: datetime, copy: str = ""
) -> tuple[Envelope, ...]:
    """Return the message that a record waits for, for another time than its own."""
    at = due if due > now else None
    message = Envelope(job_message(record, at), continuation_id(record, copy), at=at, queue=record.job.queue)
    return (message,) if record.job.active else ()


def copy_of(record: ClusterRecord, now: datetime) -> tuple[Envelope, ...]:
    """Return a second copy, because the first had no effect; at most one copy per second gets through."""
    return continuation(record, now, str(math.ceil(now.timestamp())))


def checks_of(names: Sequence[str], check: str, after: float = 0) -> list[Envelope]:
    """Return the messages that check clusters, so many seconds from now; ``check`` is the id of what asks."""
    parts = (names[first : first + CHECKED_TOGETHER] for first in range(0, len(names), CHECKED_TOGETHER))
    return [Envelope(CheckMessage(check=check, clusters=tuple(part)), after=after) for part in parts]


def readings_of(names: Sequence[str], reading: str) -> list[Envelope]:
    """Return the messages that read whether clusters can be upgraded; ``reading`` is the id of what asks."""
    return [Envelope(ReadinessMessage(reading=reading, cluster=name)) for name in names]
