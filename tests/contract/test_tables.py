"""The port of tables, in memory and in Table Storage (Azurite) through the real client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from localcloud.tables.memory_tables import MemoryTable
from shared.adapters.tables import StorageTable
from shared.cluster.failures.errors import ReconcileError, Stale, TooLarge
from shared.ports.tables import Condition, Properties, Table
from tests.support.azurite import connect

NOW = datetime(2027, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture(params=["memory", "azurite"])
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """A table that no other test uses."""
    if request.param == "memory":
        yield MemoryTable("memory")
        return
    with connect(request.getfixturevalue("azurite")) as service:
        yield StorageTable(service, f"t{uuid.uuid4().hex}")


def keys(table: Table, *conditions: Condition, partition: str = "p", **how: Any) -> list[str]:
    return [entity["RowKey"] for entity in table.query(partition, *conditions, **how)]


def test_a_table_that_was_never_written_to_is_empty(table: Table) -> None:
    assert table.get("p", "a") is None
    assert keys(table) == []
    assert table.remove([("p", "a"), ("p", "b"), ("q", "a")]) == 3


def test_an_entity_is_read_as_it_was_written(table: Table) -> None:
    properties: dict[str, Any] = {
        "text": "ü\n'\"\N{GRINNING FACE}",
        "empty": "",
        "bytes": bytes(range(256)),
        "no": b"",
    }
    properties |= {"true": True, "false": False, "number": 7, "at": NOW}
    etag = table.write("p|q", "a:b-c_d.e ~", properties, "")
    found = table.get("p|q", "a:b-c_d.e ~")
    assert found is not None
    assert {name: found[name] for name in properties} == properties
    assert (found.etag, found.place, found.table) == (etag, ("p|q", "a:b-c_d.e ~"), table)
    assert ("text" in found, "missing" in found, found.get("missing", 1)) == (True, False, 1)


def test_an_entity_is_written_over_the_version_that_was_read_alone(table: Table) -> None:
    first = table.write("p", "a", {"n": 1}, "")
    second = table.write("p", "a", {"m": 2}, first)
    refused: list[Callable[[str], object]] = [
        lambda etag: table.write("p", "a", {"n": 3}, etag),
        lambda etag: table.merge("p", "a", {"n": 3}, etag),
        lambda etag: table.delete("p", "a", etag),
    ]
    for write in refused:
        with pytest.raises(Stale):
            write(first)
    with pytest.raises(Stale):
        table.write("p", "a", {"n": 3}, "")
    found = table.get("p", "a")
    assert found is not None
    assert (found.etag, found.get("n"), found["m"]) == (second, None, 2)


def test_an_entity_that_was_removed_is_not_written_again(table: Table) -> None:
    etag = table.write("p", "a", {"n": 1}, "")
    table.delete("p", "a", etag)
    for write in (table.write, table.merge):
        with pytest.raises(Stale):
            write("p", "a", {"n": 2}, etag)
    table.delete("p", "a", etag)
    assert table.get("p", "a") is None


def test_a_merge_leaves_the_other_properties(table: Table) -> None:
    etag = table.write("p", "a", {"n": 1, "m": 2}, "")
    merged = table.merge("p", "a", {"m": 3}, etag)
    found = table.get("p", "a")
    assert found is not None
    assert (found.etag, found["n"], found["m"]) == (merged, 1, 3)


def test_a_put_is_over_any_version_and_of_any_number(table: Table) -> None:
    table.put("p", {})
    table.put("p", {"a": {"n": 1, "m": 1}})
    large = {f"{number:03}": {"content": b"x" * 60_000} for number in range(80)}
    table.put("p", large | {f"b{number:03}": {} for number in range(250)} | {"a": {"n": 2}})
    found = table.get("p", "a")
    assert found is not None
    assert (found["n"], "m" in found) == (2, False)
    assert len(keys(table)) == 331


def test_entities_come_by_the_characters_of_their_keys(table: Table) -> None:
    names = ["", "-", ".", "1", "10", "2", "A", "Z", "_", "a", "a b", "a-b", "a:b", "aa", "b", "|", "~", "é"]
    for name in reversed(names):
        table.write("p", name, {}, "")
    table.write("pp", "other", {}, "")
    assert keys(table) == names
    assert keys(table, page=3) == names
    assert keys(table, ("RowKey", "gt", "a"), ("RowKey", "lt", "b")) == ["a b", "a-b", "a:b", "aa"]
    assert keys(table, ("RowKey", "ge", "a"), ("RowKey", "le", "b")) == ["a", "a b", "a-b", "a:b", "aa", "b"]


def test_a_condition_leaves_what_has_the_property_and_its_type(table: Table) -> None:
    entities = {"a": {"open": True, "at": NOW}, "b": {"open": False, "at": NOW + timedelta(seconds=1)}}
    table.put("p", entities | {"c": {}, "d": {"open": "true"}})
    assert keys(table, ("open", "eq", True)) == ["a"]
    assert keys(table, ("at", "ge", NOW)) == ["a", "b"]
    assert keys(table, ("at", "gt", NOW)) == ["b"]
    assert keys(table, ("at", "lt", NOW + timedelta(seconds=1)), ("open", "eq", False)) == []
    assert keys(table, ("at", "le", NOW), ("RowKey", "gt", "")) == ["a"]


def test_what_was_written_since_a_time_is_found(table: Table) -> None:
    table.put("p", {"a": {}, "b": {}})
    first, second = (entity.written for entity in table.query("p"))
    assert keys(table, ("Timestamp", "ge", min(first, second))) == ["a", "b"]
    assert keys(table, ("Timestamp", "gt", max(first, second))) == []


def test_partitions_between_two_others_are_read_in_their_order(table: Table) -> None:
    for partition in ("f|a", "f|b", "f|b-2", "f|b0", "f|c", "g|b"):
        table.put(partition, {"1": {}, "2": {}})
    found = [entity.place for entity in table.query("f|a", ("RowKey", "gt", "1"), until="f|c")]
    assert found == [("f|b", "2"), ("f|b-2", "2"), ("f|b0", "2")]
    assert list(table.query("f|b", until="f|b")) == []


def test_only_selected_properties_are_read(table: Table) -> None:
    table.write("p", "a", {"n": 1, "m": 2}, "")
    (found,) = table.query("p", select=("n", "missing"))
    assert ("RowKey" in found, found["n"], "m" in found) == (False, 1, False)
    (found,) = table.query("p", select=("PartitionKey", "RowKey"))
    assert (found.place, "n" in found) == (("p", "a"), False)


def test_removed_entities_are_gone_in_any_version_and_missing_ones_count(table: Table) -> None:
    table.put("p", {f"{number:03}": {} for number in range(120)})
    table.put("q", {"a": {}, "b": {}})
    some = [("p", f"{number:03}") for number in range(110)]
    assert table.remove([*some, ("p", "missing"), ("q", "a")]) == 112
    assert (len(keys(table)), keys(table, partition="q")) == (10, ["b"])


@pytest.mark.parametrize("key", ["a/b", "a\\b", "a#b", "a?b", "a\x00b", "a\nb", "\x85", "\ud800", "n" * 513])
def test_a_key_that_no_entity_can_have_is_not_there(table: Table, key: str) -> None:
    table.write("p", "a", {}, "")
    assert (table.get("p", key), table.get(key, "a")) == (None, None)
    assert keys(table, partition=key) == keys(table, ("RowKey", "gt", key)) == []


def test_an_entity_beyond_a_limit_is_refused_and_changes_nothing(table: Table) -> None:
    etag = table.write("p", "a", {"n": 1}, "")
    with pytest.raises(TooLarge):
        table.write("p", "a", {f"n{number}": b"x" * 60_000 for number in range(20)}, etag)
    with pytest.raises(ReconcileError):
        table.write("p", "a", {"text": "x" * 33_000}, etag)
    found = table.get("p", "a")
    assert found is not None
    assert found.etag == etag
    table.write("p", "a", {f"n{number}": "x" * 2_000 for number in range(200)}, etag)


@pytest.mark.parametrize("properties", [{"n": b"x" * 66_000}, {f"n{number}": 1 for number in range(253)}])
def test_memory_refuses_what_table_storage_refuses_and_azurite_takes(properties: Properties) -> None:
    with pytest.raises(ReconcileError):
        MemoryTable("memory").write("p", "a", properties, "")
