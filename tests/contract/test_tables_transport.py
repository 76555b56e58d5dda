"""The transport of the tables: its connections, and the environment, which it reads once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from shared.adapters.tables import storage_tables
from shared.cluster.failures.errors import Unavailable
from shared.ports import State
from tests.support.azurite import connect

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
