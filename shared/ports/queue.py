"""The queues: Service Bus with sessions and duplicate detection."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from shared.frozen import dataclass


@dataclass(frozen=True)
class Message:
    """A message to a session-enabled queue.

    ``id`` is at most 128 characters and is what duplicate detection compares; ``at`` (UTC) schedules it.
    """

    session: str
    id: str
    body: str
    at: datetime | None = None


class Queue(Protocol):
    """A Service Bus queue with sessions and duplicate detection."""

    def send(self, *messages: Message) -> None:
        """Send in this order, and schedule those that have ``at``; raise Throttled, Unavailable or TooLarge.

        Several go together, as many as the service takes as one batch. After an error some may have been
        sent.
        """
        ...
