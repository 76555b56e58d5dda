"""The facts that are to be announced, and what the notifier remembers, in the table of fleets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed, safe_key
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import Storage, etag_of
from shared.cluster.failures.errors import Unavailable
from shared.cluster.forms import Listed, StoredText
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord

_PARTITION = "notifier"
_READS = 3
"""How often what the notifier remembers is read where somebody replaces it meanwhile."""
_NOTICE = StoredText[Notification](Notification)
_ANNOUNCED = StoredText[NotifierRecord](NotifierRecord)


class NoticesTable:
    """The part of the State port that is about notifications."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def add_notice(self, notice: Notification) -> None:
        """Save a fact, over an equal one."""
        body = packed(_NOTICE.write(notice))
        self._storage.upsert(FLEETS, {**self._key(notice), "at": notice.at, **body})

    def notices(self, limit: int) -> Listed[Notification]:
        """Return the oldest saved facts."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._notices, page=limit)
        return self._reader.listed("notice", FLEETS, found, notice_of, limit)

    def remove_notices(self, notices: Sequence[Notification]) -> None:
        """Remove facts, 100 a call."""
        self._storage.remove(FLEETS, [self._key(notice) for notice in notices])

    def prune_notices(self, before: datetime) -> int:
        """Remove older facts."""
        query = "PartitionKey eq @key and at lt @before"
        keys = self._storage.keys(FLEETS, query, key=self._notices, before=before)
        return self._storage.remove(FLEETS, keys)

    def announced(self) -> NotifierRecord:
        """Return what the notifier remembers; a new one when none was saved, or it cannot be read."""
        for _ in range(_READS):
            entity = self._storage.get(FLEETS, _PARTITION, self._fleet)
            if entity is None:
                return NotifierRecord()
            new: NotifierRecord | None = NotifierRecord()
            found = self._reader.or_else(new, "notifier", FLEETS, entity, self._announced)
            if found is not None:
                return replace(found, etag=etag_of(entity))
        raise Unavailable("what the notifier remembers was replaced while it was read")

    def _announced(self, entity: Entity) -> NotifierRecord | None:
        text = self._storage.document(FLEETS, entity)
        return _ANNOUNCED.read(text) if text is not None else None

    def save_announced(self, announced: NotifierRecord) -> NotifierRecord:
        """Write it over its version, and return it as saved; raise Stale or TooLarge."""
        text = _ANNOUNCED.write(announced, "etag")
        key = {"PartitionKey": _PARTITION, "RowKey": self._fleet}
        return replace(announced, etag=self._storage.write_document(FLEETS, key, text, announced.etag))

    @property
    def _notices(self) -> str:
        return f"notices|{self._fleet}"

    def _key(self, notice: Notification) -> dict[str, str]:
        milliseconds = int(notice.at.timestamp() * 1000)
        return {"PartitionKey": self._notices, "RowKey": f"{milliseconds:013d}-{safe_key(notice.id)}"}


def notice_of(entity: Entity) -> Notification:
    """Return what a record stores of a fact; raise WrongText."""
    return _NOTICE.read(text_of(entity))
