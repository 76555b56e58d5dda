"""The one place that reads records: what cannot be read becomes a value that names the record, or Unreadable.

A record may be anything: somebody edits its entity, or restores a part of it. So whatever goes wrong while it
is read is the problem of that record.
"""

from __future__ import annotations

import itertools
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar

from shared.adapters.tables.entities import MAX_PARTS, joined, unpacked
from shared.cluster.failures.errors import ReconcileError, Unreadable
from shared.cluster.forms import Listed, NewerText, UnreadableRecord, WrongText

log = logging.getLogger(__name__)

T = TypeVar("T")
Entity = Mapping[str, Any]
Read = Callable[[Entity], object]
_MOST_MET = 1000
"""How many records are remembered that cannot be read."""


class Reader:
    """Reads records, and remembers those that this process could not read."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str, str], tuple[UnreadableRecord, Read]] = {}

    def value(self, kind: str, table: str, entity: Entity, read: Callable[[Entity], T]) -> T:
        """Return the value of a record; raise Unreadable."""
        found = self._read(kind, table, entity, read)
        if isinstance(found, UnreadableRecord):
            raise Unreadable(str(found))
        return found

    def or_else(self, default: T, kind: str, table: str, entity: Entity, read: Callable[[Entity], T]) -> T:
        """Return the value of a record, or the default where nothing is lost by that: it is stored again.

        Raise Unreadable for a record of a newer form, which nobody else stores again.
        """
        found = self._read(kind, table, entity, read)
        if not isinstance(found, UnreadableRecord):
            return found
        if found.newer:
            raise Unreadable(str(found))
        return default

    def listed(
        self,
        kind: str,
        table: str,
        entities: Iterable[Entity],
        read: Callable[[Entity], T],
        limit: int | None = None,
    ) -> Listed[T]:
        """Return the values of records, ``limit`` at most, and the records among them that cannot be read."""
        records = list[UnreadableRecord]()
        values = self.values(kind, table, entities, read, records)
        return Listed(list(itertools.islice(values, limit)), records)

    def values(
        self,
        kind: str,
        table: str,
        entities: Iterable[Entity],
        read: Callable[[Entity], T],
        unreadable: list[UnreadableRecord],
    ) -> Iterator[T]:
        """Yield the values of records; add those that cannot be read to a list."""
        for entity in entities:
            found = self._read(kind, table, entity, read)
            if isinstance(found, UnreadableRecord):
                unreadable.append(found)
            else:
                yield found

    def look(self, kind: str, table: str, entity: Entity, read: Read) -> None:
        """Remember a record if it cannot be read."""
        self._read(kind, table, entity, read)

    def still_unreadable(self, get: Callable[[str, str, str], Entity | None]) -> Sequence[UnreadableRecord]:
        """Return the records that this process could not read, and that cannot be read now either.

        ``get`` returns the record of a table, a partition and a key.
        """
        for place, (record, read) in list(self._met.items()):
            entity = get(*place)
            if entity is None:
                self._met.pop(place, None)
            else:
                self._read(record.kind, record.table, entity, read)
        return sorted(
            (record for record, _ in list(self._met.values())), key=attrgetter("table", "partition", "key")
        )

    def _read(
        self, kind: str, table: str, entity: Entity, read: Callable[[Entity], T]
    ) -> T | UnreadableRecord:
        try:
            value = read(entity)
        except ReconcileError:  # the tables do not answer: the record may be readable
            raise
        except Exception as error:  # noqa: BLE001 - a record may be anything
            newer = isinstance(error, NewerText)
            return self._unreadable(
                UnreadableRecord(kind, table, *_keys(entity), _problem_of(error), newer), read
            )
        if self._met:
            self._met.pop((table, *_keys(entity)), None)
        return value

    def _unreadable(self, record: UnreadableRecord, read: Read) -> UnreadableRecord:
        place = (record.table, record.partition, record.key)
        before = self._met.get(place)
        if before is None or before[0] != record:
            log.error("%s", record)
        if before is not None or len(self._met) < _MOST_MET:
            self._met[place] = record, read
        return record


def _keys(entity: Entity) -> tuple[str, str]:
    return entity["PartitionKey"], entity["RowKey"]


def text_of(entity: Entity) -> str:
    """Return the text of an entity; raise WrongText where a part of it is missing, damaged or no text."""
    if not ("body0" in entity or "zip0" in entity):
        raise WrongText("the text is missing: there is neither body0 nor zip0")
    return _together(lambda: unpacked(entity))


def joined_text(parts: Sequence[Entity]) -> str:
    """Return the text whose parts are records of their own; raise WrongText likewise."""
    return _together(lambda: joined(parts))


def _together(put: Callable[[], str]) -> str:
    try:
        return put()
    except (TypeError, zlib.error, UnicodeDecodeError):
        raise WrongText("a part of the text is missing, damaged or of a wrong type") from None


def part_keys(entity: Entity) -> Sequence[dict[str, str]]:
    """Return the keys of the parts that a record names; raise WrongText."""
    number, version = entity["parts"], entity.get("version")
    if not (isinstance(number, int) and 0 < number <= MAX_PARTS and isinstance(version, str)):
        raise WrongText("parts or version is missing, or has a wrong type or value")
    return [part_key(entity, version, each) for each in range(number)]


def part_key(entity: Entity, version: str, number: int) -> dict[str, str]:
    """Return the key of a part of a record's text."""
    return {"PartitionKey": parts_of(entity), "RowKey": f"{version}-{number:03d}"}


def parts_of(entity: Entity) -> str:
    """Return the partition that has the parts of a record's text."""
    return f"parts|{entity['PartitionKey']}|{entity['RowKey']}"


def moment_in(entity: Entity, name: str) -> datetime:
    """Return a time in a property of a record; raise WrongText."""
    moment = entity.get(name)
    if not isinstance(moment, datetime):
        raise WrongText(f"{name} is missing, or is no time")
    return moment


def _problem_of(error: Exception) -> str:
    """Return what is wrong with a record; other errors than our own may quote something of it."""
    return (
        str(error) if isinstance(error, WrongText) else "a property is missing, or has a wrong type or value"
    )
