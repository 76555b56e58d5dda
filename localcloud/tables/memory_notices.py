"""The notifications of the State port in memory: facts, and what the notifier remembers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from datetime import datetime

from shared.cluster.failures.errors import Stale
from shared.cluster.forms import Listed
from shared.frozen import replace
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord


class MemoryNotices:
    """The part of the State port that is about notifications."""

    _lock: threading.Lock
    _versions: itertools.count[int]

    def __init__(self) -> None:
        self._notices: dict[tuple[datetime, str], Notification] = {}
        self._remembered = NotifierRecord()

    def add_notice(self, notice: Notification) -> None:
        """Save a fact; twice is once."""
        with self._lock:
            self._notices[(notice.at, notice.id)] = notice

    def notices(self, limit: int) -> Listed[Notification]:
        """Return the oldest saved facts."""
        with self._lock:
            return Listed([self._notices[key] for key in sorted(self._notices)[:limit]])

    def remove_notices(self, notices: Sequence[Notification]) -> None:
        """Remove facts."""
        with self._lock:
            for notice in notices:
                self._notices.pop((notice.at, notice.id), None)

    def prune_notices(self, before: datetime) -> int:
        """Remove older facts."""
        with self._lock:
            old = [key for key in self._notices if key[0] < before]
            for key in old:
                del self._notices[key]
            return len(old)

    def announced(self) -> NotifierRecord:
        """Return what the notifier remembers."""
        with self._lock:
            return self._remembered

    def save_announced(self, announced: NotifierRecord) -> NotifierRecord:
        """Write it over its version, and return it as saved; raise Stale."""
        with self._lock:
            if announced.etag != self._remembered.etag:
                raise Stale("another writer changed the record")
            self._remembered = replace(announced, etag=f"v{next(self._versions)}")
            return self._remembered
