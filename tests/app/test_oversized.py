"""What is too large to be stored is refused in the plan, alone, and a failure of the state is reported."""

from __future__ import annotations

import base64
import random
import re
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
from tests.support.pipeline_runs import phases, push, ready, status
from tests.support.replaced_ports import around
from tests.support.team_systems import system

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


def test_systems_that_make_a_cluster_too_large_leave_it_and_no_other_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.language.resolve.cluster_resolver.MAX_RESOLVED_BYTES", 20_000)
    cloud = ready("one", "large")
    before = cloud.state.cluster("large")
    files = fleet_files.all_at_once(fleet_files.fleet("one", "large"))
    files |= {f"systems/s{number}.yaml": system(f"s{number}", "large") for number in range(60)}
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    commit = push(cloud, files)
    cloud.run()
    assert cloud.state.cluster("large") == before
    changed = cloud.state.cluster("one")
    assert changed is not None
    assert (changed.generation, changed.observed_generation) == (2, 2)
    state, description = status(cloud, commit)
    assert state == "failure"
    expected = r"large: clusters/large/cluster\.yaml:1:1: has \d+ bytes .* are stored \(the cluster"
    assert re.match(expected, description), description
    assert cloud.state.fleet().problem is None


def test_a_manifest_that_grows_counts_with_the_systems_that_its_cluster_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.language.resolve.cluster_resolver.MAX_RESOLVED_BYTES", 20_000)
    files = fleet_files.all_at_once(fleet_files.fleet("one", "large"))
    files |= {f"systems/s{number}.yaml": system(f"s{number}", "large") for number in range(25)}
    cloud = MemoryCloud()
    push(cloud, files)
    cloud.run()
    before = cloud.state.cluster("large")
    assert before is not None
    assert len(before.document["systems"]) == 25
    files["clusters/large/cluster.yaml"] = large(2, 8000)["clusters/large/cluster.yaml"]
    commit = push(cloud, files)
    cloud.run()
    after = cloud.state.cluster("large")
    assert after is not None
    assert (after.generation, after.document) == (1, before.document)
    state, description = status(cloud, commit)
    assert state == "failure"
    assert re.match(r"large: clusters/large/cluster\.yaml:1:1: has \d+ bytes", description), description


def test_a_record_that_cannot_be_stored_keeps_its_cluster_alone_as_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cloud = ready("large", "one")
    before, save = cloud.state.cluster("large"), cloud.state.save

    def too_large(record: ClusterRecord) -> ClusterRecord:
        if record.name == "large" and record.generation > 1:
            raise TooLarge("the record has too many bytes")
        return save(record)

    around(cloud, "state", save=too_large)
    files = fleet_files.all_at_once(fleet_files.fleet("large", "one"))
    files |= {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=3) for name in ("large", "one")
    }
    commit = push(cloud, files)
    cloud.run()
    assert cloud.state.cluster("large") == before
    assert phases(cloud) == {"large": Phase.READY, "one": Phase.READY}
    changed = cloud.state.cluster("one")
    assert changed is not None
    assert changed.generation == 2
    said = "large: clusters/large/cluster.yaml: the record has too many bytes"
    assert status(cloud, commit) == ("failure", f"{said} (the cluster stays at its last valid spec)")
    assert cloud.state.fleet().problem is None
    assert "large: the record has too many bytes" in caplog.text
