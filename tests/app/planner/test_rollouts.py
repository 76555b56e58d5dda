"""Rollouts in the pipeline: a commit reaches the clusters in stages, and stops where it hurts."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.resource_ids import ClusterId
from shared.rollouts.rollout import RolloutState
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, ready, record_of, status
from tests.support.staged_fleets import (
    ALL_AT_ONCE,
    DEFAULT,
    DEV,
    PROD,
    act,
    changed,
    ready_fleet,
    rollout_of,
    staged,
    tags,
)
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives

STAGED = """\
  rollout:
    stages:
      - name: development
        select: {environments: [development]}
        groups: [{clusters: "1", soak: 10m}, {maxConcurrency: "2"}]
      - name: production
        select: {environments: [production]}
        approval: true
        groups: [{maxConcurrency: "2"}]
"""


def waves(cloud: MemoryCloud, value: str, *, seconds: int = 1) -> list[set[str]]:
    """Run the fleet, and return which clusters got a change together."""
    found: list[set[str]] = []
    for _ in range(2000):
        cloud.run(seconds=seconds)
        new = changed(cloud, value) - set().union(*found)
        found += [new] if new else []
        if len(set().union(*found)) == len(DEV + PROD):
            break
    return found


def test_a_change_goes_through_the_environments_with_a_canary_in_each() -> None:
    cloud = ready_fleet()
    commit = push(cloud, staged(extra=tags("one")))
    assert waves(cloud, "one") == [{name} for name in (*DEV, *PROD)]
    cloud.run()
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    assert cloud.state.fleet().rollout == ""
    assert status(cloud, commit) == ("success", "7 of 7 clusters in sync (7 update)")


def test_a_fleet_that_wants_it_changes_all_clusters_at_once() -> None:
    cloud = ready_fleet(ALL_AT_ONCE)
    push(cloud, staged(ALL_AT_ONCE, tags("one")))
    assert waves(cloud, "one") == [{*DEV, *PROD}]
    assert list(cloud.state.rollouts()) == []


def test_creations_and_deletes_wait_for_no_stage() -> None:
    cloud = ready_fleet()
    files = staged(extra=tags("one"))
    files["clusters/new/cluster.yaml"] = (
        files["clusters/b1/cluster.yaml"].replace(b"b1", b"new").replace(b"eastus", b"westeurope")
    )
    del files["clusters/b4/cluster.yaml"]
    push(cloud, files)
    cloud.run(seconds=5)
    names = {record.name: record.generation for record in cloud.state.clusters()}
    assert names["new"] == 1
    assert [
        cluster.name for cluster in cloud.state.clusters() if cluster.deleting or cluster.generation > 1
    ] == [
        "a1",
        "b4",
    ]


def test_a_failed_canary_stops_the_rollout_and_the_fix_goes_through() -> None:
    cloud = ready_fleet()
    cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {"a1"}
    assert cloud.state.fleet().rollout
    commit = push(cloud, staged(extra=tags("two")))
    assert waves(cloud, "two")[0] == {"a1"}
    cloud.run()
    assert changed(cloud, "two") == {*DEV, *PROD}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_no_other_commit_and_no_timer_starts_the_failed_canary_again_for_the_rollout() -> None:
    cloud = ready_fleet()
    cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=1800)
    record = record_of(cloud, "a1")
    cloud.run(seconds=3600)
    assert cloud.state.cluster("a1") == record
    assert changed(cloud, "one") == {"a1"}


def test_a_soak_and_an_approval_hold_what_comes_after_them() -> None:
    cloud = ready_fleet(STAGED)
    commit = push(cloud, staged(STAGED, tags("one")))
    cloud.run(seconds=9 * 60)
    assert changed(cloud, "one") == {"a1"}
    cloud.run(seconds=5 * 60)
    assert changed(cloud, "one") == {*DEV}
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {*DEV}
    assert status(cloud, commit)[0] == "pending"
    assert "approval of stage production" in status(cloud, commit)[1]
    act(cloud, commit, "approve", "production")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_a_pause_finishes_what_runs_and_starts_nothing() -> None:
    cloud = ready_fleet()
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=3)
    act(cloud, commit, "pause")
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {"a1"}
    assert phases(cloud)["a1"] is Phase.READY
    assert "paused" in status(cloud, commit)[1]
    act(cloud, commit, "resume")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_aborted_rollout_leaves_the_others_until_a_commit() -> None:
    cloud = ready_fleet()
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=3)
    act(cloud, commit, "abort")
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {"a1"}
    assert status(cloud, commit)[0] == "failure"
    push(cloud, staged(extra=tags("two")))
    cloud.run()
    assert changed(cloud, "two") == {*DEV, *PROD}


def test_a_revert_goes_first_to_the_clusters_that_have_the_change() -> None:
    cloud = ready_fleet()
    first = push(cloud, staged(extra=tags("one")))
    for _ in range(200):
        cloud.run(seconds=1)
        if len(changed(cloud, "one")) >= 5:
            break
    touched = changed(cloud, "one")
    act(cloud, cloud.state.fleet().rollout, "pause")
    commit = push(cloud, staged())
    cloud.run()
    assert changed(cloud, "one") == set()
    rollout = rollout_of(cloud, commit)
    assert [stage.name for stage in rollout.stages] == ["back"]
    assert {member.cluster for member in rollout.members} == touched
    assert {record.generation for record in cloud.state.clusters() if record.name not in touched} == {1}
    state, description = status(cloud, first)
    assert (state, description[:24]) == ("error", f"superseded by {commit[:8]}: ")


def test_a_newer_commit_supersedes_and_what_had_not_started_takes_the_newest_spec_alone() -> None:
    cloud = ready_fleet()
    first = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=3)
    second = push(cloud, staged(extra=tags("two")))
    cloud.run()
    assert rollout_of(cloud, first).state is RolloutState.SUPERSEDED
    assert rollout_of(cloud, first).superseded_by == second
    assert {r.name: r.generation for r in cloud.state.clusters()} == {
        name: 3 if name == "a1" else 2 for name in (*DEV, *PROD)
    }


def test_a_suspension_takes_effect_at_once_and_a_change_of_protection_too() -> None:
    cloud = ready_fleet()
    files = staged(extra=tags("one"))
    path = "clusters/b4/cluster.yaml"
    suspend = b"spec:\n  suspend: {owner: team, reason: audit, until: '2026-03-01T00:00:00Z'}\n"
    files[path] = files[path].replace(b"spec:\n", suspend)
    only = "clusters/b3/cluster.yaml"
    files[only] = staged()[only].replace(b"deletionProtection: false", b"deletionProtection: true")
    push(cloud, files)
    cloud.run(seconds=5)
    assert {r.name for r in cloud.state.clusters() if r.generation > 1} == {"a1", "b3", "b4"}
    assert phases(cloud)["b4"] is Phase.SUSPENDED


def test_the_cluster_that_goes_first_shows_what_the_change_does() -> None:
    cloud = ready_fleet()
    files = staged(extra=tags("one"))
    suspend = b"spec:\n  suspend: {owner: team, reason: audit, until: '2026-03-01T00:00:00Z'}\n"
    files["clusters/a1/cluster.yaml"] = files["clusters/a1/cluster.yaml"].replace(b"spec:\n", suspend)
    own = staged()["clusters/a2/cluster.yaml"]
    files["clusters/a2/cluster.yaml"] = own.replace(b"deletionProtection: false", b"deletionProtection: true")
    commit = push(cloud, files)
    cloud.run(seconds=3)
    first = [
        member.cluster
        for member in rollout_of(cloud, commit).members
        if (member.stage, member.group) == (0, 0)
    ]
    assert first == ["a3"]
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD} - {"a2"}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_clusters_without_an_environment_have_one_that_goes_first_too() -> None:
    cloud = ready("one", "two", "three")
    files = fleet_files.fleet("one", "two", "three")
    for name in ("one", "two", "three"):
        files[f"clusters/{name}/cluster.yaml"] = fleet_files.cluster(name, count=2)
    push(cloud, files)
    cloud.run(seconds=3)
    assert {cluster.name for cluster in cloud.state.clusters() if cluster.generation > 1} == {"one"}
    cloud.run()
    assert {cluster.generation for cluster in cloud.state.clusters()} == {2}


def test_a_cluster_that_a_sweep_found_stopped_is_set_aside_and_catches_up() -> None:
    cloud = ready_fleet()
    cloud.azure.interventions.stop(cluster_id(cloud, "a2"))
    sweep(cloud)
    assert phases(cloud)["a2"] is Phase.FAILED
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {*DEV, *PROD} - {"a2"}
    assert rollout_of(cloud, commit).state is RolloutState.ACTIVE
    cloud.azure.interventions.start(cluster_id(cloud, "a2"))
    sweep(cloud)
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def cluster_id(cloud: MemoryCloud, name: str) -> ClusterId:
    record = record_of(cloud, name)
    return record.desired.id


def test_a_commit_that_has_all_start_at_once_lets_what_waits_start() -> None:
    cloud = ready_fleet()
    first = push(cloud, staged(DEFAULT, tags("one")))
    cloud.run(seconds=3)
    push(cloud, staged(ALL_AT_ONCE, tags("one")))
    cloud.run()
    assert rollout_of(cloud, first).state is RolloutState.SUPERSEDED
    assert changed(cloud, "one") == {*DEV, *PROD}
