"""The state of a fleet in tables in memory, for tests and the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localcloud.tables.memory_tables import Contents, MemoryTable
from shared.cluster.record import ClusterRecord
from shared.ports.process import in_turn
from shared.ports.state import TABLES, State
from shared.ports.state.clusters import CLUSTERS, RECORD
from shared.ports.state.texts import packed, text_of

FLEET = "memory"


class MemoryState(State):
    """The state of one fleet."""

    def __init__(self, tables: Mapping[str, MemoryTable] | None = None) -> None:
        self.tables = tables or {name: MemoryTable(name) for name in TABLES}
        super().__init__(self.tables, FLEET, in_turn)

    def damage(self, name: str, text: str) -> str:
        """Put a text in place of what is stored of a cluster, and return that."""
        table = self.tables[CLUSTERS]
        entity = table.get(FLEET, name)
        assert entity is not None, f"there is no record of {name}"  # noqa: S101
        rest = {name: entity[name] for name in entity.properties if not name.startswith(("body", "zip"))}
        table.put(FLEET, {name: rest | packed(text)})
        return text_of(entity)

    def backup(self) -> Mapping[str, Contents]:
        """Return what the tables hold now."""
        return {name: table.backup() for name, table in self.tables.items()}

    def restore(self, backup: Mapping[str, Contents]) -> None:
        """Put a backup in place of what the tables hold; every record gets a new version."""
        for name, table in self.tables.items():
            table.restore(backup.get(name, {}))

    def lose(self) -> None:
        """Lose every table."""
        self.restore({})


def records_in(backup: Mapping[str, Contents]) -> Sequence[ClusterRecord]:
    """Return the records of the clusters that a backup has."""
    return [entity.value(RECORD.read) for entity in backup[CLUSTERS].get(FLEET, {}).values()]
