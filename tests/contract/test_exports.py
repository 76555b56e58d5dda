"""The daily export over Azurite, tables and blobs through the clients of production, and its restore."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from localcloud.common.clock import ManualClock
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.exports import BlobExports, exports_container
from shared.adapters.tables import storage_tables, table_service
from shared.app.recovery.housekeeping import export_days, restore
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.history import Act
from shared.ports import FleetConfig, Ports, State
from shared.ports.services import Exports, NoExports
from shared.ports.state.app import ACTS
from shared.ports.state.clusters import CLUSTERS
from shared.ports.state.exported import EXPORTED, line_of, values_of
from shared.ports.tables import Entity, Table
from tests.support.azure_ports import StaticCredential
from tests.support.azurite import KEY, running_storage
from tests.support.pipeline_runs import ready
from tools import restore as tool

pytestmark = pytest.mark.lives


@pytest.fixture(scope="module")
def connection() -> Iterator[str]:
    with running_storage() as (blob, table):
        account = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1"
        blobs = f"BlobEndpoint=http://127.0.0.1:{blob}/devstoreaccount1"
        tables = f"TableEndpoint=http://127.0.0.1:{table}/devstoreaccount1"
        yield f"{account};AccountKey={KEY};{blobs};{tables}"


class Place:
    """A fleet in the tables and blobs of Azurite, whose day is over."""

    def __init__(self, connection: str) -> None:
        self.fleet = f"f{uuid.uuid4().hex[:8]}"
        self.service = table_service(connection_string=connection, endpoint=None, credential=None)
        self.container = exports_container(
            connection_string=connection, url=None, credential=StaticCredential()
        )
        self.exports: Exports = BlobExports(self.container)
        self.state = State(storage_tables(self.service), self.fleet)
        self.clock = ManualClock(datetime.now(UTC) + timedelta(days=1, hours=2))
        config = FleetConfig(self.fleet, "example/fleet")
        ports = MemoryCloud().ports
        services = replace(ports.services, exports=self.exports)
        self.ports: Ports = replace(
            ports, config=config, state=self.state, services=services, clock=self.clock
        )

    def lose_tables(self) -> None:
        """Remove everything of the fleet."""
        for name in EXPORTED:
            table: Table = storage_tables(self.service)[name]
            table.remove([entity.place for entity in rows(table, self.fleet)])

    def stored(self) -> list[tuple[str, tuple[str, str], dict[str, object]]]:
        """Return what the fleet has in the tables that are exported."""
        tables = storage_tables(self.service)
        return [
            (name, entity.place, dict(entity.properties))
            for name in EXPORTED
            for entity in rows(tables[name], self.fleet)
        ]


def rows(table: Table, fleet: str) -> list[Entity]:
    found = [*table.query(fleet)]
    for partitions in (fleet, f"parts|{fleet}"):
        found += table.query(f"{partitions}|", until=f"{partitions}}}")
    return found


@pytest.fixture
def place(connection: str) -> Iterator[Place]:
    made = Place(connection)
    with made.service, made.container:
        yield made


def act(number: int, result: str = "") -> Act:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    return Act(f"{number:08x}", at, "approve", "one", "ann", reason="ü {'", result=result)


def life(place: Place) -> None:
    """Write what a fleet of one cluster has after its first plan."""
    cloud = ready("one")
    for name in EXPORTED:
        target = storage_tables(place.service)[name]
        for entity in rows(cloud.state._tables[name], cloud.state._fleet):
            partition, key = (text.replace(cloud.state._fleet, place.fleet) for text in entity.place)
            properties = {n: v for n, v in entity.properties.items() if n not in ("PartitionKey", "RowKey")}
            target.put(partition, {key: properties})
    place.state.save_act(act(1))


def test_what_only_tables_have_comes_back_as_it_was(place: Place) -> None:
    life(place)
    before = place.stored()
    assert {name for name, *_ in before} == set(EXPORTED)
    assert export_days(place.ports).startswith(f"{place.fleet}/20")
    place.lose_tables()
    assert place.stored() == []
    assert restore(place.fleet, place.state, place.exports, date.min) == (len(before), 0)
    assert place.stored() == before
    assert [found.reason for found in place.state.acts(5)] == ["ü {'"]


def test_a_day_is_exported_once_and_a_day_that_was_missed_is_in_the_next_one(place: Place) -> None:
    place.state.save_act(act(1))
    name = export_days(place.ports)
    assert export_days(place.ports) == ""
    place.clock.advance(3 * 86400)
    later = export_days(place.ports)
    assert later > name
    assert sorted(place.exports.names(f"{place.fleet}/")) == [name, later]
    assert [*place.exports.lines(later)] == [], "what was exported is not exported again"


def test_a_file_that_is_there_is_not_written_again(place: Place) -> None:
    place.exports.write(f"{place.fleet}/a", ["1"])
    place.exports.write(f"{place.fleet}/a", ["2"])
    assert [*place.exports.lines(f"{place.fleet}/a")] == ["1"]


def test_lines_of_many_blocks_come_back_whole(place: Place) -> None:
    lines = [f"{number} " + "x" * 100_000 for number in range(120)]
    place.exports.write(f"{place.fleet}/large", iter(lines))
    assert [*place.exports.lines(f"{place.fleet}/large")] == lines


def test_what_is_there_is_newer_and_stays(place: Place) -> None:
    place.state.save_act(act(1))
    export_days(place.ports)
    place.state.save_act(act(1, result="done"))
    assert restore(place.fleet, place.state, place.exports, date.min) == (0, 1)
    assert [found.result for found in place.state.acts(5)] == ["done"]


def test_of_two_exports_the_newer_version_is_restored(place: Place) -> None:
    place.state.save_act(act(1))
    export_days(place.ports)
    (entity,) = rows(storage_tables(place.service)[ACTS], place.fleet)
    older = line_of(ACTS, entity)
    place.lose_tables()
    place.state.save_act(act(1, result="done"))
    (entity,) = rows(storage_tables(place.service)[ACTS], place.fleet)
    place.exports.write(f"{place.fleet}/9999-01-01.jsonl", [line_of(ACTS, entity)])
    place.lose_tables()
    assert restore(place.fleet, place.state, place.exports, date.min) == (1, 1)
    assert [found.result for found in place.state.acts(5)] == ["done"]
    assert restore(place.fleet, place.state, place.exports, date(9999, 1, 2)) == (0, 0)
    assert older != line_of(ACTS, entity)


def test_another_fleet_of_the_account_is_left_out(place: Place, connection: str) -> None:
    other = Place(connection)
    with other.service, other.container:
        other.state.save_act(act(1))
        export_days(place.ports)
        (name,) = place.exports.names(f"{place.fleet}/")
        assert [*place.exports.lines(name)] == []


def test_the_tool_restores_and_says_how_much(
    place: Place, connection: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.save_act(act(1))
    export_days(place.ports)
    place.lose_tables()
    monkeypatch.setenv("TABLES_CONNECTION_STRING", connection)
    monkeypatch.setenv("EXPORTS_CONNECTION_STRING", connection)
    assert tool.main([place.fleet]) == 0
    assert capsys.readouterr().out == "1 entities were restored; 0 were there, and stay as they are\n"


def test_blobs_that_do_not_answer_are_an_error_of_ours() -> None:
    nowhere = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:1/a"
    with exports_container(connection_string=nowhere, url=None, credential=StaticCredential()) as container:
        for call in (
            lambda: BlobExports(container).names("a"),
            lambda: BlobExports(container).write("a", []),
            lambda: [*BlobExports(container).lines("a")],
        ):
            with pytest.raises(ReconcileError, match="Blob Storage did not answer"):
                call()


def test_an_app_without_a_container_exports_nothing() -> None:
    exports = NoExports()
    exports.write("a", ["1"])
    assert (exports.names(""), [*exports.lines("a")]) == ((), [])


def test_a_line_of_another_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no such table"):
        values_of(f'{{"table": "{CLUSTERS}", "partition": "f", "key": "one", "properties": {{}}}}')


def test_the_container_of_the_templates_is_the_one_of_the_adapter() -> None:
    text = (Path(__file__).parents[2] / "infra" / "storage.bicep").read_text()
    assert "name: 'exports'" in text
