"""Every table is lost: docs/how-to/recover-from-a-disaster.md describes what happens then."""

from __future__ import annotations

from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.jobs.record import Phase
from tests.support import fleet_files
from tests.support.pipeline_runs import accepted, phases, push


def lose_every_table(cloud: MemoryCloud) -> None:
    empty = MemoryState()
    cloud.state = empty
    cloud.with_ports(lambda ports: replace(ports, state=empty))


def test_the_records_are_rebuilt_from_git_and_azure_without_a_write_to_azure() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.example())
    cloud.run()
    writes = accepted(cloud)
    lose_every_table(cloud)
    push(cloud, fleet_files.example() | {"README.md": b"the next push"})
    cloud.run()
    assert phases(cloud) == dict.fromkeys(["atlantic-aks", "pacific-aks", "sargasso-aks"], Phase.READY)
    assert accepted(cloud) == writes


def test_a_cluster_that_git_no_longer_has_stays_in_azure() -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    writes = accepted(cloud)
    lose_every_table(cloud)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == writes
