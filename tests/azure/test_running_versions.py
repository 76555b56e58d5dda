"""What a plan makes of a version: nothing where it runs already, and never a way back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.changes.field_effects import Effect
from shared.azure.running_versions import PoolVersions, RunningVersions, lowered_versions
from shared.kubernetes_versions import needs_upgrade, runs_newer
from shared.plan.differences import differences
from tests.support.hypothesis_settings import GENERATED

VERSION, POOL = "spec.kubernetesVersion", "spec.nodePools[system].orchestratorVersion"
IMAGES = "AKSUbuntu-2204gen2containerd-202510.19.1", "AKSUbuntu-2204gen2containerd-202511.01.0"
MINORS = st.builds("1.{}".format, st.integers(34, 39))
PATCHES = st.builds("1.{}.{}".format, st.integers(34, 39), st.integers(0, 4))


def spec(version: str, own: str = "", **fields: Any) -> dict[str, Any]:
    pool = {"name": "system", **({"orchestratorVersion": own} if own else {})}
    return {"kubernetesVersion": version, "nodePools": [pool], **fields}


def effects(old: dict[str, Any], new: dict[str, Any], runs: RunningVersions) -> dict[str, str]:
    found = differences({"spec": old}, {"spec": new}, runs)
    return {change.path: change.effect for change in found}


def running(plane: str, nodes: str = "", image: str = "") -> RunningVersions:
    return RunningVersions(plane, pools={"system": PoolVersions(nodes, image)})


@pytest.mark.parametrize(
    ("runs", "effect"),
    [
        (running("1.36.3", "1.36.3"), Effect.RUNS_ALREADY),
        (running("1.37.1", "1.36.3"), Effect.NEVER_LOWERED),
        (running("1.36.3", "1.35.7"), Effect.REIMAGED),  # the control plane is ahead of its nodes
        (running("1.36.3"), Effect.REIMAGED),  # nobody has read the nodes
        (RunningVersions(), Effect.REIMAGED),
    ],
)
def test_a_version_changes_nothing_once_control_plane_and_nodes_run_it(
    runs: RunningVersions, effect: Effect
) -> None:
    assert effects(spec("1.35"), spec("1.36"), runs)[VERSION] == effect


def test_a_pool_with_a_version_of_its_own_does_not_wait_for_that_of_the_cluster() -> None:
    runs = running("1.36.3", "1.35.7")
    assert effects(spec("1.35", "1.35"), spec("1.36", "1.35"), runs) == {VERSION: Effect.RUNS_ALREADY}
    assert effects(spec("1.36", "1.35"), spec("1.36", "1.36"), runs) == {POOL: Effect.REIMAGED}
    assert effects(spec("1.36", "1.34"), spec("1.36", "1.35"), runs) == {POOL: Effect.RUNS_ALREADY}


def test_a_pool_that_gives_up_its_own_version_gets_that_of_its_control_plane() -> None:
    assert effects(spec("1.36", "1.35"), spec("1.36"), running("1.36.3", "1.35.7")) == {POOL: Effect.REIMAGED}
    assert effects(spec("1.36", "1.35"), spec("1.36"), RunningVersions()) == {POOL: Effect.REIMAGED}
    assert effects(spec("1.36", "1.36"), spec("1.36"), running("1.36.3", "1.36.3")) == {
        POOL: Effect.RUNS_ALREADY
    }
    lowered = effects(spec("1.36", "1.36"), spec("1.35"), running("1.36.3", "1.36.3"))
    assert lowered == dict.fromkeys((VERSION, POOL), Effect.NEVER_LOWERED)


def test_a_new_pool_begins_with_the_version_and_upgrades_nothing() -> None:
    new = spec("1.36")
    new["nodePools"] = [*new["nodePools"], {"name": "apps"}]
    assert effects(spec("1.35"), new, running("1.36.3", "1.36.3"))[VERSION] == Effect.RUNS_ALREADY


@pytest.mark.parametrize(
    ("before", "after", "image", "effect"),
    [
        (None, "202511.01", IMAGES[1], Effect.RUNS_ALREADY),
        (None, "202511.01", IMAGES[0], Effect.REIMAGED),
        (None, "202511.01", "", Effect.REIMAGED),
        ("202511.01", "202510.19.1", "", Effect.IN_PLACE),
        ("202511.01", None, IMAGES[0], Effect.UNMANAGED),
    ],
)
def test_an_oldest_image_reimages_nodes_only_where_one_is_older(
    before: str | None, after: str | None, image: str, effect: Effect
) -> None:
    old, new = (
        spec("1.36", **({"minNodeImageVersion": value} if value else {})) for value in (before, after)
    )
    assert effects(old, new, running("1.36.3", "1.36.3", image)) == {"spec.minNodeImageVersion": effect}


@GENERATED
@given(MINORS, MINORS | PATCHES, PATCHES)
def test_no_version_at_or_below_what_runs_reimages_anything(before: str, after: str, runs: str) -> None:
    found = effects(spec(before), spec(after), running(runs, runs))
    if VERSION in found:
        upgraded = needs_upgrade(after, runs)
        assert (found[VERSION] == Effect.REIMAGED) is upgraded
        assert (found[VERSION] == Effect.NEVER_LOWERED) is (
            not upgraded and (runs_newer(after, runs) or runs_newer(after, before))
        )


@GENERATED
@given(st.lists(MINORS | PATCHES, min_size=2, max_size=6))
def test_what_git_lowered_counts_until_git_has_it_again(versions: list[str]) -> None:
    lowered: dict[str, str] = {}
    for before, after in pairwise(versions):
        lowered = lowered_versions(spec(before), spec(after), lowered)
        assert all(runs_newer(after, version) for version in lowered.values())
        if runs_newer(after, before):
            assert "kubernetesVersion" in lowered
    highest = max(versions, key=lambda version: tuple(map(int, version.split("."))))
    assert lowered_versions(spec(versions[-1]), spec(highest), lowered) == {}
