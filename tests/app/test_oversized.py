"""What is too large to be stored stops its own cluster, and the failure of the state is reported."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.cluster.failures.errors import ReconcileError, TooLarge, Unauthorized, Unavailable
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.resolve.cluster_resolver import MAX_RESOLVED_BYTES
from tests.support import fleet_files
from tests.support.function_calls import call
from tests.support.pipeline_runs import phases, push, ready, record_of, status
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def noise(size: int) -> str:
    return base64.b64encode(random.Random(size).randbytes(size * 3 // 4)).decode()


def large(names: int, size: int) -> dict[str, bytes]:
    """Return a fleet in which the cluster large gets much from a class."""
    files = fleet_files.fleet("one", "large", "two")
    window = "\n".join(f"        - {noise(size + number)}" for number in range(names))
    extra = f"  azure:\n    properties:\n      customCATrustCertificates:\n{window}\n"
    files["clusters/large/cluster.yaml"] = fleet_files.cluster("large", extra=extra)
    return files


def refuse(cloud: MemoryCloud, name: str) -> None:
    save: Callable[[ClusterRecord], ClusterRecord] = cloud.state.save

    def saved(record: ClusterRecord) -> ClusterRecord:
        if record.name == name:
            raise TooLarge("the record is too large: it has 2000000 bytes")
        return save(record)

    around(cloud, "state", save=saved)


def test_a_cluster_whose_record_is_refused_as_too_large_is_an_invalid_manifest_and_no_other_is() -> None:
    cloud = MemoryCloud()
    refuse(cloud, "large")
    commit = push(cloud, fleet_files.fleet("one", "large", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    expected = "large: clusters/large/cluster.yaml: the record is too large: it has 2000000 bytes"
    assert status(cloud, commit) == ("failure", expected)
    assert fleet_view(cloud.ports)["notCreated"] == ["large"]


def test_a_change_that_is_refused_as_too_large_keeps_the_cluster_as_it_was() -> None:
    cloud = ready("one", "large")
    before = cloud.state.cluster("large")
    refuse(cloud, "large")
    files = fleet_files.all_at_once(fleet_files.fleet("one", "large"))
    for name in ("one", "large"):
        files[f"clusters/{name}/cluster.yaml"] = fleet_files.cluster(name, count=3)
    commit = push(cloud, files)
    cloud.run()
    assert cloud.state.cluster("large") == before
    changed = record_of(cloud, "one")
    assert (changed.generation, changed.observed_generation) == (2, 2)
    assert "(the cluster stays at its last valid spec)" in status(cloud, commit)[1]
    assert cloud.state.fleet().problem is None


@pytest.mark.parametrize("error", [Unavailable("no answer"), Unauthorized("no role"), TooLarge("8 MiB")])
def test_a_plan_that_the_state_does_not_take_is_reported_on_the_commit_and_in_the_status(
    error: ReconcileError,
) -> None:
    cloud = ready("one")
    save_plan = cloud.state.save_plan

    def refused(_: Any) -> None:
        raise error

    around(cloud, "state", save_plan=refused)
    cloud.clock.advance(2)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(30)
    said = f"the newest commit could not be planned: {error.kind}: {error}"
    assert status(cloud, commit) == ("error", said)
    assert fleet_view(cloud.ports)["problem"] == said
    assert len(cloud.repository.statuses.history(commit)) == 1
    around(cloud, "state", save_plan=save_plan)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    assert fleet_view(cloud.ports)["problem"] == ""


def test_a_state_that_does_not_answer_is_an_answer_of_the_api_with_its_reason() -> None:
    cloud = MemoryCloud()

    def away() -> None:
        raise Unavailable("Table Storage did not answer")

    around(cloud, "state", fleet=away)
    assert call(cloud.ports, "clusters") == (
        503,
        {"error": "a service that Roadstead needs has failed: Unavailable: Table Storage did not answer"},
    )


def test_a_manifest_that_is_too_large_with_what_is_merged_into_it_says_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.language.resolve.cluster_resolver.MAX_RESOLVED_BYTES", 20_000)
    assert MAX_RESOLVED_BYTES == 512 * 1024
    cloud = MemoryCloud()
    commit = push(cloud, large(3, 8000))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    state, description = status(cloud, commit)
    assert state == "failure"
    shown = re.fullmatch(
        r"large: clusters/large/cluster\.yaml:1:1: has (\d+) bytes with everything that is merged into it, "
        r"and at most 20000 are stored",
        description,
    )
    assert shown, description
    assert 3 * 8000 < int(shown[1]) < 3 * 8000 + 2000
