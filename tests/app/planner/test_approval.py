"""Deletes that need approval: an approval names exactly that set, at exactly the planned commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.api.views.why import why_view
from shared.app.intake.accept import accept
from shared.app.planner.planner import handle
from shared.cluster.failures.errors import Unauthenticated
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record_parts import Phase
from shared.ports import BranchHead
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with, phases, push, pushed, ready, status
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def test_a_renamed_folder_waits_with_both_clusters_until_its_delete_is_approved() -> None:
    cloud = ready("one", "two")
    commit = push(cloud, fleet_files.fleet("one", "three"))
    cloud.run(seconds=600)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    state, description = status(cloud, commit)
    assert state == "failure"
    assert "it looks like a rename of two to three" in description
    assert approve(commit, ["two"], "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "three": Phase.READY}


def blocked_deletes() -> tuple[MemoryCloud, str]:
    """Return a cloud whose last commit removes every cluster, and that commit."""
    cloud = cloud_with(fleet_files.fleet("one", "two", "three"))
    commit = push(cloud, fleet_files.fleet())
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    return cloud, commit


ALL = ["one", "two", "three"]


def test_an_approval_of_the_exact_set_at_the_planned_commit_releases_and_reports_it() -> None:
    cloud, commit = blocked_deletes()
    answer = approve(commit, ALL, "ada", cloud.ports)
    assert (answer.status, answer.body) == (202, {"target": commit, "by": "ada"})
    cloud.run()
    assert phases(cloud) == {}
    assert status(cloud, commit) == ("success", "3 of 3 clusters in sync (3 delete)")
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    assert plan_record.approval is not None
    assert (plan_record.approval.by, plan_record.approval.clusters) == ("ada", ("one", "three", "two"))


@pytest.mark.parametrize("clusters", [[], ["one"], [*ALL, "four"], ["One", "two", "three"]])
def test_any_other_set_is_refused(clusters: list[str]) -> None:
    cloud, commit = blocked_deletes()
    answer = approve(commit, clusters, "ada", cloud.ports)
    assert answer.status == 409
    assert "exactly the deletes that need it: one, three, two" in answer.body["error"]
    cloud.run()
    assert len(phases(cloud)) == 3


def test_a_later_commit_needs_a_new_approval() -> None:
    cloud, commit = blocked_deletes()
    newer = push(cloud, {**fleet_files.fleet(), "README.md": b"x"})
    cloud.run()
    assert approve(commit, ALL, "ada", cloud.ports).status == 409
    cloud.run()
    assert len(phases(cloud)) == 3
    assert approve(newer, ALL, "ada", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {}


def test_an_approval_superseded_by_a_commit_releases_nothing() -> None:
    cloud, commit = blocked_deletes()
    assert approve(commit, ALL, "ada", cloud.ports).status == 202
    cloud.repository.push({**fleet_files.fleet(), "README.md": b"x"})
    cloud.run()
    assert len(phases(cloud)) == 3


def test_an_unknown_commit_is_not_found() -> None:
    cloud, _ = blocked_deletes()
    assert approve("0" * 40, ALL, "ada", cloud.ports).status == 404


def protected() -> dict[str, bytes]:
    """Return a fleet whose first cluster is protected."""
    files = fleet_files.fleet("one", "two")
    files["clusters/one/cluster.yaml"] += b"  deletionProtection: true\n"
    return files


def blocked_by_protection() -> tuple[MemoryCloud, str]:
    """Return a cloud whose last commit removes a protected cluster, and that commit."""
    cloud = cloud_with(protected())
    commit = push(cloud, fleet_files.fleet("two"))
    cloud.run()
    return cloud, commit


def test_an_approval_releases_a_protected_cluster_too() -> None:
    cloud, commit = blocked_by_protection()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert status(cloud, commit)[1].startswith("one: deletionProtection is on; roadstead approve releases")
    approve(commit, ["one"], "ada", cloud.ports)
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


def test_a_repeated_approval_has_no_further_effect() -> None:
    cloud, commit = blocked_deletes()
    approve(commit, ALL, "ada", cloud.ports)
    approve(commit, ALL, "ada", cloud.ports)
    cloud.run()
    assert phases(cloud) == {}
    assert approve(commit, ALL, "ada", cloud.ports).status == 409


def test_a_refused_change_is_reported_on_the_commit_and_changes_nothing() -> None:
    cloud = MemoryCloud()
    files = fleet_files.fleet("one", "two")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra="  dnsPrefix: first\n")
    push(cloud, files)
    cloud.run()
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra="  dnsPrefix: second\n")
    files["clusters/two/cluster.yaml"] = fleet_files.cluster("two", count=2)
    commit = push(cloud, files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    state, description = status(cloud, commit)
    assert state == "failure"
    assert description.startswith("one: spec.dnsPrefix cannot change from first to second")
    assert {record.name: record.generation for record in cloud.state.clusters()} == {"one": 1, "two": 2}


def test_an_approval_ends_with_its_plan() -> None:
    cloud, removed = blocked_by_protection()
    assert approve(removed, ["one"], "ada", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}
    push(cloud, protected() | {"README.md": b"it is wanted again"})
    cloud.run()
    cloud.repository.reset(removed)
    accept(replace(pushed(cloud, removed), digest="back"), cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert "deletionProtection is on" in status(cloud, removed)[1]
    assert approve(removed, ["one"], "ada", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


def test_an_approval_lost_to_an_unreadable_repository_is_requested_again() -> None:
    cloud, commit = blocked_by_protection()

    def refused(branch: str) -> BranchHead:
        raise Unauthenticated("the token has expired")

    around(cloud, "git_host", read_head=refused)
    assert approve(commit, ["one"], "ada", cloud.ports).status == 202
    cloud.run()
    assert str(cloud.state.fleet().problem).endswith(f"the token has expired; approve {commit[:8]} again")


def without_effect(cloud: MemoryCloud) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Return the acts that say that an approval had no effect."""
    said = (act for act in cloud.state.acts(9) if act.result.startswith("no effect: "))
    return [(act.action, act.target, act.by, act.clusters) for act in said]


