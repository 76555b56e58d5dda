"""What is stored of facts that are to be announced."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord


class Notices(Protocol):
    """The facts that the notifier has not taken yet, and what it remembers."""

    def add_notice(self, notice: Notification) -> None:
        """Save a fact; one that was saved before is not duplicated."""
        ...

    def notices(self, limit: int) -> Listed[Notification]:
        """Return the oldest saved facts."""
        ...

    def remove_notices(self, notices: Sequence[Notification]) -> None:
        """Remove facts; one that does not exist is success."""
        ...

    def prune_notices(self, before: datetime) -> int:
        """Remove older facts; return how many were removed."""
        ...

    def announced(self) -> NotifierRecord:
        """Return what the notifier remembers; a new one when none was saved, or it cannot be read."""
        ...

    def save_announced(self, announced: NotifierRecord) -> NotifierRecord:
        """Write it over the version that was read, and return it as saved; raise Stale or TooLarge."""
        ...
