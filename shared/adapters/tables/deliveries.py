"""The webhook deliveries: an entity for each body, and one for each head that was announced."""

from __future__ import annotations

from datetime import datetime

from shared.adapters.tables.entities import safe_key
from shared.adapters.tables.storage import Storage

DELIVERIES = "roadsteaddeliveries"
_HEAD = "head."
"""What the keys of heads begin with; a digest has no point."""


class DeliveriesTable:
    """The part of the State port that is about deliveries."""

    _storage: Storage
    _fleet: str

    def delivery_seen(self, digest: str) -> bool:
        """Return whether a webhook delivery was queued before."""
        return self._storage.get(DELIVERIES, self._fleet, safe_key(digest)) is not None

    def remember_delivery(
        self, digest: str, at: datetime, *, head: str = "", pushed: datetime | None = None
    ) -> None:
        """Remember a webhook delivery and the head that it announced, in one transaction."""
        moments = {safe_key(digest): at}
        if head:
            moments[f"{_HEAD}{safe_key(head)}"] = pushed or at
        self._storage.upsert_together(
            DELIVERIES,
            [{"PartitionKey": self._fleet, "RowKey": key, "at": when} for key, when in moments.items()],
        )

    def announced_at(self, head: str) -> datetime | None:
        """Return when a head was pushed according to the last delivery that announced it."""
        entity = self._storage.get(DELIVERIES, self._fleet, f"{_HEAD}{safe_key(head)}")
        moment = entity.get("at") if entity else None
        return moment if isinstance(moment, datetime) else None

    def prune_deliveries(self, before: datetime) -> int:
        """Remove deliveries that were remembered before a time."""
        keys = self._storage.keys(DELIVERIES, "PartitionKey eq @key and at lt @before", before=before)
        return self._storage.remove(DELIVERIES, keys)
