"""What a newer version of the app stores and sends: records and messages in the next version of their form.

An instance of that version reads both forms, and writes the next one. One of the present version raises what
it raises in production: ``NewerText`` for a record, and ``NewerForm`` for a message.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from localcloud.tables.memory_tables import MemoryTable
from shared.cluster.forms import FORM, VERSION
from shared.ports import Message, Queue
from shared.ports.state.texts import packed
from shared.ports.tables import Condition, Entity, Properties
from simulation.rule import RuleViolated

_PRESENT, _NEXT = (f'{{"{VERSION}":{form},' for form in (FORM, FORM + 1))
_PARTS = "parts|"
"""Begins the partitions of parts of a document: they belong to the form of the entity that names them."""


def raised(text: str) -> str:
    """Return a text in the next version of its form."""
    return _NEXT + text[len(_PRESENT) :] if text.startswith(_PRESENT) else text


def known(text: str) -> str:
    """Return a text in the form that this code reads."""
    return _PRESENT + text[len(_NEXT) :] if text.startswith(_NEXT) else text


def known_body(body: bytes) -> bytes:
    """Return the body of a message in the form that this code reads; any other body as it is."""
    return known(body.decode()).encode() if body.startswith(_NEXT.encode()) else body


class _Table:
    """A table of one of the versions, over the ``table`` that both share."""

    def __init__(self, table: MemoryTable) -> None:
        self.name, self.table = table.name, table

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def put(self, partition: str, entities: Mapping[str, Properties]) -> None:
        """Write entities over any existing ones."""
        self.table.put(partition, {key: self._form(partition, entities[key]) for key in entities})

    def write(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Write an entity."""
        before = self.table.get(partition, key)
        written = self.table.write(partition, key, self._form(partition, properties), etag)
        self._replaces(before)
        return written

    def merge(self, partition: str, key: str, properties: Properties, etag: str) -> str:
        """Write some properties of an entity."""
        before = self.table.get(partition, key)
        written = self.table.merge(partition, key, self._form(partition, properties), etag)
        self._replaces(before, *properties)
        return written

    def _form(self, _partition: str, properties: Properties) -> Properties:
        """Return properties in the form of the version."""
        return properties

    def _replaces(self, before: Entity | None, *names: str) -> None:
        """Check what is written over an entity: some properties of it, or all."""


class FormerTable(_Table):
    """A table as instances of the present version use it: one writes over nothing that it cannot read.

    What is put over any version is whole in either form: an event, whose key is what it says, and the plan
    of a commit, which a planner that was frozen stores after the one that took its place.
    """

    def _replaces(self, before: Entity | None, *names: str) -> None:
        lost = [name for name in names or before.properties if _is_newer(before, name)] if before else []
        if before is not None and lost:
            place = "the record {1} in {0} of ".format(*before.place) + self.name
            raise RuleViolated("former form", f"{place} is written by an app that cannot read it: {lost}")


class NewerTable(_Table):
    """A table as instances of the newer version use it."""

    def get(self, partition: str, key: str) -> Entity | None:
        """Return an entity in the form that this code reads."""
        entity = self.table.get(partition, key)
        return entity.value(self._known) if entity is not None else None

    def query(self, partition: str, *conditions: Condition, **how: Any) -> Iterator[Entity]:
        """Yield the entities of a partition in the form that this code reads."""
        return (entity.value(self._known) for entity in self.table.query(partition, *conditions, **how))

    def _known(self, entity: Entity) -> Entity:
        properties = _changed(entity.properties.get("PartitionKey", ""), entity.properties, known)
        return Entity(cast(Any, self), properties, entity.etag, entity.written)

    def _form(self, partition: str, properties: Properties) -> Properties:
        return _changed(partition, properties, raised)


def _is_newer(entity: Entity, name: str) -> bool:
    """Return whether a property has a text in the next version of its form."""
    value = entity.get(name, "")
    if name == "zip0":
        return zlib.decompressobj().decompress(value, len(_NEXT)) == _NEXT.encode()
    return isinstance(value, str) and value.startswith(_NEXT)


def _changed(partition: str, properties: Properties, change: Callable[[str], str]) -> Properties:
    """Return properties with every stored text changed, also one that is compressed."""
    if partition.startswith(_PARTS) or "parts" in properties:
        return properties
    chunks = [name for name in properties if name.startswith("zip")]
    changed = {
        name: change(value) if isinstance(value, str) else value
        for name, value in properties.items()
        if name not in chunks
    }
    if not chunks:
        return changed
    data = b"".join(properties[f"zip{number}"] for number in range(len(chunks)))
    return changed | packed(change(zlib.decompress(data).decode()))


class NewerQueue:
    """A queue as instances of the newer version send to it."""

    def __init__(self, inner: Queue) -> None:
        self._inner = inner

    def send(self, *messages: Message) -> None:
        """Send messages in the next version of their form."""
        self._inner.send(*(replace(message, body=raised(message.body)) for message in messages))

    def probe(self) -> None:
        """Show that the queue is there."""
        self._inner.probe()
