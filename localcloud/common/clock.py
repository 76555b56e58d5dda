"""Time for the worlds: the system clock, or a clock that only moves on request."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from functools import lru_cache


def system_clock() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


@lru_cache(maxsize=64)  # many objects have the time of one moment
def in_seconds(moment: datetime) -> str:
    """Return a time as Kubernetes and GitHub write it: whole seconds, UTC, "Z"."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
