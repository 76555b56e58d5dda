"""Drift that a policy proposes: one pull request for a cluster takes what Azure has into its manifest."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.outbox import request_whole_sweep
from shared.cluster.record_parts import Phase
from shared.ports.azure import GetCluster
from shared.resource_ids import ClusterId
from tests.support.drift_proposals import (
    BRANCH,
    PROPOSE,
    bring_up_to_date,
    calls_to_host,
    changed_lines,
    drifting,
    manifest,
    merge,
    proposal,
    pull_requests,
)
from tests.support.one_cluster import ONE, cluster, files, pool, pools, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import (
    LATER,
    SUBSCRIPTIONS,
    change_pool_by_hand,
    drifted,
    several,
    sweep,
    tag_by_hand,
)

pytestmark = pytest.mark.lives

TAGS = "  tags: {cost: a}   # who pays\n"


def test_a_tag_that_somebody_changes_is_proposed_and_nothing_else_of_the_file_changes() -> None:
    cloud = drifting(TAGS)
    (pull,) = pull_requests(cloud)
    assert (pull.head, pull.base) == (BRANCH, "main")
    assert manifest(cloud) == manifest(cloud, "main").replace("{cost: a}   # who", "{cost: b}   # who")
    assert '| `tags.cost` | `"a"` | `"b"` | `clusters/one/cluster.yaml:11` |' in pull.body
    assert "To have the values of git written instead, run `roadstead replay one`.\n" in pull.body
    assert cluster(cloud)["tags"]["cost"] == "b"


def test_all_fields_of_a_cluster_are_one_pull_request() -> None:
    cloud = ready(pool(count=2, nodeLabels="{tier: front}") + TAGS + PROPOSE)
    change_pool_by_hand(cloud, ONE, "apps", count=5, nodeLabels={"tier": "back"})
    tag_by_hand(cloud, ONE, cost="b", own="x")
    sweep(cloud)
    assert len(pull_requests(cloud)) == 1
    (pull,) = pull_requests(cloud)
    assert "run `roadstead replay one`, but for what no job changes: `tags.own`.\n" in pull.body
    assert changed_lines(cloud) == [
        "-- {name: apps, vmSize: Standard_D4s_v5, count: 2, nodeLabels: {tier: front}}",
        "-tags: {cost: a}   # who pays",
        "+- {name: apps, vmSize: Standard_D4s_v5, count: 5, nodeLabels: {tier: back}}",
        "+tags: {cost: b, own: x}   # who pays",
    ]


def test_a_merge_of_the_proposal_writes_nothing_and_the_cluster_is_in_sync() -> None:
    cloud = ready(pool(count=2) + TAGS + PROPOSE)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tag_by_hand(cloud, ONE, cost="b", own="x")
    sweep(cloud)
    writes = accepted(cloud)
    (pull,) = pull_requests(cloud)
    merge(cloud, pull.number)
    assert accepted(cloud) == writes
    assert (phases(cloud), drifted(record(cloud))) == ({"one": Phase.READY}, {})
    sweep(cloud)
    assert (accepted(cloud), drifted(record(cloud)), pull_requests(cloud)) == (writes, {}, [])
    assert pools(cloud)["apps"]["count"] == 5
    assert cloud.ports.git_host.tip(BRANCH) is None
    assert cloud.state.proposals() == []


def test_a_version_that_git_lowered_is_proposed_as_it_runs() -> None:
    """What runs is newer than the manifest of the newest commit, however it came to that."""
    cloud = ready(PROPOSE)
    lowered = {path: text.replace(b"1.36", b"1.35") for path, text in files(PROPOSE).items()}
    push(cloud, lowered)
    cloud.run()
    sweep(cloud)
    assert changed_lines(cloud) == ["+kubernetesVersion: 1.36.3"]
    (pull,) = pull_requests(cloud)
    assert "has the value of Azure already" not in pull.body
    assert "Azure has `one` in another way than git" in pull.body, "nobody has changed it there"
    assert "roadstead replay" not in pull.body, "no job lowers a version"
    merge(cloud, pull.number)
    sweep(cloud)
    assert (drifted(record(cloud)), pull_requests(cloud)) == ({}, [])


def test_what_a_class_sets_is_written_into_the_manifest_of_the_cluster() -> None:
    cloud = ready()
    shared = b"""\
apiVersion: roadstead.dev/v1alpha1
kind: ClusterClass
metadata: {name: small}
spec:
  drift: {action: propose}
  tags:
    cost: a
