"""The record of the sweeps, in the table of fleets."""

from __future__ import annotations

from dataclasses import replace

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import Storage, etag_of
from shared.cluster.forms import StoredText
from shared.ports.state import SweepRecord

_PARTITION = "sweeps"
_SWEEP = StoredText[SweepRecord](SweepRecord)


class SweepsTable:
    """The part of the State port that is about sweeps."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def sweep(self) -> SweepRecord:
        """Return the record of the sweeps; a new one when none was saved, or it cannot be read."""
        entity = self._storage.get(FLEETS, _PARTITION, self._fleet)
        if entity is None:
            return SweepRecord()
        found = self._reader.or_else(SweepRecord(), "sweep", FLEETS, entity, _sweep)
        return replace(found, etag=etag_of(entity))

    def save_sweep(self, record: SweepRecord) -> None:
        """Write the record over its version; raise Stale."""
        body = packed(_SWEEP.write(record, "etag"))
        self._storage.write(FLEETS, {"PartitionKey": _PARTITION, "RowKey": self._fleet, **body}, record.etag)


def _sweep(entity: Entity) -> SweepRecord:
    return _SWEEP.read(text_of(entity))
