"""The port of tables: entities with a version each, by partition and key, as Azure Table Storage has them.

Limits (learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model): an entity
has at most 255 properties with the keys and the time of its write, and 1 MiB; a string property holds 32 Ki
characters, a binary one 64 KiB; keys have at most 1 KiB, and no ``/ \\ # ?``. Keys sort by their characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

T = TypeVar("T")
Key = tuple[str, str]
"""The partition of an entity, and its key there."""
Properties = Mapping[str, Any]
"""Texts, bytes, numbers, truth values and times by name; none is null."""
Condition = tuple[str, Literal["eq", "gt", "ge", "lt", "le"], str | bool | datetime]
"""What a property is compared with; an entity without it, or with another type, is not found.

``RowKey`` is the key, ``Timestamp`` the time of the write.
"""
KEY_BYTES = 1024
_IN_NO_KEY = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Entity:
    """A version of an entity as it was read, with its keys among its properties, and its table."""

    __slots__ = ("_values", "etag", "properties", "table", "written")

    def __init__(self, table: Table, properties: Properties, etag: str, written: datetime) -> None:
        self.table, self.properties, self.etag, self.written = table, properties, etag, written
        self._values: dict[Callable[[Entity], Any], Any] = {}

    @property
    def place(self) -> Key:
        """The partition and the key."""
        return self.properties["PartitionKey"], self.properties["RowKey"]

    def __getitem__(self, name: str) -> Any:
        return self.properties[name]

    def __contains__(self, name: str) -> bool:
        return name in self.properties

    def get(self, name: str, default: object = None) -> Any:
        """Return a property, or the default where it is missing."""
        return self.properties.get(name, default)

    def value(self, read: Callable[[Entity], T]) -> T:
        """Return what a function reads in it; each function reads a version once."""
        if read not in self._values:
            self._values[read] = read(self)
        found: T = self._values[read]
        return found


class Table(Protocol):
    """A table. The first write creates one that is missing; before, it is empty.

    Raises Stale for a version that is no longer there, and TooLarge for an entity beyond the limits.
    """

    name: str

    def get(self, partition: str, key: str) -> Entity | None:
        """Return an entity, or None; also for a key that no entity can have."""

    def query(
        self,
        partition: str,
        *conditions: Condition,
        until: str = "",
        select: Sequence[str] = (),
        page: int | None = None,
    ) -> Iterator[Entity]:
        """Yield the entities of a partition by key; with ``until``, of all partitions between the two.

        ``select`` are the only properties that are read, () for all; ``page`` is how many are read at a time.
        """

    def put(self, partition: str, entities: Mapping[str, Properties]) -> None:
        """Write entities by key over any existing ones: up to 100 of them, and 2 MiB, in one transaction."""

    def write(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Insert an entity when ``etag`` is "", else replace that version; return the new etag."""

    def merge(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Write some properties over those of that version; return the new etag."""

    def delete(self, partition: str, key: str, etag: str) -> None:
        """Remove an entity if it is still this version; one that does not exist is success."""

    def remove(self, keys: Iterable[Key]) -> int:
        """Remove entities of any version, at most ``MOST_REMOVED``; return how many."""


MOST_REMOVED = 20_000
"""How many entities a call removes, so that a run of the retention timer ends in time."""


def is_key(text: str) -> bool:
    """Return whether an entity can have this key: at most 1 KiB, and no ``/ \\ # ?`` or control character."""
    size = 2 * len(text) if text.isascii() else len(text.encode("utf-16-le", errors="surrogatepass"))
    return size <= KEY_BYTES and not _IN_NO_KEY.search(text)
