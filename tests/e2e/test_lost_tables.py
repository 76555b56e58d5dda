"""The tables are deleted under a running app: its records come back, and nothing is written for that."""

from __future__ import annotations

import pytest
from azure.data.tables import TableServiceClient

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

QUICK = Options(
    create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5", "PLAN_SCHEDULE": "*/5 * * * * *"}
)
READY = {"one": "Ready", "two": "Ready"}
WRITES = ("PUT", "PATCH", "DELETE")


def delete_tables(operator: Operator) -> list[str]:
    """Delete every table of the app, and return their names."""
    with TableServiceClient.from_connection_string(
        operator.cloud.settings["TABLES_CONNECTION_STRING"]
    ) as tables:
        names = [table.name for table in tables.list_tables() if table.name.startswith("roadstead")]
        for name in names:
            tables.delete_table(name)
    return names


def written_inside(operator: Operator) -> int:
    """Count the writes that the APIs of the clusters received, without dry runs."""
    found = operator.cloud.requests("kubernetes")
    return sum(document["method"] in WRITES and "dryRun" not in document["query"] for document in found)


@pytest.mark.long
def test_tables_that_are_deleted_while_the_fleet_runs_come_back_without_a_write(start: Start) -> None:
    operator = start(QUICK)
    commit = operator.push(fleet_files.fleet("one", "two"))
    operator.wait_for_status(commit, "success")
    before, inside = operator.accepted(), written_inside(operator)
    assert inside > 0, "the count sees the first installation"
    assert "roadsteadclusters" in delete_tables(operator)
    operator.wait(lambda: operator.phases() == READY, "the records are rebuilt", seconds=120)
    assert operator.accepted() == before
    assert written_inside(operator) == inside
    follows = operator.push(fleet_files.fleet("one"))
    operator.wait_for_status(follows, "success")
    assert operator.phases() == {"one": "Ready"}
