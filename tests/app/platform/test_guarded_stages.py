"""A stage whose pins guards keep has passed nothing: those after it wait, and say for whom."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from tests.support.pipeline_runs import push, status
from tests.support.soaking_stages import OTHER, SOAKED, numbered, plan_of, wait
from tests.support.staged_fleets import (
    DEV,
    PROD,
    act,
    changed,
    on,
    ready_fleet,
    rollout_of,
    staged,
    tags,
    with_file,
)
from tests.support.team_systems import approve
from tests.support.waiting_members import waits

pytestmark = pytest.mark.lives

README = {"README.md": b"a fleet\n"}


def without_monitoring() -> dict[str, bytes]:
    """Return a fleet that lacks the namespace which ``numbered`` has."""
    return with_file("other.yaml", OTHER, staged(SOAKED))


def with_a_removal(files: dict[str, bytes] | None = None) -> tuple[MemoryCloud, str]:
    """Return a fleet whose commit removes what only development has, and the commit."""
    cloud = ready_fleet(SOAKED)
    first = push(cloud, numbered(1))
    wait(cloud, 30)
    act(cloud, first, "abort")
    removal = push(cloud, files or without_monitoring())
    wait(cloud, 3)
    assert plan_of(cloud, removal).deletes_needing_approval == {*DEV}
    return cloud, removal


def test_production_waits_for_a_stage_of_which_a_guard_keeps_every_cluster() -> None:
    cloud, removal = with_a_removal()
    wait(cloud, 5 * 60)
    assert not on(cloud, removal)
    assert status(cloud, removal)[0] == "failure"  # somebody must act
    approve(cloud, *DEV)
    wait(cloud, 30)
    assert on(cloud, removal) == {*DEV}  # it soaks
    wait(cloud, 3 * 60)
    assert on(cloud, removal) == {*DEV, *PROD}
    assert status(cloud, removal)[0] == "success"
    assert rollout_of(cloud, removal).state.value == "completed"


def test_the_wait_names_the_stage_its_clusters_the_guard_and_who_must_act() -> None:
    cloud, removal = with_a_removal()
    found = waits(cloud, removal)
    assert found.keys() == {*PROD}
    text, action = found["b1"]
    assert text == waits_of_stage(removal)
    assert "`roadstead approve`" in action
    assert "revert" in action
    assert "`roadstead rollout skip`" in action
    view = rollout_view(removal, cloud.ports)
    assert view is not None
    assert view["state"] == "Waiting for a stage that gets nothing of the commit"


def test_a_later_commit_without_a_platform_makes_no_difference() -> None:
    cloud, removal = with_a_removal()
    head = push(cloud, without_monitoring() | README)
    wait(cloud, 3 * 60)
    assert not on(cloud, removal) | on(cloud, head)
    assert waits(cloud, head)["b1"][0] == waits_of_stage(removal)
    approve(cloud, *DEV)
    wait(cloud, 4 * 60)
    assert on(cloud, removal) | on(cloud, head) == {*DEV, *PROD}


def waits_of_stage(commit: str) -> str:
    """Return what a cluster of production says that waits for development."""
    return (
        f"waits for stage development, in which {commit[:8]} reaches none of 3 clusters, because what Flux"
        " would remove needs an approval: a1, a2, a3"
    )


def test_clusters_that_somebody_took_out_keep_nobody_waiting() -> None:
    cloud, removal = with_a_removal()
    for name in DEV[:-1]:
        act(cloud, removal, "skip", name)
    wait(cloud, 60)
    assert not on(cloud, removal)
    act(cloud, removal, "skip", DEV[-1])
    wait(cloud, 60)
    assert on(cloud, removal) == {*PROD}


def test_one_cluster_that_shows_the_commit_is_enough() -> None:
    one_by_one = SOAKED.replace('"100%"', '"1"')
    cloud = ready_fleet(one_by_one)
    first = push(cloud, numbered(1, one_by_one))
    cloud.run(until=lambda: on(cloud, first) == {"a1"})
    act(cloud, first, "abort")
    wait(cloud, 10)
    removal = push(cloud, with_file("other.yaml", OTHER, staged(one_by_one)))
    wait(cloud, 4 * 60)
    assert plan_of(cloud, removal).deletes_needing_approval == {"a1"}
    assert on(cloud, removal) == {"a2", "a3", *PROD}


def test_a_manifest_does_not_wait_for_a_guard_of_an_earlier_stage() -> None:
    manifest = staged(SOAKED, tags("now"))["clusters/b2/cluster.yaml"]
    cloud, removal = with_a_removal(without_monitoring() | {"clusters/b2/cluster.yaml": manifest})
    wait(cloud, 30)
    assert changed(cloud, "now") == {"b2"}
    assert not on(cloud, removal)
    assert waits(cloud, removal)["b1"][0] == waits_of_stage(removal)
    approve(cloud, *DEV)
    wait(cloud, 4 * 60)
    assert on(cloud, removal) == {*DEV, *PROD}


def test_manifests_of_every_stage_take_no_pin_along_past_a_guard() -> None:
    cloud, removal = with_a_removal(with_file("other.yaml", OTHER, staged(SOAKED, tags("now"))))
    wait(cloud, 4 * 60)
    assert changed(cloud, "now") == {*DEV, *PROD}
    assert not on(cloud, removal)
    approve(cloud, *DEV)
    wait(cloud, 4 * 60)
    assert on(cloud, removal) == {*DEV, *PROD}
    assert status(cloud, removal)[0] == "success"


def test_a_revert_ends_the_wait() -> None:
    cloud, _ = with_a_removal()
    head = push(cloud, numbered(1))
    wait(cloud, 4 * 60)
    assert status(cloud, head)[0] == "success"
    assert on(cloud, head) >= {*PROD}