def approved(cloud: MemoryCloud, commit: str, *clusters: str) -> PlanRequest:
    """Return the request of an approval that the API has accepted."""
    approval = Approval(commit=commit, clusters=clusters, by="ada", at=cloud.clock(), reason="moved")
    return PlanRequest(again=True, reason="approved", approval=approval)


def test_who_approved_can_read_that_a_newer_commit_took_the_effect_away() -> None:
    cloud, commit = blocked_deletes()
    assert approve(commit, ALL, "ada", cloud.ports).status == 202
    newer = cloud.repository.push({**fleet_files.fleet(), "README.md": b"x"})
    cloud.run()
    assert len(phases(cloud)) == 3
    assert without_effect(cloud) == [("approve", commit, "ada", ("one", "three", "two"))]
    why = why_view("one", cloud.ports)
    assert why is not None
    (result,) = [act["result"] for act in why["acts"]]
    assert result == (
        f"no effect: {newer[:8]} was planned since; what still needs approval is approved at that commit"
    )


def test_who_approved_can_read_that_the_deletes_of_the_plan_changed() -> None:
    cloud, commit = blocked_deletes()
    request = approved(cloud, commit, "one", "two")
    handle(request, cloud.ports)
    handle(request, cloud.ports)
    cloud.run()
    assert len(phases(cloud)) == 3
    assert without_effect(cloud) == [("approve", commit, "ada", ("one", "two"))], "one answer"
    (act,) = cloud.state.acts(9)
    assert "the deletes of the plan changed: now one, three, two need approval" in act.result


def test_an_approval_that_had_its_effect_is_not_answered_when_it_comes_again() -> None:
    cloud, commit = blocked_deletes()
    request = approved(cloud, commit, "one", "three", "two")
    handle(request, cloud.ports)
    handle(request, cloud.ports)
    cloud.run()
    assert phases(cloud) == {}
    push(cloud, {**fleet_files.fleet(), "README.md": b"x"})
    cloud.run()
    handle(request, cloud.ports)
    cloud.run()
    assert without_effect(cloud) == []
