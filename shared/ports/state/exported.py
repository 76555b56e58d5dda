"""What only tables have, as lines of JSON: acts, the events of clusters, and plans with their approvals.

A line is an entity with its place and its types, in the form that it is stored in.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from shared.cluster.failures.errors import Stale
from shared.ports.state.app import ACTS
from shared.ports.state.clusters import EVENTS
from shared.ports.state.plans import PLANS
from shared.ports.state.reading import TableRepository
from shared.ports.tables import Condition, Entity

EXPORTED = (ACTS, EVENTS, PLANS)
"""Git and Azure have the rest: see the recovery of tables that were lost."""
_KEYS = ("PartitionKey", "RowKey")


class ExportedRows(TableRepository):
    """The entities of a fleet in these tables, as lines."""

    def lines_written(self, since: datetime, before: datetime) -> Iterator[str]:
        """Yield what was written in a time, by the clock of the tables, a page at a time."""
        times: tuple[Condition, ...] = (("Timestamp", "ge", since), ("Timestamp", "lt", before))
        for name in EXPORTED:
            table = self._tables[name]
            for entity in table.query(self._fleet, *times):
                yield line_of(name, entity)
            for partitions in (self._fleet, f"parts|{self._fleet}"):  # of clusters, and of large documents
                for entity in table.query(f"{partitions}|", *times, until=f"{partitions}}}"):  # } is behind |
                    yield line_of(name, entity)

    def restore_line(self, line: str) -> bool:
        """Insert what a line has; return whether it was missing. What is there is newer, and stays."""
        name, partition, key, properties = values_of(line)
        try:
            self._tables[name].write(partition, key, properties, "")
        except Stale:
            return False
        return True


def line_of(table: str, entity: Entity) -> str:
    """Return an entity as a line."""
    partition, key = entity.place
    properties = {
        name: _written(value)
        for name, value in entity.properties.items()
        if name not in (*_KEYS, "Timestamp") and not name.startswith("odata.")
    }
    return json.dumps({"table": table, "partition": partition, "key": key, "properties": properties})


def values_of(line: str) -> tuple[str, str, str, dict[str, Any]]:
    """Return the table, the partition, the key and the properties of a line."""
    read = json.loads(line)
    if read["table"] not in EXPORTED:
        raise ValueError("an export has no such table")
    properties = {name: _value(value) for name, value in read["properties"].items()}
    return read["table"], read["partition"], read["key"], properties


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return {"bytes": b64encode(value).decode()} if isinstance(value, bytes) else value


def _value(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    return datetime.fromisoformat(written["time"]) if "time" in written else b64decode(written["bytes"])
