"""What is stored of what happened to the clusters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from shared.cluster.forms import Listed
from shared.cluster.history import Event


class Events(Protocol):
    """What happened to the clusters."""

    def append(self, events: Sequence[Event]) -> None:
        """Save events; an event that was saved before is not duplicated."""
        ...

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> Listed[Event]:
        """Return a cluster's newest events (before a millisecond), newest first, even of a deleted one.

        Those that are stored with the record of the cluster are among them.
        """
        ...

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove all but a cluster's newest events; return how many were removed."""
        ...

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove the events of clusters that are not in ``living`` and have none since a time.

        Return how many were removed.
        """
        ...
