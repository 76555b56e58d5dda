"""Ends of lifetimes that the git host merges by itself, as ``lifetimeEnd: delete`` says."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.cluster.record_parts import Phase
from shared.ports import CommitStatus
from shared.ports.pull_requests import AutoMerge
from tests.support.lifetimes import LIFETIME, ended, later, put_off
from tests.support.lost_tables import CONFIG, recovered, with_epoch
from tests.support.one_cluster import files, ready
from tests.support.pipeline_runs import accepted, phases, push, pushed
from tests.support.rollbacks import open_pulls

pytestmark = pytest.mark.lives

ENDS_BY_ITSELF = f"{LIFETIME}  lifetimeEnd: delete\n"


def let_the_host_merge(cloud: MemoryCloud) -> None:
    """Allow auto-merge of what has its plan."""
    cloud.repository.pulls.allows_auto_merge = True
    cloud.repository.pulls.required_checks = ("roadstead/plan",)


def test_an_end_that_deletes_is_merged_by_the_host_once_it_has_its_plan() -> None:
    cloud = ready(ENDS_BY_ITSELF)
    let_the_host_merge(cloud)
    later(cloud, 72.1)
    (pull,) = open_pulls(cloud)
    assert AutoMerge.ENABLED.value in pull.body
    cloud.ports.git_host.set_status(pull.sha, CommitStatus("success", "planned", "roadstead/plan"))
    assert open_pulls(cloud) == []
    accept(pushed(cloud, cloud.repository.head("main")), cloud.ports)
    cloud.run()
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({}, 1)


@pytest.mark.parametrize(("lost", "with_job"), [(True, True), (False, True), (False, False)])
def test_after_tables_that_were_lost_or_restored_a_person_decides_an_end_that_was_extended(
    lost: bool, with_job: bool
) -> None:
    cloud = with_epoch(MemoryCloud(config=CONFIG, throttle=False))
    push(cloud, files("  expires: 2026-01-02\n  lifetimeEnd: delete\n"))
    cloud.run()
    let_the_host_merge(cloud)
    older = cloud.state.backup()
    assert put_off(cloud, hours=48).ok
    if with_job:
        push(cloud, files("  expires: 2026-01-02\n  lifetimeEnd: delete\n  tags: {cost: a}\n"))
        cloud.run()
    cloud.restore(None if lost else older)
    assert recovered(cloud)
    later(cloud, 60)
    (pull,) = open_pulls(cloud)
    assert ("Ask its owner first" in pull.body, "Who merges it" in pull.body) == (True, False)
    cloud.ports.git_host.set_status(pull.sha, CommitStatus("success", "planned", "roadstead/plan"))
    assert [own.number for own in open_pulls(cloud)] == [pull.number]
    assert put_off(cloud).ok
    assert open_pulls(cloud) == []


def test_an_end_that_deletes_stays_open_and_says_who_must_act_where_the_host_does_not_merge() -> None:
    cloud = ended(ENDS_BY_ITSELF)
    (pull,) = open_pulls(cloud)
    assert AutoMerge.NOT_ALLOWED.value in pull.body
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize("guard", ["  deletionProtection: true\n", ""])
def test_an_end_that_deletes_is_guarded_as_any_other(guard: str) -> None:
    cloud = ready(f"{ENDS_BY_ITSELF}{guard}")
    let_the_host_merge(cloud)
    if not guard:
        put_off(cloud, hold=True)
    later(cloud, 72.1 if guard else 23)
    assert open_pulls(cloud) == []


def test_an_end_that_is_put_off_takes_back_what_the_host_was_to_merge() -> None:
    cloud = ready(ENDS_BY_ITSELF)
    let_the_host_merge(cloud)
    later(cloud, 72.1)
    (pull,) = open_pulls(cloud)
    put_off(cloud)
    cloud.ports.git_host.set_status(pull.sha, CommitStatus("success", "planned", "roadstead/plan"))
    assert open_pulls(cloud) == []
    assert "clusters/one/cluster.yaml" in cloud.repository.files(cloud.repository.head("main"))
