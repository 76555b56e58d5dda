"""The rollback of a node pool: proposed with its conditions, carried out once, and never again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.app.api.acts.cluster import replay
from shared.app.intake.accept import accept
from shared.azure.changes.comparison import writable_pool
from shared.cluster.failures.errors import Unauthorized
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetPoolUpgradeProfile, PutPool
from tests.support.one_cluster import ONE, advice, files, pool, record
from tests.support.pipeline_runs import accepted, phases, push, pushed, status
from tests.support.replaced_ports import around
from tests.support.rollbacks import (
    NEW,
    OFF,
    OLD,
    ask,
    change,
    manifest,
    merge,
    open_pulls,
    profile,
    runs,
    upgraded,
)

pytestmark = pytest.mark.lives

AUTOMATIC = "  autoUpgradeProfile: {upgradeChannel: patch, nodeOSUpgradeChannel: NodeImage}\n"


def test_the_pull_request_of_a_rollback_has_the_versions_that_azure_lists() -> None:
    cloud = upgraded()
    before = manifest(cloud)
    result = ask(cloud, reason="pods crash")
    assert result.status == 201, result.body
    (pull,) = open_pulls(cloud)
    assert pull.title == "Roll back one/apps to Kubernetes 1.35.7"
    assert str(result.body["pullRequest"]).endswith(f"/pull/{pull.number}")
    assert "pods crash" in pull.body
    after = manifest(cloud, pull.head)
    added = [line.strip() for line in after.splitlines() if line not in before.splitlines()]
    assert added == [
        f"- {{name: apps, vmSize: Standard_D4s_v5, count: 2, orchestratorVersion: 1.35.7, "
        f"rollback: {{nodeImageVersion: {OLD[1]}, lastUsed: '{result.body['lastUsed']}'}}}}"
    ]
    assert runs(cloud) == NEW


def test_a_merged_rollback_is_carried_out_by_one_write_and_the_cluster_is_ready() -> None:
    cloud = upgraded()
    ask(cloud)
    before = accepted(cloud)
    commit = merge(cloud)
    assert (runs(cloud), phases(cloud)) == (OLD, {"one": Phase.READY})
    assert runs(cloud, "system") == NEW
    assert {key: count for key, count in (accepted(cloud) - before).items() if "pool" in key[0]} == {
        ("update-pool", "apps"): 1
    }
    assert status(cloud, commit)[0] == "success"
    plan = cloud.state.plan(commit)
    assert plan is not None
    effects = {change.effect for item in plan.plan.items for change in item.changes}
    assert effects == {"the node pool is rolled back, nodes are reimaged"}


def test_whoever_asks_twice_gets_the_same_pull_request() -> None:
    cloud = upgraded()
    first, second = ask(cloud), ask(cloud)
    assert first.body["pullRequest"] == second.body["pullRequest"]
    assert len(open_pulls(cloud)) == 1


def test_a_rollback_that_was_merged_and_reverted_before_it_started_is_proposed_again() -> None:
    cloud = upgraded()
    before, first = cloud.repository.files(cloud.repository.head("main")), ask(cloud)
    (pull,) = open_pulls(cloud)
    cloud.repository.pulls.merged_into_base(pull.number)
    push(cloud, {**before})
    cloud.run()
    again = ask(cloud)
    assert again.status == 201, again.body
    assert again.body["pullRequest"] != first.body["pullRequest"]
    (pull,) = open_pulls(cloud)
    assert not cloud.repository.is_descendant(cloud.repository.head("main"), cloud.repository.head(pull.head))
    merge(cloud)
    assert runs(cloud) == OLD


def test_a_missing_role_in_azure_and_a_missing_permission_on_github_have_answers_of_their_own() -> None:
    cloud = upgraded()
    azure = cloud.ports.azure

    def refused(operation: Any) -> Any:
        if isinstance(operation, GetPoolUpgradeProfile):
            raise Unauthorized("no role")
        return azure.call(operation)

    def unpermitted(_: Any) -> str:
        raise Unauthorized("not by integration")

    around(cloud, "azure", call=refused)
    found = ask(cloud)
    assert (found.status, found.body["error"]) == (502, "Unauthorized: no role")
    around(cloud, "azure", call=azure.call)
    around(cloud, "git_host", add_commit=unpermitted)
    found = ask(cloud)
    assert found.status == 502
    assert found.body["error"] == "Unauthorized: not by integration"


def test_each_condition_that_fails_is_named_with_what_to_do() -> None:
    cloud = upgraded(AUTOMATIC, '  minNodeImageVersion: "202511.01"\n')
    assert str(ask(cloud).body["error"]).split(". ") == [
        "autoUpgradeProfile.upgradeChannel is patch, which would upgrade the pool again: "
        "commit autoUpgradeProfile.upgradeChannel: none first",
        "autoUpgradeProfile.nodeOSUpgradeChannel is NodeImage, so Azure may not restore the node image: "
        "commit autoUpgradeProfile.nodeOSUpgradeChannel: None first",
        f"spec.minNodeImageVersion 202511.01 is newer than the image {OLD[1]}, and would upgrade it again: "
        "lower or remove minNodeImageVersion first",
    ]
    assert open_pulls(cloud) == []


def test_after_seven_days_and_without_an_upgrade_nothing_is_proposed() -> None:
    cloud = upgraded()
    cloud.run(seconds=timedelta(days=7, minutes=1).total_seconds(), until=lambda: False)
    assert "Azure rolls back within seven days: upgrade forward" in str(ask(cloud).body["error"])
    late = upgraded()
    ask(late)
    merge(late)
    assert (
        ask(late).body["error"].startswith("Azure lists no earlier version of the pool apps to roll back to")
    )


def test_a_pool_in_an_operation_is_not_proposed() -> None:
    cloud = upgraded()
    cloud.azure.interventions.set_node_image(ONE, "apps", OLD[1])
    cloud.azure.upgrade_node_image(ONE, "apps")
    assert ask(cloud).body["error"] == "Azure is at work on the pool apps: try again when that has ended"


def test_an_unknown_cluster_or_pool_is_said() -> None:
    cloud = upgraded()
    assert ask(cloud, "web").body["error"] == "one has no node pool web; it has system, apps"


def test_a_rollback_that_was_carried_out_is_never_repeated() -> None:
    cloud = upgraded()
    lasted = str(ask(cloud).body["lastUsed"])
    merge(cloud)
    cloud.azure.interventions.set_node_image(ONE, "apps", NEW[1])
    before = accepted(cloud)
    change(cloud, extra="  tags: {a: b}\n", **asking(lasted))
    assert phases(cloud) == {"one": Phase.READY}
    assert ("update-pool", "apps") not in accepted(cloud) - before
    assert runs(cloud) == (OLD[0], NEW[1])


def test_the_next_upgrade_needs_only_another_version() -> None:
    cloud = upgraded()
    lasted = str(ask(cloud).body["lastUsed"])
    merge(cloud)
    change(cloud, **asking(lasted) | {"orchestratorVersion": "1.36.3"})
    assert (runs(cloud), phases(cloud)) == (NEW, {"one": Phase.READY})
    again = ask(cloud)
    assert again.status == 201, again.body
    assert again.body["lastUsed"] > lasted
    merge(cloud)
    assert runs(cloud) == OLD


def test_a_rollback_whose_conditions_ended_before_the_merge_holds_until_a_commit_takes_it_back() -> None:
    cloud = upgraded()
    ask(cloud)
    cloud.run(seconds=timedelta(days=7, minutes=1).total_seconds(), until=lambda: False)
    before = accepted(cloud)
    (found,) = open_pulls(cloud)
    merged = cloud.repository.pulls.merged_into_base(found.number)
    accept(pushed(cloud, merged.merge_commit), cloud.ports)
    cloud.run(seconds=3600, until=lambda: False)
    assert (
        "the node pool apps is not rolled back: the pool apps ran these versions until"
        in record(cloud).job.reason
    )
    assert advice(cloud).startswith("Take rollback out of the pool apps in git, or: upgrade forward")
    assert accepted(cloud) == before
    change(cloud, extra="  tags: {a: b}\n")
    assert (runs(cloud), phases(cloud)) == (NEW, {"one": Phase.READY})


def test_a_rollback_of_versions_that_azure_does_not_list_is_not_written() -> None:
    cloud = upgraded()
    before = accepted(cloud)
    push(
        cloud, files(pool(**asking("2026-01-01T00:00:00Z", "AKSUbuntu-2204gen2containerd-202501.01.0")) + OFF)
    )
    cloud.run(seconds=900, until=lambda: False)
    assert "Azure lists no earlier version of the pool apps" in record(cloud).job.reason
    assert accepted(cloud) == before


def test_a_pool_that_is_created_later_has_its_rollback_behind_it() -> None:
    cloud = upgraded()
    lasted = str(ask(cloud).body["lastUsed"])
    merge(cloud)
    change(cloud, **asking(lasted), size="Standard_D8s_v5")
    assert phases(cloud) == {"one": Phase.READY}
    assert runs(cloud, "appsb") == (OLD[0], NEW[1])
    assert profile(cloud, "appsb")["tags"]["roadstead-rollback"] == lasted.replace("-", "").replace(":", "")


def test_a_pool_that_somebody_rolled_back_is_only_tagged() -> None:
    cloud = upgraded()
    lasted = str(ask(cloud).body["lastUsed"])
    by_hand = {**writable_pool(profile(cloud)), "orchestratorVersion": OLD[0], "nodeImageVersion": OLD[1]}
    cloud.ports.azure.call(PutPool(ONE, "apps", {"properties": by_hand}, etag=None))
    cloud.run(seconds=60, until=lambda: False)
    before = accepted(cloud)
    merge(cloud)
    assert (runs(cloud), phases(cloud)) == (OLD, {"one": Phase.READY})
    assert accepted(cloud)["update-pool", "apps"] - before["update-pool", "apps"] == 1
    assert profile(cloud)["tags"]["roadstead-rollback"] == lasted.replace("-", "").replace(":", "")


def test_a_rollback_that_failed_in_azure_is_tried_again_by_a_replay_alone() -> None:
    cloud = upgraded()
    ask(cloud)
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    merge(cloud)
    assert phases(cloud) == {"one": Phase.FAILED}
    assert runs(cloud) == NEW
    replay("one", "ops", cloud.ports)
    cloud.run()
    assert (runs(cloud), phases(cloud)) == (OLD, {"one": Phase.READY})


def asking(last_used: str, image: str = OLD[1]) -> dict[str, Any]:
    """Return the fields of a pool that asks for a rollback."""
    rollback = f"{{nodeImageVersion: {image}, lastUsed: '{last_used}'}}"
    return {"orchestratorVersion": OLD[0], "rollback": rollback}
