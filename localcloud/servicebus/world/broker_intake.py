"""What happens to a message before it is enqueued: duplicate detection, and scheduling."""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta

from localcloud.servicebus.world.broker_values import StoredMessage


class DuplicateWindow:
    """Remembers message ids for a while; scheduled messages count from the moment they were sent."""

    def __init__(self, seconds: float) -> None:
        self._window = timedelta(seconds=seconds)
        self._seen: dict[str, tuple[datetime, int]] = {}

    def original(self, message_id: str, now: datetime) -> int | None:
        """Return the sequence number of the message that had this id within the window, or None."""
        self._forget(now)
        seen = self._seen.get(message_id)
        return seen[1] if seen is not None else None

    def remember(self, message_id: str, sequence: int, *, now: datetime) -> None:
        """Note an id that was taken in; a message without id is never a duplicate."""
        if message_id and self._window > timedelta():
            self._seen[message_id] = (now, sequence)

    def _forget(self, now: datetime) -> None:
        """Drop what is older than the window; ids are in the order of their time."""
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest][0] + self._window > now:
                return
            del self._seen[oldest]


class MessageSchedule:
    """Messages that wait for their time."""

    def __init__(self) -> None:
        self._order: list[tuple[datetime, int]] = []
        self._messages: dict[int, StoredMessage] = {}

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def messages(self) -> tuple[StoredMessage, ...]:
        """Every waiting message, in the order of arrival."""
        return tuple(self._messages.values())

    def add(self, message: StoredMessage, at: datetime) -> None:
        """Keep a message until a time."""
        self._messages[message.sequence] = message
        heapq.heappush(self._order, (at, message.sequence))

    def cancel(self, sequence: int) -> bool:
        """Remove a message; return whether it existed."""
        return self._messages.pop(sequence, None) is not None

    def next_time(self) -> datetime | None:
        """Return when the next message is due, or None."""
        while self._order and self._order[0][1] not in self._messages:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def pop_due(self, now: datetime) -> StoredMessage | None:
        """Take out the message that was due first, or return None when none is due."""
        at = self.next_time()
        if at is None or at > now:
            return None
        return self._messages.pop(heapq.heappop(self._order)[1])
