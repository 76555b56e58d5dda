"""Stages whose clusters are suspended, or have an invalid manifest, when a commit changes the platform."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.cluster.record_parts import Phase
from tests.support.pipeline_runs import phases, push, status
from tests.support.soaking_stages import SOAKED, wait
from tests.support.staged_fleets import (
    DEV,
    NAMESPACE,
    PROD,
    act,
    changed,
    on,
    ready_fleet,
    staged,
    tags,
    with_file,
)
from tests.support.waiting_members import waits

pytestmark = pytest.mark.lives

INVALID = b"  nodePols: []\n"
SUSPENDED = b'  suspend: {owner: jo, reason: an audit, until: "2027-06-01T00:00:00Z"}\n'


def with_lines(
    lines: bytes, names: tuple[str, ...], files: dict[str, bytes] | None = None
) -> dict[str, bytes]:
    """Return a staged fleet with these lines in the specs of some clusters."""
    files = files or staged(SOAKED)
    paths = [f"clusters/{name}/cluster.yaml" for name in names]
    return files | {path: files[path].replace(b"spec:\n", b"spec:\n" + lines) for path in paths}


def test_production_waits_for_a_stage_whose_manifests_are_all_invalid() -> None:
    cloud = ready_fleet(SOAKED)
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, with_lines(INVALID, DEV)))
    wait(cloud, 5 * 60)
    assert not on(cloud, commit)
    text, action = waits(cloud, commit)["b1"]
    assert text == (
        f"waits for stage development, in which {commit[:8]} reaches none of 3 clusters, because their"
        " manifests are invalid: a1, a2, a3"
    )
    assert "Push a correction" in action
    state, said = status(cloud, commit)
    assert state == "failure"
    assert "spec.nodePols" in said
    corrected = push(cloud, with_file("monitoring.yaml", NAMESPACE, staged(SOAKED)))
    wait(cloud, 30)
    assert on(cloud, commit) | on(cloud, corrected) == {*DEV}  # it soaks
    wait(cloud, 3 * 60)
    assert on(cloud, commit) | on(cloud, corrected) == {*DEV, *PROD}
    assert status(cloud, corrected)[0] == "success"


def test_invalid_clusters_that_somebody_took_out_keep_nobody_waiting() -> None:
    cloud = ready_fleet(SOAKED)
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, with_lines(INVALID, DEV)))
    wait(cloud, 30)
    for name in DEV:
        act(cloud, commit, "skip", name)
    wait(cloud, 60)
    assert on(cloud, commit) == {*PROD}


def test_one_valid_cluster_shows_what_its_stage_gets() -> None:
    cloud = ready_fleet(SOAKED)
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, with_lines(INVALID, DEV[:2])))
    wait(cloud, 30)
    assert on(cloud, commit) == {DEV[2]}
    wait(cloud, 3 * 60)
    assert on(cloud, commit) == {DEV[2], *PROD}


def test_a_commit_that_moves_no_pin_of_the_invalid_clusters_waits_for_none() -> None:
    cloud = ready_fleet(SOAKED)
    push(cloud, with_lines(INVALID, DEV))
    wait(cloud, 5)
    manifest = with_lines(tags("now").encode(), PROD, with_lines(INVALID, DEV))
    push(cloud, manifest)
    wait(cloud, 60)
    assert changed(cloud, "now") == {*PROD}


def test_manifests_of_the_same_commit_do_not_wait_but_take_no_pin_along() -> None:
    cloud = ready_fleet(SOAKED)
    files = with_lines(tags("now").encode(), ("b2",), with_lines(INVALID, DEV))
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, files))
    wait(cloud, 5 * 60)
    assert changed(cloud, "now") == {"b2"}
    assert not on(cloud, commit)


def suspended(lines: str, names: tuple[str, ...] = DEV) -> tuple[MemoryCloud, str]:
    """Return a fleet whose clusters of development were suspended, and a commit of the platform after it."""
    cloud = ready_fleet(lines)
    files = with_lines(SUSPENDED, names, staged(lines))
    push(cloud, files)
    wait(cloud, 5)
    assert [phases(cloud)[name] for name in names] == [Phase.SUSPENDED] * len(names)
    return cloud, push(cloud, with_file("monitoring.yaml", NAMESPACE, files))


def test_a_stage_of_suspended_clusters_passes_where_its_rule_needs_none_and_names_them() -> None:
    none_needed = SOAKED.replace('maxConcurrency: "100%"', 'maxConcurrency: "100%", minSuccess: "0"', 1)
    assert none_needed != SOAKED
    cloud, commit = suspended(none_needed)
    wait(cloud, 4 * 60)
    assert on(cloud, commit) == {*PROD}
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    (group,) = view["stages"][0]["groups"]
    assert (group["ready"], group["setAside"]) == (0, [*DEV])
    assert view["underWay"]
    assert {text.split(",")[0] for text, _ in waits(cloud, commit).values()} == {"is set aside"}
    state, said = status(cloud, commit)
    assert state == "error"
    assert said.startswith("suspended: 4 of 7 clusters in sync; a1: suspended by jo")


def test_a_stage_of_suspended_clusters_passes_nothing() -> None:
    cloud, commit = suspended(SOAKED)
    wait(cloud, 4 * 60)
    assert not on(cloud, commit)
    text, action = waits(cloud, commit)["b1"]
    assert text == (
        "waits for group 1 of stage development, of which too few clusters can take part: a1, a2, a3"
    )
    assert "roadstead rollout skip a1" in action
