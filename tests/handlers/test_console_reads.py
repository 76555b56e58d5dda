"""How often the console reads the tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from bench.counting import Call, Watched
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import FLEET
from shared.app.api import schema
from shared.app.api.views.clusters import fleet_view
from shared.app.console.pages import fleet_page
from shared.ports import Ports, State
from shared.ports.process import in_turn
from shared.ports.state import clusters
from tests.support import team_systems
from tests.support.console_pages import browse
from tests.support.pipeline_runs import push, ready

VIEWERS = 20


def watched(cloud: MemoryCloud) -> tuple[Ports, list[str]]:
    """Return ports of an instance of its own, and the reads that it does."""
    reads = list[str]()

    def note(call: Call) -> None:
        reads.append(f"{call.method} {call.given} {call.named}")

    tables: Any = {name: Watched(table, note) for name, table in cloud.state.tables.items()}
    return replace(cloud.ports, state=State(tables, FLEET, in_turn)), reads


def test_a_cluster_costs_four_reads_one_more_costs_two_and_a_second_visit_within_seconds_none() -> None:
    ports, reads = watched(ready("one", "two"))
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


def test_twenty_people_at_once_cost_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud, made = ready("one", "two"), list[str]()

    def counted(*given: Any) -> schema.FleetView:
        made.append("the page")
        return fleet_view(*given)

    monkeypatch.setattr(fleet_page, "fleet_view", counted)
    alone, of_one = watched(cloud)
    browse(alone, "/")
    together, of_all = watched(cloud)
    browse(together, "/nowhere")  # starts the instance
    with ThreadPoolExecutor(VIEWERS) as pool:
        replies = list(pool.map(lambda _: browse(together, "/").status_code, range(VIEWERS)))
    assert replies == [200] * VIEWERS
    assert sorted(of_all) == sorted(of_one)
    assert len(made) == 2, "once for the one, and once for the twenty"


def test_the_first_page_looks_for_no_record_that_cannot_be_read() -> None:
    ports, reads = watched(ready("one"))
    browse(ports, "/")
    assert not [read for read in reads if "Timestamp" in read]


def test_details_with_many_systems_are_read_each_time_so_that_memory_has_a_bound() -> None:
    cloud = MemoryCloud()
    names = [f"system-{number:02}" for number in range(30)]
    push(cloud, team_systems.fleet("one", systems={name: team_systems.system(name, "one") for name in names}))
    cloud.run()
    before = clusters._known_details.cache_info().currsize
    (summary,) = cloud.state.summaries(details=True)
    assert summary.details is not None
    assert [system.name for system in summary.details.systems] == names
    assert clusters._known_details.cache_info().currsize == before
