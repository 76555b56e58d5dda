"""Every table is lost: docs/how-to/recover-from-a-disaster.md describes what happens then."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from shared.app.api.views.clusters import fleet_view
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetGroup
from tests.support import fleet_files
from tests.support.one_cluster import ONE, cluster, files, ready, record
from tests.support.pipeline_runs import accepted, cloud_with, phases, push

pytestmark = pytest.mark.lives

EXAMPLE = ["atlantic-aks", "pacific-aks", "sargasso-aks"]


def take_all_over(cloud: MemoryCloud) -> list[str]:
    """Take over every cluster that waits for it; return their names."""
    waiting = [record.name for record in cloud.state.clusters() if record.contested]
    for name in waiting:
        assert take_over(name, "jo", cloud.ports).status == 202
    return waiting


def test_without_its_tables_an_app_writes_nothing_and_says_so() -> None:
    cloud = cloud_with(fleet_files.example())
    before, id_before = accepted(cloud), cloud.state.fleet().app.installation
    cloud.state.lose()
    push(cloud, fleet_files.example() | {"README.md": b"the next push"})
    cloud.run(seconds=1200, until=lambda: False)
    assert cloud.state.fleet().app.installation not in ("", id_before)
    writes = accepted(cloud) - before
    assert {kind for kind, _ in writes} == {"update"}, "the contest tags"
    assert set(writes.values()) == {1}
    view = fleet_view(cloud.ports)
    assert view["problem"].endswith(", ".join(EXAMPLE))
    assert all(summary["awaitsTakeover"] for summary in view["clusters"])


def test_after_a_takeover_the_records_are_rebuilt_from_git_and_azure() -> None:
    cloud = cloud_with(fleet_files.example())
    lives = {name: cloud.state.cluster(name) for name in EXAMPLE}
    before = accepted(cloud)
    cloud.state.lose()
    push(cloud, fleet_files.example() | {"README.md": b"the next push"})
    cloud.run(seconds=1200, until=lambda: False)
    assert take_all_over(cloud) == EXAMPLE
    cloud.run()
    assert phases(cloud) == dict.fromkeys(EXAMPLE, Phase.READY)
    writes = accepted(cloud) - before
    assert {kind for kind, _ in writes} == {"update"}
    assert set(writes.values()) == {2}, "the contest tag, and our tags in its place"
    assert fleet_view(cloud.ports)["problem"] == ""
    for name, old in lives.items():
        new = cloud.state.cluster(name)
        assert old is not None
        assert new is not None
        assert new.azure.life == old.uid


def test_a_cluster_that_was_taken_over_is_deleted_with_its_group() -> None:
    cloud = ready()
    cloud.state.lose()
    push(cloud, files() | {"README.md": b"the next push"})
    cloud.run(seconds=600, until=lambda: False)
    take_all_over(cloud)
    cloud.run()
    assert "roadstead-contested-by" not in cluster(cloud)["tags"]
    assert record(cloud).ownership.predecessors
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_cluster_that_git_no_longer_has_stays_in_azure() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    writes = accepted(cloud)
    cloud.state.lose()
    push(cloud, fleet_files.fleet("one"))
    cloud.run(seconds=600, until=lambda: False)
    take_all_over(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert not [write for write in accepted(cloud) - writes if "two" in write[1]]
