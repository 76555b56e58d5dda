"""Records of Table Storage as somebody may leave them who edits them, or restores a part of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from azure.data.tables import TableServiceClient, UpdateMode

Entity = dict[str, Any]


def body(change: Callable[[Entity], object]) -> Callable[[Entity], Entity]:
    """Return the damage that changes the text of a record as JSON; ``change`` works in place."""

    def damage(record: Entity) -> Entity:
        stored = json.loads(record["body0"])
        change(stored)
        return record | {"body0": json.dumps(stored)}

    return damage


def without(*path: str) -> Callable[[Entity], Entity]:
    return body(lambda stored: at(stored, path[:-1]).pop(path[-1]))


def with_value(value: object, *path: str) -> Callable[[Entity], Entity]:
    return body(lambda stored: at(stored, path[:-1]).update({path[-1]: value}))


def at(stored: Entity, path: tuple[str, ...]) -> Entity:
    for name in path:
        stored = stored[name]
    return stored


def text(change: Callable[[str], object]) -> Callable[[Entity], Entity]:
    return lambda record: record | {"body0": change(record["body0"])}


def lacking(*names: str) -> Callable[[Entity], Entity]:
    return lambda record: {name: value for name, value in record.items() if name not in names}


def zipped(change: Callable[[bytes], Entity]) -> Callable[[Entity], Entity]:
    """Return the damage of a record whose text is stored compressed."""
    return lambda record: lacking("body0")(record) | change(zlib.compress(record["body0"].encode()))


DAMAGED: Mapping[str, tuple[Callable[[Entity], Entity], str]] = {
    "no uid": (without("uid"), "uid is missing"),
    "no job": (without("job"), "job is missing"),
    "no document": (without("document"), "document is missing"),
    "no step": (without("job", "step", "name"), "job.step.name is missing"),
    "a number where a text belongs": (with_value(7, "commit"), "commit is wrong (string_type)"),
    "a text where a number belongs": (with_value("many", "generation"), "generation is wrong (int_parsing)"),
    "null where a text belongs": (with_value(None, "uid"), "uid is wrong (string_type)"),
    "a list where an object belongs": (with_value([], "job"), "job is wrong (dataclass_type)"),
    "a time without a zone": (
        with_value("2026-01-01T12:00:00", "updated"),
        "updated is a time without a zone",
    ),
    "another time without a zone": (
        with_value("2026-01-01T12:00:00", "job", "step", "since"),
        "job.step.since is a time without a zone",
    ),
    "no time": (with_value("soon", "created"), "created is wrong (datetime_from_date_parsing)"),
    "an unknown phase": (with_value("Dreaming", "phase"), "phase has an unknown value"),
    "an unknown step": (with_value("dance", "job", "step", "name"), "job.step.name has an unknown value"),
    "a step of another recipe": (
        with_value("delete-cluster", "job", "step", "name"),
        "job.step.name is no step of job.recipe",
    ),
    "a document without a spec": (
        without("document", "spec"),
        "document.spec is missing, or has a wrong type",
    ),
    "a spec without its place": (
        without("document", "spec", "location"),
        "document.spec.location is missing, or has a wrong type",
    ),
    "the record of another cluster": (with_value("four", "name"), "document.name is not name"),
    "a text that is cut off": (text(lambda whole: whole[:-20]), "the text is no JSON"),
    "no JSON": (text(lambda _: "sekrit"), "the text is no JSON"),
    "another JSON": (text(lambda _: "[]"), "the text is wrong (dataclass_type)"),
    "an empty text": (text(lambda _: ""), "the text is no JSON"),
    "a text that is a number": (
        text(lambda _: 7),
        "a part of the text is missing, damaged or of a wrong type",
    ),
    "no text": (lacking("body0"), "the text is missing: there is neither body0 nor zip0"),
    "nothing but keys": (
        lambda record: {name: record[name] for name in ("PartitionKey", "RowKey")},
        "the text is missing: there is neither body0 nor zip0",
    ),
    "a broken stream": (
        zipped(lambda data: {"zip0": data[:50]}),
        "a part of the text is missing, damaged or of a wrong type",
    ),
    "a stream whose second part is missing": (
        zipped(lambda data: {"zip0": data[:100], "zip2": data[100:]}),
        "a part of the text is missing, damaged or of a wrong type",
    ),
    "a stream that is a text": (
        zipped(lambda _: {"zip0": "sekrit"}),
        "a part of the text is missing, damaged or of a wrong type",
    ),
    "no property active": (lacking("active"), "the property active is missing, or is not job.active"),
    "a property active that is a text": (
        lambda record: record | {"active": "sekrit"},
        "the property active is missing, or is not job.active",
    ),
}
"""Each with what is said of it."""

REPEATED: Mapping[str, Callable[[Entity], Entity]] = {
    "no summary": lacking("summary"),
    "no details": lacking("details"),
    "no continuation": lacking("continuation"),
    "a broken summary": lambda record: record | {"summary": record["summary"][:-1]},
    "a summary that is a number": lambda record: record | {"summary": 7},
    "broken details": lambda record: record | {"details": "[]"},
    "a broken continuation": lambda record: record | {"continuation": "{}"},
}
"""What only repeats a part of the record, which can be read."""


class Tables:
    """Edits records as an operator does, with a client of his own."""

    def __init__(self, service: TableServiceClient) -> None:
        self._service = service

    def edit(
        self, table: str, partition: str, key: str, damage: Callable[[Entity], Entity]
    ) -> Callable[[], object]:
        """Damage a record; return what puts it right again."""
        client = self._service.get_table_client(table)
        before = dict(client.get_entity(partition, key))
        client.upsert_entity(damage(dict(before)), mode=UpdateMode.REPLACE)
        return lambda: client.upsert_entity(before, mode=UpdateMode.REPLACE)

    def entity(self, table: str, partition: str, key: str) -> Entity:
        return dict(self._service.get_table_client(table).get_entity(partition, key))

    def keys(self, table: str, partition: str) -> list[str]:
        records = self._service.get_table_client(table).query_entities(f"PartitionKey eq '{partition}'")
        return [str(record["RowKey"]) for record in records]
