"""How often the console reads the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.counting import Call, Watched
from localcloud.tables.memory_state import FLEET
from shared.ports import State
from shared.ports.process import in_turn
from tests.support.console_pages import browse
from tests.support.pipeline_runs import ready


def test_a_cluster_costs_four_reads_one_more_costs_two_and_a_second_visit_within_seconds_none() -> None:
    cloud, reads = ready("one", "two"), list[str]()

    def note(call: Call) -> None:
        reads.append(f"{call.method} {call.given} {call.named}")

    tables: Any = {name: Watched(table, note) for name, table in cloud.state.tables.items()}
    ports = replace(cloud.ports, state=State(tables, FLEET, in_turn))
    browse(ports, "/clusters/one")
    assert len(reads) == 4, "with two of the whole fleet that all pages share: its records, and its plan"
    reads.clear()
    assert browse(ports, "/clusters/two").status_code == 200
    assert len(reads) == 2, reads
    reads.clear()
    assert browse(ports, "/clusters/two").status_code == 200
    assert reads == []
    browse(ports, "/")
    browse(ports, "/rollouts")
    assert sum("summary" in read for read in reads) == 1
