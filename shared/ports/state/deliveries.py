"""What is stored of webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Deliveries(Protocol):
    """The webhook deliveries that were accepted, by the digest of their bodies."""

    def delivery_seen(self, digest: str) -> bool:
        """Return whether a webhook delivery was queued before."""
        ...

    def remember_delivery(
        self, digest: str, at: datetime, *, head: str = "", pushed: datetime | None = None
    ) -> None:
        """Remember a webhook delivery, and the ``head`` that it announced; twice is once.

        ``pushed`` is when the head was pushed, by GitHub's clock; ``at`` stands in for a delivery without it.
        """
        ...

    def announced_at(self, head: str) -> datetime | None:
        """Return when a head was pushed according to the last delivery that announced it, None for none."""
        ...

    def prune_deliveries(self, before: datetime) -> int:
        """Remove deliveries that were remembered before a time; return how many were removed."""
        ...
