"""Time for the worlds: the system clock, or a clock that only moves on request."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


def system_clock() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until ``advance`` is called; safe to share between threads."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        """Return the current time of the clock."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock by so many seconds."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
