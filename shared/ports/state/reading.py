"""The kinds of records, and the one place that reads and writes them.

A record may be anything: somebody edits its entity, or restores a part of it. So whatever goes wrong while it
is read is the problem of that record: a value that names it, or Unreadable.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar, cast

from shared.cluster.failures.errors import ReconcileError, Unreadable
from shared.cluster.forms import FORM, NewerText, RecordList, StoredText, UnreadableRecord, WrongText
from shared.frozen import replace
from shared.ports.process import Together, in_threads
from shared.ports.state.texts import packed, text_of
from shared.ports.tables import Condition, Entity, Properties, Table

log = logging.getLogger(__name__)

T = TypeVar("T")


class VersionedRecord(Protocol):
    """A record with the version that was read."""

    @property
    def etag(self) -> str:
        """The version, "" for a record not saved yet."""


V = TypeVar("V", bound=VersionedRecord)
_MOST_MET = 1000
"""How many records are remembered that cannot be read."""


class RecordKind(Generic[T]):
    """A kind of record: its name, table, partition with {} for the fleet, and what reads an entity."""

    def __init__(self, name: str, table: str, partition: str, read: Callable[[Entity], T]) -> None:
        self.name, self.table, self.partition, self.read = name, table, partition, read


class TextKind(RecordKind[T]):
    """A kind of record that is stored as a text; what has a field ``etag`` gets its version there."""

    def __init__(
        self,
        name: str,
        table: str,
        of: Any,
        partition: str = "{}",
        *,
        text: Callable[..., Any] = text_of,
        version: int = FORM,
    ) -> None:
        self._text, self._text_of = StoredText[T](of, version), text
        self._versioned = is_dataclass(of) and any(field.name == "etag" for field in fields(of))
        super().__init__(name, table, partition, self._value)

    def text(self, value: T) -> str:
        """Return the text of a value."""
        return self._text.write(value, *(("etag",) if self._versioned else ()))

    def properties(self, value: T) -> Properties:
        """Return the text of a value as properties; raise TooLarge."""
        return packed(self.text(value))

    def _value(self, entity: Entity) -> T:
        found = self._text_of(entity)
        value: Any = self._text.read(found) if found is not None else None  # a document that is just replaced
        read: T = replace(value, etag=entity.etag) if self._versioned and value is not None else value
        return read


class RecordReader:
    """Reads records, and remembers those that this process could not read."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str, str], tuple[UnreadableRecord, RecordKind[Any], Table]] = {}

    def value(self, kind: RecordKind[T], entity: Entity) -> T:
        """Return the value of a record; raise Unreadable."""
        found = self._read(kind, entity)
        if isinstance(found, UnreadableRecord):
            raise Unreadable(str(found))
        return found

    def or_else(self, default: T, kind: RecordKind[T], entity: Entity) -> T:
        """Return the value of a record, or the default where nothing is lost by that: it is stored again.

        Raise Unreadable for a record of a newer form, which nobody else stores again.
        """
        found = self._read(kind, entity)
        if not isinstance(found, UnreadableRecord):
            return found
        if found.newer:
            raise Unreadable(str(found))
        return default

    def listed(
        self, kind: RecordKind[T], entities: Iterable[Entity], limit: int | None = None
    ) -> RecordList[T]:
        """Return the values of records, ``limit`` at most, and the records among them that cannot be read."""
        records = list[UnreadableRecord]()
        values = self.values(kind, entities, records)
        return RecordList(list(itertools.islice(values, limit)), records)

    def values(
        self, kind: RecordKind[T], entities: Iterable[Entity], unreadable: list[UnreadableRecord]
    ) -> Iterator[T]:
        """Yield the values of records; add those that cannot be read to a list."""
        for entity in entities:
            found = self._read(kind, entity)
            if isinstance(found, UnreadableRecord):
                unreadable.append(found)
            else:
                yield found

    def look(self, kind: RecordKind[Any], entity: Entity) -> None:
        """Remember a record if it cannot be read."""
        self._read(kind, entity)

    def still_unreadable(self) -> Sequence[UnreadableRecord]:
        """Return the records that this process could not read, and that cannot be read now either."""
        for place, (_, kind, table) in list(self._met.items()):
            entity = table.get(*place[1:])
            if entity is None:
                self._met.pop(place, None)
            else:
                self._read(kind, entity)
        return sorted(
            (record for record, *_ in list(self._met.values())), key=attrgetter("table", "partition", "key")
        )

    def _read(self, kind: RecordKind[T], entity: Entity) -> T | UnreadableRecord:
        try:
            value = entity.value(kind.read)
        except ReconcileError:  # the tables do not answer: the record may be readable
            raise
        except Exception as error:  # noqa: BLE001 - a record may be anything
            newer = isinstance(error, NewerText)
            place = entity.table.name, *entity.place
            return self._unreadable(
                UnreadableRecord(kind.name, *place, _problem_of(error), newer), kind, entity.table
            )
        if self._met:
            self._met.pop((entity.table.name, *entity.place), None)
        return value

    def _unreadable(self, record: UnreadableRecord, kind: RecordKind[Any], table: Table) -> UnreadableRecord:
        place = (record.table, record.partition, record.key)
        before = self._met.get(place)
        if before is None or before[0] != record:
            log.error("%s", record)
        if before is not None or len(self._met) < _MOST_MET:
            self._met[place] = record, kind, table
        return record


