"""The record of the sweeps, in the table of fleets."""

from __future__ import annotations

from dataclasses import replace

from pydantic import TypeAdapter

from shared.adapters.tables.clusters import FLEETS
from shared.adapters.tables.entities import packed, unpacked
from shared.adapters.tables.storage import Storage, etag_of
from shared.ports.state import SweepRecord

_PARTITION = "sweeps"
_SWEEP: TypeAdapter[SweepRecord] = TypeAdapter(SweepRecord)


class SweepsTable:
    """The part of the State port that is about sweeps."""

    _storage: Storage
    _fleet: str

    def sweep(self) -> SweepRecord:
        """Return the record of the sweeps; a new one when none was saved."""
        entity = self._storage.get(FLEETS, _PARTITION, self._fleet)
        if entity is None:
            return SweepRecord()
        return replace(_SWEEP.validate_json(unpacked(entity)), etag=etag_of(entity))

    def save_sweep(self, record: SweepRecord) -> None:
        """Write the record over its version; raise Stale."""
        body = packed(_SWEEP.dump_json(record, exclude={"etag"}).decode())
        self._storage.write(FLEETS, {"PartitionKey": _PARTITION, "RowKey": self._fleet, **body}, record.etag)
