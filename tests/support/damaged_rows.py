"""Rows of Table Storage as somebody may leave them who edits them, or restores a part of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from azure.data.tables import TableServiceClient, UpdateMode

Row = dict[str, Any]


def body(change: Callable[[Row], object]) -> Callable[[Row], Row]:
    """Return the damage that changes the text of a row as JSON; ``change`` works in place."""

    def damage(row: Row) -> Row:
        stored = json.loads(row["body0"])
        change(stored)
        return row | {"body0": json.dumps(stored)}

    return damage


def without(*path: str) -> Callable[[Row], Row]:
    return body(lambda stored: at(stored, path[:-1]).pop(path[-1]))


def with_value(value: object, *path: str) -> Callable[[Row], Row]:
    return body(lambda stored: at(stored, path[:-1]).update({path[-1]: value}))


def at(stored: Row, path: tuple[str, ...]) -> Row:
    for name in path:
        stored = stored[name]
    return stored


def text(change: Callable[[str], object]) -> Callable[[Row], Row]:
    return lambda row: row | {"body0": change(row["body0"])}


def lacking(*names: str) -> Callable[[Row], Row]:
    return lambda row: {name: value for name, value in row.items() if name not in names}


def zipped(change: Callable[[bytes], Row]) -> Callable[[Row], Row]:
    """Return the damage of a row whose text is stored compressed."""
    return lambda row: lacking("body0")(row) | change(zlib.compress(row["body0"].encode()))


DAMAGED: Mapping[str, tuple[Callable[[Row], Row], str]] = {
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
    "an unknown phase": (with_value("Sleeping", "phase"), "phase has an unknown value"),
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
        lambda row: {name: row[name] for name in ("PartitionKey", "RowKey")},
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
        lambda row: row | {"active": "sekrit"},
        "the property active is missing, or is not job.active",
    ),
}
"""Each with what is said of it."""

REPEATED: Mapping[str, Callable[[Row], Row]] = {
    "no summary": lacking("summary"),
    "no details": lacking("details"),
    "no continuation": lacking("continuation"),
    "a broken summary": lambda row: row | {"summary": row["summary"][:-1]},
    "a summary that is a number": lambda row: row | {"summary": 7},
    "broken details": lambda row: row | {"details": "[]"},
    "a broken continuation": lambda row: row | {"continuation": "{}"},
}
"""What only repeats a part of the record, which can be read."""


class Tables:
    """Edits rows as an operator does, with a client of his own."""

    def __init__(self, service: TableServiceClient) -> None:
        self._service = service

    def edit(
        self, table: str, partition: str, key: str, damage: Callable[[Row], Row]
    ) -> Callable[[], object]:
        """Damage a row; return what puts it right again."""
        client = self._service.get_table_client(table)
        before = dict(client.get_entity(partition, key))
        client.upsert_entity(damage(dict(before)), mode=UpdateMode.REPLACE)
        return lambda: client.upsert_entity(before, mode=UpdateMode.REPLACE)

    def keys(self, table: str, partition: str) -> list[str]:
        rows = self._service.get_table_client(table).query_entities(f"PartitionKey eq '{partition}'")
        return [str(row["RowKey"]) for row in rows]
