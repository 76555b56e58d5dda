"""The table of acts, and the settings that were seen last."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import TypeAdapter

from shared.adapters.tables.entities import newest_first, packed, unpacked
from shared.adapters.tables.storage import Storage
from shared.jobs.acts import Act

ACTS = "roadsteadacts"
_ACT: TypeAdapter[Act] = TypeAdapter(Act)
_SEEN: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_SETTINGS = "settings"


class ActsTable:
    """The part of the State port that is about acts."""

    _storage: Storage
    _fleet: str

    def save_act(self, act: Act) -> None:
        """Save an act, over an equal one."""
        key = {"PartitionKey": self._fleet, "RowKey": f"{newest_first(act.at)}-{act.id}"}
        self._storage.upsert(ACTS, {**key, "at": act.at, **packed(_ACT.dump_json(act).decode())})

    def acts(self, limit: int, before: datetime | None = None) -> Sequence[Act]:
        """Return the newest acts (before a millisecond), newest first."""
        after = f"{newest_first(before)}~" if before else ""
        query = "PartitionKey eq @key and RowKey gt @after"
        pages = self._storage.query(ACTS, query, page=limit, after=after)
        return [_ACT.validate_json(unpacked(entity)) for entity in itertools.islice(pages, limit)]

    def prune_acts(self, before: datetime) -> int:
        """Remove older acts."""
        keys = self._storage.keys(ACTS, "PartitionKey eq @key and at lt @before", before=before)
        return self._storage.remove(ACTS, keys)

    def settings_seen(self) -> Mapping[str, str]:
        """Return what ``save_settings_seen`` wrote last."""
        entity = self._storage.get(ACTS, _SETTINGS, self._fleet)
        return _SEEN.validate_json(unpacked(entity)) if entity is not None else {}

    def save_settings_seen(self, settings: Mapping[str, str]) -> None:
        """Write the settings over those that were seen before."""
        key = {"PartitionKey": _SETTINGS, "RowKey": self._fleet}
        self._storage.upsert(ACTS, {**key, **packed(_SEEN.dump_json(dict(settings)).decode())})
