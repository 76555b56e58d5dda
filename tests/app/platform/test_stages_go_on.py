"""Commits of the platform that come faster than stages soak: each stage goes on with what it has."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail
from shared.cluster.failures.errors import Unavailable
from tests.support.pipeline_runs import push, status
from tests.support.replaced_ports import around
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
from tests.support.team_systems import DEPLOYMENT, approve, system

pytestmark = pytest.mark.lives

APPROVED = SOAKED.replace("[production]},", "[production]}, approval: true,")
BOTH_APPROVED = APPROVED.replace("[development]}\n", "[development]}\n        approval: true\n")
BAD = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
UNKNOWN = b"apiVersion: example.org/v1\nkind: Unknown\nmetadata: {name: a, namespace: default}\n"


def test_production_gets_commits_though_newer_ones_come_faster_than_development_soaks() -> None:
    cloud, commits = ready_fleet(SOAKED), list[str]()
    for number in range(18):
        commits.append(push(cloud, numbered(number)))
        wait(cloud, 20)
    places = [commits.index(commit) for commit in commits if on(cloud, commit) & {*PROD}]
    assert places, "production has none of them"
    assert min(places) > 6
    assert status(cloud, commits[-1])[0] == "pending"
    wait(cloud, 5 * 60)
    assert on(cloud, commits[-1]) == {*DEV, *PROD}
    assert status(cloud, commits[-1])[0] == "success"


def test_a_newer_commit_does_not_begin_a_soak_again() -> None:
    cloud = ready_fleet(SOAKED)
    first = push(cloud, numbered(1))
    wait(cloud, 50)
    second = push(cloud, numbered(2))
    wait(cloud, 5)
    assert on(cloud, first) == {*DEV}
    wait(cloud, 25)
    assert on(cloud, first) & {*PROD}
    assert on(cloud, second) == {*DEV}
    wait(cloud, 4 * 60)
    assert on(cloud, second) == {*DEV, *PROD}


def test_an_approval_still_counts_after_a_newer_commit() -> None:
    cloud = ready_fleet(APPROVED)
    first = push(cloud, numbered(1, APPROVED))
    wait(cloud, 80)
    act(cloud, first, "approve", "production")
    push(cloud, numbered(2, APPROVED))
    wait(cloud, 45)
    assert on(cloud, first) == {*PROD}


def test_a_cluster_says_for_what_its_stage_waits_also_where_nobody_knows_how_far_it_is_behind() -> None:
    cloud = ready_fleet(APPROVED)
    push(cloud, numbered(1, APPROVED))
    wait(cloud, 80)

    def nothing(*_: object) -> None:
        raise Unavailable("no answer")

    around(cloud, "git_host", changes_since=nothing)
    push(cloud, numbered(2, APPROVED))
    wait(cloud, 20)
    view = cluster_detail("b1", cloud.ports)
    assert view is not None
    assert "rollout" in view
    assert view["plan"] is not None
    assert (view["plan"]["lags"], view["behind"]) == (True, None)
    assert view["rollout"] is not None
    assert view["rollout"]["waits"].startswith("waits for an approval of stage ")


def test_what_waits_for_an_approval_takes_what_has_passed_the_stage_before_it() -> None:
    cloud = ready_fleet(APPROVED)
    first = push(cloud, numbered(1, APPROVED))
    wait(cloud, 80)
    second = push(cloud, numbered(2, APPROVED))
    wait(cloud, 20)
    act(cloud, second, "approve", f"{first[:8]}:production")
    wait(cloud, 45)
    assert on(cloud, first) == {*PROD}
    wait(cloud, 60)
    assert on(cloud, second) == {*DEV}  # it has an approval of its own
    act(cloud, second, "approve", f"{second[:8]}:production")
    wait(cloud, 60)
    assert on(cloud, second) == {*DEV, *PROD}


def test_a_change_of_a_manifest_does_not_wait_for_the_platform() -> None:
    cloud = ready_fleet(SOAKED)
    first = push(cloud, numbered(1))
    wait(cloud, 10)
    urgent = push(
        cloud,
        numbered(1) | {"clusters/b2/cluster.yaml": staged(SOAKED, tags("now"))["clusters/b2/cluster.yaml"]},
    )
    wait(cloud, 20)
    assert changed(cloud, "now") == {"b2"}
    assert on(cloud, first) == {*DEV}
    wait(cloud, 3 * 60)
    assert on(cloud, first) == {*DEV, *PROD}
    assert status(cloud, urgent)[0] == "success"


def test_a_system_that_stays_keeps_no_stage_from_the_platform() -> None:
    """Its removal waits for an approval, and all else of the cluster goes on."""

    def files(number: int, clusters: str) -> dict[str, bytes]:
        shop = {"systems/shop.yaml": system("shop", clusters), "apps/shop/web.yaml": DEPLOYMENT}
        return numbered(number) | shop

    cloud, commits = ready_fleet(SOAKED), list[str]()
    push(cloud, files(0, "a1, b1, b2, b3, b4"))
    wait(cloud, 400)
    for number in range(1, 6):
        commits.append(push(cloud, files(number, "a1")))
        wait(cloud, 20)
    assert on(cloud, commits[0]) == {*PROD}
    approve(cloud, *PROD)
    wait(cloud, 4 * 60)
    assert [record.name for record in cloud.state.clusters() if record.desired.systems] == ["a1"]
    assert on(cloud, commits[-1]) == {*DEV, *PROD}
    assert status(cloud, commits[-1])[0] == "success"


def test_a_manifest_whose_pin_waits_for_an_approval_changes_first() -> None:
    cloud = ready_fleet(APPROVED)
    first = push(cloud, numbered(1, APPROVED))
    wait(cloud, 80)
    manifest = staged(APPROVED, tags("now"))["clusters/b2/cluster.yaml"]
    urgent = push(cloud, numbered(1, APPROVED) | {"clusters/b2/cluster.yaml": manifest})
    wait(cloud, 10)
    act(cloud, urgent, "approve", "production")
    wait(cloud, 30)
    assert changed(cloud, "now") == {"b2"}
    assert on(cloud, first) == {*DEV}
    act(cloud, urgent, "approve", f"{first[:8]}:production")
    wait(cloud, 60)
    assert on(cloud, first) == {*DEV, *PROD}


def test_a_revert_reaches_those_that_have_the_commit_at_once() -> None:
    cloud = ready_fleet(SOAKED)
    first = push(cloud, numbered(1))
    wait(cloud, 120)
    push(cloud, numbered(2))
    wait(cloud, 30)
    back = push(cloud, numbered(1))
    wait(cloud, 20)
    assert on(cloud, back) == {*DEV}
    assert on(cloud, first) & {*PROD}


def test_a_correction_of_what_fails_waits_for_no_soak() -> None:
    cloud = ready_fleet(SOAKED)
    bad = push(cloud, numbered(1) | {"platform/unknown.yaml": UNKNOWN})
    wait(cloud, 30)
    assert on(cloud, bad) == {*DEV}
    good = push(cloud, numbered(1))
    wait(cloud, 30)
    assert on(cloud, good) == {*DEV}


def soaking_again() -> MemoryCloud:
    """Return a fleet whose first stage soaks with a commit, and whose newest one takes that back."""
    cloud = ready_fleet(SOAKED)
    push(cloud, numbered(1))
    wait(cloud, 120)
    push(cloud, numbered(2))
    wait(cloud, 30)
    push(cloud, numbered(1))
    wait(cloud, 0.2)
    return cloud


def test_a_commit_that_is_refused_is_on_no_cluster_after_a_newer_one() -> None:
    cloud = soaking_again()
    refused = push(cloud, numbered(3) | {"platform/bad.yaml": BAD})
    wait(cloud, 1)
    assert status(cloud, refused)[0] == "failure"
    good = push(cloud, numbered(4))
    for _ in range(3 * 60):
        wait(cloud, 2)
        assert not on(cloud, refused)
    assert on(cloud, good) == {*DEV, *PROD}


def test_a_stage_that_somebody_approved_early_gets_nothing_that_fails_in_the_stage_before_it() -> None:
    cloud = ready_fleet(APPROVED)
    bad = push(cloud, numbered(1, APPROVED) | {"platform/unknown.yaml": UNKNOWN})
    wait(cloud, 1)
    act(cloud, bad, "approve", "production")
    wait(cloud, 30)
    assert on(cloud, bad) == {*DEV}
    good = push(cloud, numbered(1, APPROVED))
    for _ in range(90):
        wait(cloud, 2)
        assert not on(cloud, bad) & {*PROD}
    act(cloud, good, "approve", "production")
    wait(cloud, 60)
    assert on(cloud, good) == {*DEV, *PROD}


def test_a_removal_by_a_newer_commit_waits_for_an_approval_where_clusters_still_soak() -> None:
    cloud = ready_fleet(SOAKED)
    first = push(cloud, numbered(1))
    wait(cloud, 30)
    without = with_file("other.yaml", OTHER, staged(SOAKED))
    push(cloud, without)
    wait(cloud, 10)
    last = push(cloud, without | {"platform/NOTES.md": b"monitoring is no longer here\n"})
    wait(cloud, 5 * 60)
    assert on(cloud, first) == {*DEV, *PROD}
    assert "Namespace monitoring is deleted" in status(cloud, last)[1]


def test_what_only_an_earlier_commit_removes_needs_no_approval_in_the_plan_of_the_head() -> None:
    cloud = soaking_again()
    removing = push(cloud, with_file("other.yaml", OTHER, staged(SOAKED)))
    wait(cloud, 1)
    assert plan_of(cloud, removing).deletes_needing_approval == {*DEV, *PROD}
    restoring = push(cloud, numbered(3))
    for _ in range(3 * 60):
        wait(cloud, 2)
        assert not plan_of(cloud, restoring).deletes_needing_approval
        assert not on(cloud, removing)
    assert on(cloud, restoring) == {*DEV, *PROD}


def test_a_rollout_ends_once_every_stage_has_the_head() -> None:
    cloud = ready_fleet(SOAKED)
    for number in range(3):
        head = push(cloud, numbered(number))
        wait(cloud, 30)
    wait(cloud, 8 * 60)
    assert rollout_of(cloud, head).state.value == "completed"
    assert on(cloud, head) == {*DEV, *PROD}


def test_a_stage_waits_for_those_before_it_of_which_none_gets_its_commit_before_an_approval() -> None:
    cloud = ready_fleet(APPROVED)
    first = push(cloud, numbered(1, APPROVED))
    wait(cloud, 30)
    act(cloud, first, "abort")
    without = with_file("other.yaml", OTHER, staged(APPROVED))
    second = push(cloud, without)
    wait(cloud, 3)
    assert plan_of(cloud, second).deletes_needing_approval == {*DEV}
    head = push(cloud, without | {"README.md": b"a fleet\n"})
    wait(cloud, 3)
    act(cloud, head, "approve", f"{second[:8]}:production")
    wait(cloud, 60)
    assert not on(cloud, second)
    approve(cloud, *DEV)
    for _ in range(90):
        wait(cloud, 2)
        assert on(cloud, second) >= {*DEV} or not on(cloud, second) & {*PROD}
    assert on(cloud, second) == {*DEV, *PROD}


def test_clusters_with_a_commit_that_was_pushed_away_get_the_newest_before_later_stages() -> None:
    cloud = ready_fleet(BOTH_APPROVED)
    base = cloud.repository.head("main")
    gone = push(cloud, numbered(1, BOTH_APPROVED))
    wait(cloud, 1)
    act(cloud, gone, "approve", "development")
    wait(cloud, 30)
    assert on(cloud, gone) == {*DEV}
    cloud.repository.reset(base)
    second = push(cloud, numbered(2, BOTH_APPROVED))
    wait(cloud, 1)
    head = push(cloud, numbered(2, BOTH_APPROVED) | {"README.md": b"a fleet\n"})
    wait(cloud, 1)
    act(cloud, head, "approve", f"{second[:8]}:production")
    wait(cloud, 60)
    assert not on(cloud, second)
    act(cloud, head, "approve", f"{second[:8]}:development")
    for _ in range(90):
        wait(cloud, 2)
        assert on(cloud, second) >= {*DEV} or not on(cloud, second) & {*PROD}
    assert on(cloud, second) == {*DEV, *PROD}
