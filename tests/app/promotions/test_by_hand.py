"""Promotions that somebody asks for: a pull request with what is proven, or why there is none."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.pulls import promote
from shared.cluster.record_parts import Phase
from tests.support.pipeline_runs import accepted, phases, push, step_until
from tests.support.promotions import (
    BRANCH,
    PROD,
    ask,
    change,
    files,
    fleet_with,
    merge,
    production,
    pulls,
    stored,
)

pytestmark = pytest.mark.lives


def versions(cloud: MemoryCloud, names: tuple[str, ...]) -> set[str]:
    records = {record.name: record for record in cloud.state.clusters()}
    return {records[name].running.kubernetes_version.rpartition(".")[0] for name in names}


def test_what_every_cluster_of_an_environment_has_is_proposed_to_another_one() -> None:
    cloud = fleet_with(files(test="1.36"))
    before = production(cloud, "main")
    result = ask(cloud)
    assert (result.status, result.body["clusters"]) == (202, ["b1", "b2"])
    (pull,) = pulls(cloud)
    assert (pull.head, pull.base, pull.title) == (BRANCH, "main", "Promote development to production")
    assert production(cloud) == before.replace("'1.35'   # checked", "'1.36'   # checked")
    assert "| `kubernetesVersion` | `1.36` |" in pull.body
    assert versions(cloud, PROD) == {"1.35"}


def test_its_merge_changes_the_environment_and_deletes_the_branch() -> None:
    cloud = fleet_with(files(test="1.36"))
    ask(cloud)
    merge(cloud, pulls(cloud)[0].number)
    assert versions(cloud, PROD) == {"1.36"}
    assert set(phases(cloud).values()) == {Phase.READY}
    assert cloud.ports.git_host.tip(BRANCH) is None
    assert pulls(cloud) == []
    assert ask(cloud).body["error"] == (
        "version: production has 1.36 already; components: production has flux/gotk-components.yaml already; "
        "platform: a1 of development names no value: a branch, a range of versions or a tag that stages "
        "follow is none; set flux.tag or flux.commit"
    )


def test_a_commit_that_an_environment_pulls_is_promoted_in_place_of_the_tag_of_another_one() -> None:
    cloud = fleet_with(files())
    commit, tree = cloud.repository.head("main"), files()
    for name, revision in (("development", f"commit: {commit}"), ("production", "tag: v1")):
        tree[f"environments/{name}.yaml"] += f"    flux:\n      {revision}\n".encode()
    change(cloud, tree, seconds=1800)
    result = ask(cloud, "platform")
    assert (result.status, result.body["clusters"]) == (202, ["b1", "b2"])
    assert f"    flux:\n      commit: {commit}\n" in production(cloud)
    assert "tag: v1" not in production(cloud)


def test_a_value_that_is_not_ready_everywhere_is_not_promoted() -> None:
    cloud = fleet_with(files())
    push(cloud, files(test="1.36"))
    step_until(cloud, lambda: Phase.UPDATING in phases(cloud).values())
    result = ask(cloud, "version")
    assert result.status == 409
    assert "version: not every cluster of development is Ready and healthy: a1, a2" in str(
        result.body["error"]
    )


def test_clusters_with_different_values_prove_nothing() -> None:
    cloud = fleet_with(files(test="1.36", own={"a2": "  kubernetesVersion: '1.35'\n"}))
    assert ask(cloud, "version").body["error"] == (
        "version: the clusters of development have different values: 1.35 in a2; 1.36 in a1"
    )
    assert pulls(cloud) == []


def test_a_version_never_goes_down_by_a_promotion() -> None:
    cloud = fleet_with(files(prod="1.36"))
    assert ask(cloud, "version").body["error"] == (
        "version: no version is lowered, and b1, b2 of production has a newer one than 1.35"
    )


def test_a_cluster_that_sets_its_own_value_keeps_it_and_the_pull_request_says_so() -> None:
    cloud = fleet_with(files(test="1.36", own={"b2": "  kubernetesVersion: '1.35'\n"}))
    assert ask(cloud).body["clusters"] == ["b1"]
    assert "These set a value of their own and keep it: `b2`." in pulls(cloud)[0].body
    both = dict.fromkeys(PROD, "  kubernetesVersion: '1.35'\n")
    change(cloud, files(test="1.36", own=both))
    assert ask(cloud, "version").body["error"] == (
        "version: production has its value for no cluster: b1, b2 sets one in its own file"
    )


def test_an_environment_that_does_not_exist_is_refused() -> None:
    cloud = fleet_with(files(test="1.36"))
    result = promote("staging", "production", (), "ops", cloud.ports)
    assert (result.status, "there is no environment staging" in str(result.body["error"])) == (409, True)
    assert promote("development", "development", (), "ops", cloud.ports).status == 400
    assert promote("development", "production", ("x",), "ops", cloud.ports).status == 400


def test_another_promotion_brings_the_same_pull_request_up_to_date() -> None:
    cloud = fleet_with(files(test="1.36"))
    ask(cloud)
    first = cloud.repository.head(BRANCH)
    change(cloud, files(test="1.37"))
    ask(cloud)
    (pull,) = pulls(cloud, state="all")
    assert "'1.37'   # checked" in production(cloud)
    assert cloud.repository.is_descendant(cloud.repository.head(BRANCH), first)
    assert stored(cloud).number == pull.number


def test_a_branch_that_somebody_pushed_to_is_left_as_it_is() -> None:
    cloud = fleet_with(files(test="1.36"))
    ask(cloud)
    theirs = cloud.repository.push(files(test="1.36") | {"notes.txt": b"mine"}, branch=BRANCH)
    change(cloud, files(test="1.37"))
    ask(cloud)
    assert cloud.repository.head(BRANCH) == theirs
    assert "somebody else has pushed to the branch" in stored(cloud).problem


def test_a_promotion_writes_nothing_to_azure() -> None:
    cloud = fleet_with(files(test="1.36"))
    before = accepted(cloud)
    ask(cloud)
    assert accepted(cloud) == before
