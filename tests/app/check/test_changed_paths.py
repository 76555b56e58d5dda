"""A commit that changes only what Flux applies: the clusters that follow it are checked minutes later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.app.check.changed_paths import GIVES_UP, SETTLED, check_changed_paths
from shared.cluster.failures.errors import Unavailable
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record_parts import Phase
from tests.support import fleet_files, team_systems
from tests.support.checks import condition, refused_since
from tests.support.one_cluster import branch_files, pool, ready, record, suspended
from tests.support.pipeline_runs import cloud_with, phases, push, record_of
from tests.support.replaced_ports import Noted, around, calls_of
from tests.support.team_systems import system

pytestmark = pytest.mark.lives

BROKEN = {"platform/broken.yaml": b"kind: [unfinished"}


def fleet(*names: str) -> dict[str, bytes]:
    return fleet_files.following_branch(fleet_files.fleet(*names))


def tick(cloud: MemoryCloud, seconds: float = SETTLED.total_seconds() + 30) -> None:
    """Run the timer, and what follows within so many seconds."""
    check_changed_paths(cloud.ports)
    cloud.run(seconds=seconds, until=lambda: False)


def checked(cloud: MemoryCloud, name: str = "one") -> bool:
    found = record_of(cloud, name)
    return found.condition(HealthCondition.FLUX) is not None


def covered(cloud: MemoryCloud) -> str:
    return cloud.state.sweep().paths.covered


def known(files_of_fleet: dict[str, bytes] | None = None) -> MemoryCloud:
    """Return a cloud with Ready clusters whose newest commit was compared."""
    cloud = MemoryCloud(throttle=False) if files_of_fleet else ready(fleet=branch_files)
    if files_of_fleet:
        push(cloud, files_of_fleet)
        cloud.run()
    tick(cloud)
    assert covered(cloud) == cloud.state.fleet().commit
    assert not any(checked(cloud, cluster.name) for cluster in cloud.state.clusters())
    return cloud


def test_a_commit_that_flux_cannot_apply_is_found_within_minutes() -> None:
    cloud = known()
    commit = push(cloud, branch_files() | BROKEN)
    cloud.run()
    tick(cloud)
    found = record(cloud).condition(HealthCondition.FLUX)
    assert found is not None
    assert (found.status, found.reason) == (False, "BuildFailed")
    assert f"Flux tried commit {commit[:8]} and applied " in found.message


def suspend(cloud: MemoryCloud) -> dict[str, bytes]:
    return branch_files(suspended(cloud, 24))


def fail(cloud: MemoryCloud) -> dict[str, bytes]:
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    return branch_files(pool(count=2))


@pytest.mark.parametrize(("ending", "phase"), [(suspend, Phase.SUSPENDED), (fail, Phase.FAILED)])
def test_so_it_is_where_the_job_of_the_commit_verifies_nothing_because_it_failed_or_is_suspended(
    ending: Callable[[MemoryCloud], dict[str, bytes]], phase: Phase
) -> None:
    cloud = known()
    push(cloud, ending(cloud) | BROKEN)
    cloud.run(seconds=300)
    assert phases(cloud) == {"one": phase}
    tick(cloud)
    assert condition(record(cloud)).reason == "BuildFailed"


def test_a_commit_is_compared_once_and_its_clusters_are_checked_when_flux_had_the_time() -> None:
    cloud = known()
    before = cloud.repository.head("main")
    commit = push(cloud, branch_files() | BROKEN)
    cloud.run()
    trees = calls_of(cloud, "git_host", "tree")
    tick(cloud, 60)
    assert not checked(cloud)
    tick(cloud)
    tick(cloud)
    assert trees == [before, commit]
    assert checked(cloud)


def test_a_commit_that_changes_manifests_or_other_folders_reads_no_record_and_checks_nothing() -> None:
    cloud = known()
    more = {"README.md": b"news", "docs/platform/x.md": b"news"}
    push(cloud, branch_files() | {"classes/unused.yaml": CLASS} | more)
    cloud.run()
    tick(cloud)
    assert not checked(cloud)


CLASS = b"apiVersion: roadstead.dev/v1alpha1\nkind: ClusterClass\nmetadata: {name: unused}\nspec: {}\n"


def test_a_cluster_whose_job_the_commit_started_is_verified_by_the_job() -> None:
    cloud = known(fleet("one", "two"))
    changed = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra="  tags: {a: b}\n")}
    push(cloud, fleet("one", "two") | changed | {"platform/more.yaml": b"{}"})
    cloud.run()
    tick(cloud)
    assert (checked(cloud, "one"), checked(cloud, "two")) == (False, True)


TWO = fleet("one", "two")


def test_what_was_broken_before_the_first_run_is_found_as_well() -> None:
    cloud = cloud_with(TWO, throttle=False)
    push(cloud, TWO | BROKEN)
    cloud.run()
    tick(cloud)
    assert [condition(cluster).reason for cluster in cloud.state.clusters()] == ["BuildFailed"] * 2


def test_the_first_run_checks_nothing_that_jobs_have_just_verified_and_compares_no_tree() -> None:
    cloud = ready(fleet=branch_files)
    trees = calls_of(cloud, "git_host", "tree")
    tick(cloud)
    assert (checked(cloud), trees, covered(cloud)) == (False, [], cloud.state.fleet().commit)


@pytest.mark.parametrize("pause", [60, 120])
def test_commits_that_follow_each_other_put_no_check_off(pause: float) -> None:
    cloud = known()
    push(cloud, branch_files() | BROKEN)
    cloud.run()
    began, number = cloud.clock(), 0
    while not checked(cloud):
        assert cloud.clock() - began < timedelta(minutes=10)
        number += 1
        push(cloud, branch_files() | BROKEN | {"README.md": f"{number}".encode()})
        cloud.run()
        tick(cloud, pause)
    assert condition(record(cloud)).reason == "BuildFailed"


def test_every_cluster_is_checked_where_github_does_not_show_a_commit_for_long() -> None:
    cloud = known(TWO)
    before = covered(cloud)
    commit = push(cloud, TWO | {"README.md": b"news"})
    cloud.run()
    tree = cloud.ports.git_host.tree
    around(cloud, "git_host", tree=_fails)
    why = f"what {commit[:8]} changes is not known: Unavailable: GitHub did not answer;"
    tick(cloud)
    assert [checked(cloud, cluster.name) for cluster in cloud.state.clusters()] == [False, False]
    assert (covered(cloud), problem(cloud)) == (before, f"{why} the next run asks again")
    cloud.clock.advance(GIVES_UP.total_seconds())
    tick(cloud)
    assert [condition(cluster).status for cluster in cloud.state.clusters()] == [True, True]
    assert (covered(cloud), problem(cloud)) == (commit, f"{why} every cluster is checked instead")
    around(cloud, "git_host", tree=tree)
    newest = push(cloud, TWO | BROKEN)
    cloud.run()
    tick(cloud)
    assert [condition(cluster).status for cluster in cloud.state.clusters()] == [False, False]
    assert (covered(cloud), problem(cloud)) == (newest, "")


def test_a_commit_that_github_shows_a_moment_later_has_only_its_own_clusters_checked() -> None:
    cloud = known(TWO)
    commit = push(cloud, TWO | {"README.md": b"news"})
    cloud.run()
    tree = cloud.ports.git_host.tree
    around(cloud, "git_host", tree=_fails)
    tick(cloud)
    around(cloud, "git_host", tree=tree)
    tick(cloud)
    assert (covered(cloud), problem(cloud)) == (commit, "")
    assert [checked(cloud, cluster.name) for cluster in cloud.state.clusters()] == [False, False]


def test_a_planner_that_hands_over_for_long_puts_no_check_off() -> None:
    cloud = known()
    push(cloud, branch_files() | BROKEN)
    cloud.run()
    cloud.state.save_fleet(replace(cloud.state.fleet(), planning="f" * 40))
    tick(cloud)
    assert checked(cloud)


@pytest.mark.parametrize("path", [".", "./", "platform", "./platform/", "././platform//.", "/platform"])
def test_a_folder_is_the_same_however_it_is_written(path: str) -> None:
    cloud = known()
    document = record(cloud).document
    spec = {**document["spec"], "flux": {**document["spec"]["flux"], "path": path}}
    push(cloud, branch_files() | BROKEN)
    cloud.run()
    cloud.state.save(replace(record(cloud), document={**document, "spec": spec}))
    tick(cloud)
    assert checked(cloud)


def problem(cloud: MemoryCloud) -> str:
    shown = fleet_view(cloud.ports)["sweep"]
    assert shown is not None
    return shown["paths"]["problem"]


def test_the_check_of_a_cluster_on_which_an_older_job_works_is_requested_too() -> None:
    cloud = known(TWO)
    changed = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra="  tags: {a: b}\n")}
    push(cloud, TWO | changed)
    cloud.run(until=lambda: record_of(cloud, "one").job.active)
    commit = push(cloud, TWO | changed | {"platform/more.yaml": b"{}"})
    cloud.run(until=lambda: cloud.state.fleet().commit == commit)
    assert record_of(cloud, "one").job.active
    requested = calls_of(cloud, "jobs", "send")
    check_changed_paths(cloud.ports)
    assert [name for message in requested for name in json.loads(message.body)["clusters"]] == ["one", "two"]


def test_a_run_costs_two_trees_one_list_of_the_records_and_one_batch_of_requests() -> None:
    names = [f"c{number:02}" for number in range(30)]
    cloud = known(fleet(*names))
    push(cloud, fleet(*names) | {"platform/more.yaml": b"{}"})
    cloud.run()
    calls = list[str]()
    watched: dict[str, Any] = {
        name: Noted(getattr(cloud.ports, name), calls.append) for name in ("git_host", "state", "jobs")
    }
    check_changed_paths(replace(cloud.ports, **watched))
    assert Counter(calls) == Counter(
        {"tree": 2, "clusters": 1, "send": 1, "fleet": 1, "sweep": 2, "save_sweep": 1}
    )


def _fails(_: str) -> Any:
    raise Unavailable("GitHub did not answer")


def test_a_spec_that_this_version_refuses_stops_neither_the_timer_nor_the_check_of_another_cluster() -> None:
    cloud = known(fleet("one", "two"))
    refused_since(cloud, "one")
    push(cloud, fleet("one", "two") | BROKEN)
    cloud.run()
    refused_since(cloud, "one")
    tick(cloud)
    assert covered(cloud) == cloud.repository.head("main")
    one, two = cloud.state.clusters()
    assert (condition(one).status, condition(two).status) == (None, False)
    assert "this version refuses what was accepted" in condition(one).message


def test_a_cluster_with_a_pin_is_checked_where_the_folder_of_its_system_changes() -> None:
    """Flux takes what the system has of the branch by itself, so no job verifies it."""
    files = team_systems.fleet("one", "two", systems={"shop": system("shop", "one")})
    cloud = known(files)
    push(cloud, files | {"apps/shop/broken.yaml": b"kind: [unfinished"})
    cloud.run(seconds=600)
    tick(cloud)
    assert (checked(cloud), checked(cloud, "two")) == (True, False)
