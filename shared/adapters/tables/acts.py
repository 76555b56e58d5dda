"""The table of acts, and the settings that were seen last."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shared.adapters.tables.entities import newest_first, packed
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import Storage
from shared.cluster.forms import Listed, StoredText
from shared.cluster.history import Act

ACTS = "roadsteadacts"
_ACT = StoredText[Act](Act)
_SEEN = StoredText[dict[str, str]](dict[str, str])
_SETTINGS = "settings"


class ActsTable:
    """The part of the State port that is about acts."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def save_act(self, act: Act) -> None:
        """Save an act, over an equal one."""
        key = {"PartitionKey": self._fleet, "RowKey": f"{newest_first(act.at)}-{act.id}"}
        self._storage.upsert(ACTS, {**key, "at": act.at, **packed(_ACT.write(act))})

    def acts(self, limit: int, before: datetime | None = None) -> Listed[Act]:
        """Return the newest acts (before a millisecond), newest first."""
        after = f"{newest_first(before)}~" if before else ""
        query = "PartitionKey eq @key and RowKey gt @after"
        pages = self._storage.query(ACTS, query, page=limit, after=after)
        return self._reader.listed("act", ACTS, pages, act_of, limit)

    def prune_acts(self, before: datetime) -> int:
        """Remove older acts."""
        keys = self._storage.keys(ACTS, "PartitionKey eq @key and at lt @before", before=before)
        return self._storage.remove(ACTS, keys)

    def settings_seen(self) -> Mapping[str, str]:
        """Return what ``save_settings_seen`` wrote last."""
        entity = self._storage.get(ACTS, _SETTINGS, self._fleet)
        return self._reader.or_else({}, "settings", ACTS, entity, _seen) if entity is not None else {}

    def save_settings_seen(self, settings: Mapping[str, str]) -> None:
        """Write the settings over those that were seen before."""
        key = {"PartitionKey": _SETTINGS, "RowKey": self._fleet}
        self._storage.upsert(ACTS, {**key, **packed(_SEEN.write(dict(settings)))})


def act_of(entity: Entity) -> Act:
    """Return what a record stores of an act; raise WrongText."""
    return _ACT.read(text_of(entity))


def _seen(entity: Entity) -> Mapping[str, str]:
    return _SEEN.read(text_of(entity))