def _problem_of(error: Exception) -> str:
    """Return what is wrong with a record; other errors than our own may quote something of it."""
    return (
        str(error) if isinstance(error, WrongText) else "a property is missing, or has a wrong type or value"
    )


class TableRepository:
    """What the repositories of a fleet share: its tables, and the reads and writes of one kind of record."""

    def __init__(self, tables: Mapping[str, Table], fleet: str, together: Together = in_threads) -> None:
        self._tables, self._fleet, self._together = tables, fleet, together
        self._reader = RecordReader()

    def _partition(self, kind: RecordKind[Any]) -> str:
        return kind.partition.format(self._fleet)

    def _entity(self, kind: RecordKind[Any], key: str) -> Entity | None:
        return self._tables[kind.table].get(self._partition(kind), key)

    def _entities(self, kind: RecordKind[Any], *conditions: Condition, **how: Any) -> Iterator[Entity]:
        return self._tables[kind.table].query(self._partition(kind), *conditions, **how)

    def _keys(
        self, kind: RecordKind[Any], *conditions: Condition, also: Sequence[str] = ()
    ) -> Iterator[Entity]:
        return self._entities(kind, *conditions, select=("PartitionKey", "RowKey", *also))

    def _value(self, kind: RecordKind[T], key: str) -> T | None:
        """Return a record, None for none; raise Unreadable."""
        entity = self._entity(kind, key)
        return self._reader.value(kind, entity) if entity is not None else None

    def _listed(self, kind: RecordKind[T], *conditions: Condition, limit: int | None = None) -> RecordList[T]:
        """Return the records of a kind by their keys, ``limit`` at most."""
        return self._reader.listed(kind, self._entities(kind, *conditions, page=limit), limit)

    def _put(self, kind: TextKind[T], key: str, value: T, **also: Any) -> None:
        """Write a record over any version, with more properties."""
        properties = {**also, **kind.properties(value)}
        self._tables[kind.table].put(self._partition(kind), {key: properties})

    def _write(self, kind: TextKind[V], key: str, value: V, **also: Any) -> V:
        """Write a record over the version in its etag, and return it as saved; raise Stale or TooLarge."""
        properties, record = {**also, **kind.properties(value)}, cast(Any, value)
        etag = self._tables[kind.table].write(self._partition(kind), key, properties, value.etag)
        saved: V = replace(record, etag=etag)
        return saved

    def prune(self, kind: RecordKind[Any], before: datetime) -> int:
        """Remove the records of a kind whose time, in the property ``at``, is earlier; return how many."""
        expired = self._keys(kind, ("at", "lt", before))
        return self._tables[kind.table].remove(entity.place for entity in expired)