"""
    push(cloud, files("  class: small\n") | {"classes/small.yaml": shared})
    cloud.run()
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert changed_lines(cloud) == ["+tags:", "+cost: b"]
    (pull,) = pull_requests(cloud)
    assert "`classes/small.yaml:7`" in pull.body
    merge(cloud, pull.number)
    assert drifted(record(cloud)) == {}


def test_a_second_sweep_asks_github_nothing() -> None:
    cloud = drifting(TAGS)
    before = proposal(cloud)
    sweep(cloud)
    calls = calls_to_host(cloud)
    bring_up_to_date(cloud)
    assert (proposal(cloud), calls, len(pull_requests(cloud, state="all"))) == (before, [], 1)


def test_drift_that_changes_brings_its_pull_request_up_to_date() -> None:
    cloud = drifting(TAGS)
    (pull,) = pull_requests(cloud)
    first = cloud.repository.head(BRANCH)
    push(cloud, files(TAGS + PROPOSE) | {"README.md": b"a commit\n"})
    cloud.run()
    tag_by_hand(cloud, ONE, cost="c", own="x")
    sweep(cloud)
    (after,) = pull_requests(cloud)
    assert (after.number, changed_lines(cloud)) == (
        pull.number,
        ["-tags: {cost: a}   # who pays", "+tags: {cost: c, own: x}   # who pays"],
    )
    assert cloud.repository.is_descendant(cloud.repository.head(BRANCH), first)
    assert cloud.repository.is_descendant(cloud.repository.head(BRANCH), cloud.repository.head("main"))
    assert '`"c"`' in after.body


def test_drift_that_ends_closes_its_pull_request_and_deletes_its_branch() -> None:
    cloud = drifting(TAGS)
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    (pull,) = pull_requests(cloud, state="all")
    assert (pull.state, pull.merged) == ("closed", False)
    (comment,) = cloud.repository.pulls.comments(pull.number)
    assert "Closed: what this proposes is no longer drift" in comment.body
    assert cloud.ports.git_host.tip(BRANCH) is None
    assert cloud.state.proposals() == []
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert [pull_request.number for pull_request in pull_requests(cloud)] == [2]


def test_a_cluster_that_git_removes_takes_its_pull_request_with_it() -> None:
    cloud = drifting(TAGS)
    tree = dict(files())
    del tree["clusters/one/cluster.yaml"]
    push(cloud, tree)
    cloud.run()
    assert phases(cloud) == {}
    sweep(cloud)
    assert pull_requests(cloud) == []
    assert cloud.state.proposals() == []


def test_what_is_not_proposed_in_a_suspension_has_no_open_pull_request() -> None:
    cloud = drifting()
    assert len(pull_requests(cloud)) == 1
    push(cloud, files("  tags: {cost: a}\n" + PROPOSE + suspended(cloud, 24)))
    cloud.run(seconds=60)
    assert phases(cloud) == {"one": Phase.SUSPENDED}
    tag_by_hand(cloud, ONE, cost="a")
    cloud.clock.advance(LATER)
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=120)
    assert (drifted(record(cloud)), pull_requests(cloud)) == ({}, [])
    assert cloud.ports.git_host.tip(BRANCH) is None


def test_what_is_not_proposed_after_a_job_failed_has_no_open_pull_request() -> None:
    cloud = drifting()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    push(cloud, files(pool(count=2) + "  tags: {cost: a}\n" + PROPOSE))
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    sweep(cloud)
    assert pull_requests(cloud) == []


def test_a_tag_that_could_be_a_number_is_proposed_as_a_string() -> None:
    cloud = ready(TAGS + PROPOSE)
    tag_by_hand(cloud, ONE, cost="1234e56")
    sweep(cloud)
    assert changed_lines(cloud) == ["-tags: {cost: a}   # who pays", "+tags: {cost: '1234e56'}   # who pays"]


def test_a_manifest_that_is_no_text_keeps_no_other_cluster_from_its_pull_request() -> None:
    cloud = several(TAGS + PROPOSE)
    tree = cloud.repository.files(cloud.repository.head("main"))
    push(cloud, dict(tree) | {"clusters/a/cluster.yaml": tree["clusters/a/cluster.yaml"] + b"# caf\xe9\n"})
    cloud.run()
    for name, subscription in zip("abc", SUBSCRIPTIONS, strict=True):
        tag_by_hand(cloud, ClusterId(subscription, f"rg-{name}", name), cost="b")
    sweep(cloud)
    assert {pull_request.head for pull_request in pull_requests(cloud)} == {
        f"roadstead/drift/example/{name}" for name in "bc"
    }
    assert "is not UTF-8 text" in proposal(cloud, "a").problem


def test_a_cluster_that_is_not_understood_keeps_no_other_one_from_its_pull_request() -> None:
    cloud = several(TAGS + PROPOSE)
    for name, subscription in zip("abc", SUBSCRIPTIONS, strict=True):
        tag_by_hand(cloud, ClusterId(subscription, f"rg-{name}", name), cost="b")
    azure = cloud.ports.azure

    def strange(operation: GetCluster) -> Any:
        if operation.target.name == "a":
            raise ValueError("a token")
        return azure.call(operation)

    on_azure(cloud, GetCluster, strange)
    sweep(cloud)
    assert {pull_request.head for pull_request in pull_requests(cloud)} == {
        f"roadstead/drift/example/{name}" for name in "bc"
    }
    assert cloud.state.sweep().proposals == "nothing is proposed of a: the log has the details"


def test_what_a_manifest_could_not_take_is_proposed_once_a_commit_has_mended_it() -> None:
    cloud = ready(TAGS + PROPOSE)
    push(cloud, files(TAGS + PROPOSE + "  colour: red\n"))
    cloud.run()
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert pull_requests(cloud) == []
    calls = calls_to_host(cloud)
    sweep(cloud)
    assert [call for call in calls if call != "read_head"] == []
    push(cloud, files(TAGS + PROPOSE))
    cloud.run()
    sweep(cloud)
    assert len(pull_requests(cloud)) == 1
