"""A commit that changes only what Flux applies: the clusters that follow it are checked minutes later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.jobs.failures.errors import Unavailable
from shared.jobs.findings.health import HealthCondition
from shared.jobs.record import Phase
from shared.pipeline.checks import changed_paths
from shared.pipeline.checks.changed_paths import SETTLED, check_changed_paths
from tests.support import fleet_files
from tests.support.checks import condition, refused_since
from tests.support.one_cluster import files, pool, ready, record, suspended
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around, calls_of

BROKEN = {"platform/broken.yaml": b"kind: [unfinished"}


def tick(cloud: MemoryCloud, seconds: float = SETTLED.total_seconds()) -> None:
    """Run the timer so many seconds later, and what follows."""
    cloud.sleep(seconds / 2)
    cloud.sleep(seconds / 2)
    check_changed_paths(cloud.ports)
    cloud.run(seconds=30)


def checked(cloud: MemoryCloud, name: str = "one") -> bool:
    found = cloud.state.cluster(name)
    assert found is not None
    return found.condition(HealthCondition.FLUX) is not None


def known(files_of_fleet: dict[str, bytes] | None = None) -> MemoryCloud:
    """Return a cloud with Ready clusters whose newest commit was compared."""
    cloud = MemoryCloud(throttle=False) if files_of_fleet else ready()
    if files_of_fleet:
        push(cloud, files_of_fleet)
        cloud.run()
    tick(cloud)
    assert cloud.state.fleet().flux_checked == cloud.state.fleet().commit
    assert not any(checked(cloud, each.name) for each in cloud.state.clusters())
    return cloud


def test_a_commit_that_flux_cannot_apply_is_found_within_minutes() -> None:
    cloud = known()
    commit = push(cloud, files() | BROKEN)
    cloud.run()
    tick(cloud)
    found = record(cloud).condition(HealthCondition.FLUX)
    assert found is not None
    assert (found.status, found.reason) == (False, "BuildFailed")
    assert f"Flux tried commit {commit[:8]} and applied " in found.message


def suspend(cloud: MemoryCloud) -> dict[str, bytes]:
    return files(suspended(cloud, 24))


def fail(cloud: MemoryCloud) -> dict[str, bytes]:
    cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs")
    return files(pool(count=2))


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


def test_a_commit_is_compared_once_and_not_before_flux_had_the_time() -> None:
    cloud = known()
    before = cloud.repository.head("main")
    commit = push(cloud, files() | BROKEN)
    cloud.run()
    trees = calls_of(cloud, "repository", "tree")
    tick(cloud, 60)
    assert trees == []
    tick(cloud)
    tick(cloud)
    assert trees == [before, commit]


def test_a_commit_that_changes_manifests_or_other_folders_reads_no_record_and_checks_nothing() -> None:
    cloud = known()
    more = {"README.md": b"news", "docs/platform/x.md": b"news"}
    push(cloud, files() | {"classes/unused.yaml": CLASS} | more)
    cloud.run()
    tick(cloud)
    assert not checked(cloud)


CLASS = b"apiVersion: roadstead.dev/v1alpha1\nkind: ClusterClass\nmetadata: {name: unused}\nspec: {}\n"


def test_a_cluster_whose_job_the_commit_started_is_verified_by_the_job() -> None:
    cloud = known(fleet_files.fleet("one", "two"))
    changed = {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra="  tags: {a: b}\n")}
    push(cloud, fleet_files.fleet("one", "two") | changed | {"platform/more.yaml": b"{}"})
    cloud.run()
    tick(cloud)
    assert (checked(cloud, "one"), checked(cloud, "two")) == (False, True)


def test_a_commit_has_a_bounded_number_of_clusters_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_paths, "MOST", 1)
    cloud = known(fleet_files.fleet("one", "two"))
    push(cloud, fleet_files.fleet("one", "two") | BROKEN)
    cloud.run()
    tick(cloud)
    assert [checked(cloud, name) for name in ("one", "two")] == [True, False]


@pytest.mark.parametrize(("seconds", "again"), [(300, True), (1800, False)])
def test_a_read_that_fails_is_repeated_for_half_an_hour(seconds: float, again: bool) -> None:
    cloud = known()
    push(cloud, files() | BROKEN)
    cloud.run()
    tree = cloud.ports.repository.tree
    around(cloud, "repository", tree=_fails)
    tick(cloud, seconds)
    around(cloud, "repository", tree=tree)
    tick(cloud)
    assert checked(cloud) is again
    assert cloud.state.fleet().flux_checked == cloud.repository.head("main")


def _fails(_: str) -> Any:
    raise Unavailable("GitHub did not answer")


def test_a_spec_that_this_version_refuses_stops_neither_the_timer_nor_the_check_of_another_cluster() -> None:
    cloud = known(fleet_files.fleet("one", "two"))
    refused_since(cloud, "one")
    push(cloud, fleet_files.fleet("one", "two") | BROKEN)
    cloud.run()
    refused_since(cloud, "one")
    tick(cloud)
    assert cloud.state.fleet().flux_checked == cloud.repository.head("main")
    one, two = cloud.state.clusters()
    assert (condition(one).status, condition(two).status) == (None, False)
    assert "this version refuses what was accepted" in condition(one).message


def test_a_plan_of_a_clock_that_was_ahead_does_not_delay_it() -> None:
    cloud = known()
    commit = push(cloud, files() | BROKEN)
    cloud.run()
    planned = cloud.state.plan(commit)
    assert planned is not None
    cloud.state.save_plan(replace(planned, at=cloud.clock() + timedelta(days=30)))
    tick(cloud)
    assert checked(cloud)
