"""The port of tables in memory, with the rules of Table Storage."""

from __future__ import annotations

import bisect
import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from shared.cluster.failures.errors import Stale, from_http
from shared.ports.tables import MOST_REMOVED, Condition, Entity, Key, Properties, is_key

MOST_PROPERTIES = 252
"""Of an entity, besides the keys and the time of the write."""
PROPERTY_BYTES = 64 << 10
ENTITY_BYTES = 1 << 20
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
Contents = Mapping[str, Mapping[str, Entity]]
"""The entities of a table by partition and key; versions never change."""


class MemoryTable:
    """A table in memory. A version of an entity is one value, so that what is read of it is read once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._versions = itertools.count(1)
        self._partitions: dict[str, dict[str, Entity]] = {}
        self._sorted: dict[str, list[str]] = {}
        """The keys of each partition in their order."""

    def get(self, partition: str, key: str) -> Entity | None:
        """Return an entity, or None."""
        return self._partitions.get(partition, {}).get(key)

    def query(
        self,
        partition: str,
        *conditions: Condition,
        until: str = "",
        select: Sequence[str] = (),
        page: int | None = None,  # noqa: ARG002 - a client's matter
    ) -> Iterator[Entity]:
        """Yield the entities of a partition by key; with ``until``, of all partitions between the two."""
        if not all(is_key(value) for *_, value in conditions if isinstance(value, str)):
            return
        with self._lock:
            names = sorted(name for name in self._partitions if partition < name < until)
            keys = [(name, self._keys(name, conditions)) for name in (names if until else [partition])]
        for name, inside in keys:
            for key in inside:
                entity = self.get(name, key)
                if entity is not None and all(_holds(entity, condition) for condition in conditions):
                    yield entity.value(_selecting(tuple(select))) if select else entity

    def _keys(self, partition: str, conditions: Sequence[Condition]) -> Sequence[str]:
        """Return the keys of a partition that the conditions on them may leave."""
        keys = self._sorted.get(partition, [])
        first, end = 0, len(keys)
        for name, compared, value in conditions:
            if name == "RowKey" and compared in ("gt", "ge"):
                first = max(first, bisect.bisect_left(keys, value))
            elif name == "RowKey":
                end = min(end, bisect.bisect_right(keys, value))
        return keys[first:end]

    def put(self, partition: str, entities: Mapping[str, Properties]) -> None:
        """Write entities by key over any existing ones."""
        with self._lock:
            for entity in [self._version(partition, key, entities[key]) for key in entities]:
                self._store(entity)

    def write(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Insert an entity when ``etag`` is "", else replace that version; return the new etag."""
        with self._lock:
            self._require(partition, key, etag)
            return self._store(self._version(partition, key, properties))

    def merge(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Write some properties over those of that version; return the new etag."""
        with self._lock:
            current = self._require(partition, key, etag)
            if current is None:
                raise Stale("the record does not exist")
            return self._store(self._version(partition, key, {**current.properties, **properties}))

    def _require(self, partition: str, key: str, etag: str) -> Entity | None:
        """Return the present version if it is that one; raise Stale."""
        current = self.get(partition, key)
        if (current.etag if current else "") != etag:
            raise Stale("somebody else changed the record")
        return current

    def _store(self, entity: Entity) -> str:
        partition, key = entity.place
        inside = self._partitions.setdefault(partition, {})
        if key not in inside:
            bisect.insort(self._sorted.setdefault(partition, []), key)
        inside[key] = entity
        return entity.etag

    def _version(self, partition: str, key: str, properties: Properties) -> Entity:
        whole = {**properties, "PartitionKey": partition, "RowKey": key}
        _check(whole)
        number = next(self._versions)
        return Entity(self, whole, f"v{number}", _FIRST + timedelta(seconds=number))

    def delete(self, partition: str, key: str, etag: str) -> None:
        """Remove an entity if it is still this version; one that does not exist is success."""
        with self._lock:
            if self.get(partition, key) is not None:
                self._require(partition, key, etag)
                self._drop(partition, key)

    def remove(self, keys: Iterable[Key]) -> int:
        """Remove entities of any version, at most ``MOST_REMOVED``."""
        some = list(itertools.islice(keys, MOST_REMOVED))
        with self._lock:
            for partition, key in some:
                if self.get(partition, key) is not None:
                    self._drop(partition, key)
        return len(some)

    def _drop(self, partition: str, key: str) -> None:
        keys = self._sorted[partition]
        del self._partitions[partition][key], keys[bisect.bisect_left(keys, key)]
        if not keys:
            del self._partitions[partition], self._sorted[partition]

    def backup(self) -> Contents:
        """Return what the table holds now."""
        with self._lock:
            return {partition: dict(inside) for partition, inside in self._partitions.items()}

    def restore(self, backup: Contents) -> None:
        """Put a backup in place of what the table holds; every entity gets a new version."""
        with self._lock:
            self._partitions = {
                partition: {key: self._version(partition, key, old.properties) for key, old in inside.items()}
                for partition, inside in backup.items()
            }
            self._sorted = {partition: sorted(inside) for partition, inside in backup.items()}


@cache
def _selecting(select: tuple[str, ...]) -> Callable[[Entity], Entity]:
    """Return what leaves the selected properties of an entity."""

    def selected(entity: Entity) -> Entity:
        properties = {name: entity[name] for name in select if name in entity}
        return Entity(entity.table, properties, entity.etag, entity.written)

    return selected


def _holds(entity: Entity, condition: Condition) -> bool:
    name, compared, value = condition
    found = entity.written if name == "Timestamp" else entity.get(name)
    return type(found) is type(value) and _COMPARED[compared](found, value)


def _check(properties: Properties) -> None:
    """Raise the error with which Table Storage refuses an entity, such as TooLarge.

    Sources: learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model, and
    table-service-error-codes for the codes.
    """
    sizes = {name: _bytes(value) for name, value in properties.items()}
    if not (is_key(properties["PartitionKey"]) and is_key(properties["RowKey"])):
        raise from_http(400, "OutOfRangeInput", "a key is too long, or has a character that none may have")
    if len(properties) > MOST_PROPERTIES + 2:
        raise from_http(400, "TooManyProperties", f"an entity has at most {MOST_PROPERTIES} properties")
    if max(sizes.values()) > PROPERTY_BYTES:
        raise from_http(400, "PropertyValueTooLarge", f"a property has at most {PROPERTY_BYTES >> 10} KiB")
    if sum(sizes.values()) + sum(8 + 2 * len(name) for name in sizes) > ENTITY_BYTES:
        raise from_http(400, "EntityTooLarge", f"an entity has at most {ENTITY_BYTES >> 10} KiB")


def _bytes(value: object) -> int:
    if isinstance(value, str):
        return 2 * len(value) if value.isascii() else len(value.encode("utf-16-le", errors="surrogatepass"))
    return len(value) if isinstance(value, bytes) else 8
