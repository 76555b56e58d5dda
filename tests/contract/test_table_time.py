"""The time of Table Storage, with which an instance compares its clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.adapters.tables import table_time
from shared.cluster.failures.errors import Unavailable
from tests.support.azurite import connect
from tests.support.receivers import answering


def test_it_is_that_of_the_answer_in_whole_seconds(azurite: int) -> None:
    before = datetime.now(UTC)
    with connect(azurite) as service:
        read = table_time(service)
    assert before - timedelta(seconds=1) < read <= datetime.now(UTC)
    assert read.microsecond == 0


def test_an_answer_without_a_time_is_an_error() -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close"
    with (
        answering(f"{head}\r\n\r\n{{}}".encode()) as url,
        connect(int(url.rpartition(":")[2])) as service,
        pytest.raises(Unavailable, match="did not say its time"),
    ):
        table_time(service)
