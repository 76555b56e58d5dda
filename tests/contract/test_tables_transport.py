"""The transport of the tables: its connections, and the environment, which it reads once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier

import pytest

from shared.adapters.tables import storage_tables, table_service
from shared.cluster.failures.errors import Unavailable
from shared.ports import State
from shared.ports.tally import Tally
from tests.support.azurite import connect, connection_string

SESSIONS = 17
"""One more than ``maxConcurrentSessions`` in host.json."""
NOBODY = "http://127.0.0.1:1"


def test_as_many_sessions_as_an_instance_has_keep_their_connections(
    azurite: int, caplog: pytest.LogCaptureFixture
) -> None:
    together = Barrier(SESSIONS)
    with connect(azurite) as service, ThreadPoolExecutor(SESSIONS) as pool:
        state = State(storage_tables(service), "transport")

        def read(_: int) -> None:
            together.wait(30)
            assert state.cluster("one") is None

        for _ in range(3):
            list(pool.map(read, range(SESSIONS)))
    assert [record.message for record in caplog.records if "pool is full" in record.message] == []


def test_a_proxy_of_the_environment_is_used_from_the_creation_of_a_client_on(
    azurite: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(azurite) as service:
        monkeypatch.setenv("HTTP_PROXY", NOBODY)
        assert State(storage_tables(service), "transport").cluster("one") is None
    with connect(azurite) as service, pytest.raises(Unavailable):
        State(storage_tables(service), "transport").cluster("one")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with connect(azurite) as service:
        assert State(storage_tables(service), "transport").cluster("one") is None


def test_each_request_is_counted_by_its_table_without_a_key(azurite: int) -> None:
    tally, at = Tally(), datetime(2026, 1, 1, tzinfo=UTC)
    given = connection_string(azurite)
    with table_service(connection_string=given, endpoint=None, credential=None, count=tally.add) as service:
        state = State(storage_tables(service), "counted")
        for number in range(25):
            state.save_timer_run(f"timer-{number}", at)
        assert len(state.timer_runs()) == 25
    counts = dict(tally.due())

    assert counts.pop("seconds") == 0
    assert counts.pop("tables POST Tables", 0) <= 1, "the first write of all creates the table"
    assert {name.partition(" ")[2] for name in counts} <= {
        *("PATCH roadsteadfleets", "PUT roadsteadfleets", "GET roadsteadfleets"),
    }
    assert counts["tables GET roadsteadfleets"] == 1
    assert sum(counts.values()) in (26, 27)
