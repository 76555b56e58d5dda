"""Proposals and people: who closes, reopens or pushes to one, and an app that may not write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.drift import drift_of_cluster
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.app.proposals import proposals
from shared.app.proposals.remembered import DECLINED
from shared.cluster.failures.errors import InvalidManifest, Throttled, Unauthorized, Withheld
from shared.cluster.queues.messages import SweepRequest
from shared.ports import Capability
from shared.ports.azure import GetCluster
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.drift_proposals import (
    BRANCH,
    PROPOSE,
    bring_up_to_date,
    calls_to_host,
    changed_lines,
    drifting,
    notes,
    proposal,
    pull_requests,
)
from tests.support.one_cluster import ONE, files, pool, ready
from tests.support.pipeline_runs import accepted, push
from tests.support.replaced_ports import around, on_azure, shows_first
from tests.support.sweeps import LATER, SUBSCRIPTIONS, handle, several, sweep, tag_by_hand

pytestmark = pytest.mark.lives

TAGS = "  tags: {cost: a}\n"
PATH = "clusters/one/cluster.yaml"


def close(cloud: MemoryCloud, number: int = 1) -> None:
    cloud.repository.pulls.change(number, state="closed")


def numbers(cloud: MemoryCloud) -> list[int]:
    return [pull_request.number for pull_request in pull_requests(cloud)]


def test_a_value_that_somebody_declined_is_never_proposed_again() -> None:
    cloud = drifting()
    close(cloud)
    sweep(cloud)
    assert numbers(cloud) == []
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    assert cloud.ports.git_host.tip(BRANCH) is None
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert numbers(cloud) == []
    assert notes(cloud)["tags.cost"].startswith("declined: its pull request was closed without a merge")
    tag_by_hand(cloud, ONE, cost="c", own="x")
    sweep(cloud)
    assert numbers(cloud) == [2]
    assert changed_lines(cloud)[1] == "+tags: {cost: c, own: x}"


def test_what_was_declined_is_left_out_of_the_proposal_of_another_field() -> None:
    cloud = drifting()
    close(cloud)
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    (pull,) = pull_requests(cloud)
    assert (pull.number, changed_lines(cloud)[1]) == (2, "+tags: {cost: a, own: x}")
    assert "Also different, and not part of this" in pull.body
    assert notes(cloud)["tags.own"] == ""


def test_somebody_who_reopens_a_proposal_takes_the_decline_back() -> None:
    cloud = drifting()
    close(cloud)
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    close(cloud, 2)
    cloud.repository.pulls.change(2, state="open")
    tag_by_hand(cloud, ONE, own="y")
    sweep(cloud)
    assert numbers(cloud) == [2]
    assert changed_lines(cloud)[1] == "+tags: {cost: a, own: y}"
    assert len(proposal(cloud).declined) == 1


def test_a_webhook_shows_at_once_that_somebody_closed_or_reopened_a_proposal() -> None:
    cloud = drifting()
    close(cloud)
    for action, note, address in (
        ("closed", DECLINED, ""),
        ("reopened", "", "https://github.example/pull/1"),
    ):
        cloud.repository.pulls.change(1, state="open" if action == "reopened" else "closed")
        accept(PullChange("d", action, 1, "c" * 40, action, proposal=True), cloud.ports)
        cloud.run()
        view = drift_of_cluster("one", cloud.ports)
        assert view is not None
        ((field,),) = (cluster["fields"] for cluster in view["clusters"])
        assert (field["note"], field["pullRequest"]) == (note, address)
    assert cloud.ports.git_host.tip(BRANCH) is not None


def test_a_proposal_is_not_opened_again_while_its_merge_is_not_planned_yet() -> None:
    cloud = drifting()
    cloud.repository.pulls.merged_into_base(1)
    accept(PullChange("d", "x", 1, "c" * 40, "closed", proposal=True), cloud.ports)
    bring_up_to_date(cloud)
    assert numbers(cloud) == []
    cloud.run()
    sweep(cloud)
    assert (numbers(cloud), cloud.state.proposals(), notes(cloud)) == ([], [], {})


def test_an_older_head_than_was_planned_is_read_again() -> None:
    cloud = ready(TAGS + PROPOSE)
    old = cloud.repository.head("main")
    push(cloud, files(TAGS + PROPOSE) | {"README.md": b"a commit\n"})
    cloud.run()
    tag_by_hand(cloud, ONE, cost="b")
    cloud.clock.advance(LATER)
    handle(cloud, SweepRequest())
    shows_first(cloud, old)
    bring_up_to_date(cloud)
    assert numbers(cloud) == []
    cloud.run()
    assert numbers(cloud) == [1]
    assert cloud.repository.is_descendant(cloud.repository.head(BRANCH), cloud.repository.head("main"))


def test_a_branch_to_which_somebody_pushed_is_left_alone() -> None:
    cloud = drifting()
    mine = cloud.repository.commit({"README.md": b"mine\n"}, branch=BRANCH)
    tag_by_hand(cloud, ONE, cost="c")
    sweep(cloud)
    assert (cloud.repository.head(BRANCH), numbers(cloud)) == (mine, [1])
    assert notes(cloud)["tags.cost"] == (
        "somebody else has pushed to the branch roadstead/drift/example/one: "
        "it is left as it is, and so is its pull request"
    )
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    assert (cloud.repository.head(BRANCH), numbers(cloud)) == (mine, [])
    (comment,) = cloud.repository.pulls.comments(1)
    assert "The branch stays" in comment.body


def test_somebody_who_pushes_between_the_read_and_the_write_of_the_branch_loses_nothing() -> None:
    cloud = drifting()
    add, pushed = cloud.ports.git_host.add_commit, list[str]()

    def meanwhile(*given: Any) -> str:
        pushed.append(cloud.repository.commit({"README.md": b"mine\n"}, branch=BRANCH))
        around(cloud, "git_host", add_commit=add)
        return add(*given)

    around(cloud, "git_host", add_commit=meanwhile)
    tag_by_hand(cloud, ONE, cost="c")
    sweep(cloud)
    assert cloud.repository.head(BRANCH) == pushed[0]
    assert "somebody else has pushed" in notes(cloud)["tags.cost"]


def test_an_app_that_may_not_write_says_so_and_the_sweep_goes_on() -> None:
    def refuses(*_: Any) -> Any:
        raise Unauthorized("Resource not accessible by integration")

    cloud = ready(TAGS + PROPOSE)
    write = cloud.ports.git_host.move_branch
    around(cloud, "git_host", move_branch=refuses)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    view = drift_of_cluster("one", cloud.ports)
    assert view is not None
    assert [field["path"] for field in view["clusters"][0]["fields"]] == ["tags.cost"]
    assert view["proposals"] == (
        "GitHub refuses to open pull requests: Resource not accessible by integration"
    )
    around(cloud, "git_host", move_branch=write)
    sweep(cloud)
    after = drift_of_cluster("one", cloud.ports)
    assert after is not None
    assert (numbers(cloud), after["proposals"]) == ([1], "")
    assert after["clusters"][0]["fields"][0]["pullRequest"] == "https://github.example/pull/1"


def test_on_a_host_without_branches_of_ours_nothing_is_proposed_and_the_reason_is_shown() -> None:
    cloud = ready(TAGS + PROPOSE)
    cloud.git_host.lacks = frozenset({Capability.PROPOSALS})
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    view = drift_of_cluster("one", cloud.ports)
    assert view is not None
    assert "no pull request proposes drift, a promotion or a rollback" in view["proposals"]
    assert view["clusters"][0]["fields"][0]["path"] == "tags.cost"


def test_a_rate_limit_of_github_is_waited_for() -> None:
    cloud = ready(TAGS + PROPOSE)
    open_pull, waits = cloud.ports.git_host.open_pull, [True]

    def throttled(*given: Any) -> Any:
        if waits:
            waits.clear()
            raise Throttled("API rate limit exceeded", retry_after=600)
        return open_pull(*given)

    around(cloud, "git_host", open_pull=throttled)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert numbers(cloud) == [1]


def test_a_rule_of_the_repository_that_refuses_the_branch_is_shown_and_asked_once() -> None:
    cloud = ready(TAGS + PROPOSE)
    asked = []

    def refuses(*given: Any) -> Any:
        asked.append(given)
        raise InvalidManifest("Repository rule violations found")

    around(cloud, "git_host", move_branch=refuses)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    sweep(cloud)
    assert notes(cloud)["tags.cost"] == "InvalidManifest: Repository rule violations found"
    assert len(asked) == 1


def test_what_was_not_proposed_of_a_renamed_repository_is_once_github_serves_that_again() -> None:
    cloud = ready(TAGS + PROPOSE)
    tip = cloud.ports.git_host.tip

    def renamed(_: str) -> str | None:
        raise Withheld("GitHub answered with a redirect")

    around(cloud, "git_host", tip=renamed)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    shown = drift_of_cluster("one", cloud.ports)
    assert shown is not None
    assert shown["proposals"].startswith("pull requests are not up to date: Withheld: ")
    around(cloud, "git_host", tip=tip)
    sweep(cloud)
    assert len(numbers(cloud)) == 1


def test_a_change_of_a_whole_region_opens_some_pull_requests_for_each_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proposals, "NEW_AT_ONCE", 2)
    cloud = several(TAGS + PROPOSE)
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, cost="b")
    sweep(cloud)
    bring_up_to_date(cloud)
    assert len(numbers(cloud)) == 2
    waiting = drift_of_cluster("c", cloud.ports)
    assert waiting is not None
    assert waiting["proposals"].startswith("1 cluster waits for a pull request")
    sweep(cloud)
    assert len(numbers(cloud)) == 3
    last = drift_of_cluster("c", cloud.ports)
    assert last is not None
    assert last["proposals"] == ""


def test_a_node_pool_that_somebody_deleted_is_reported_with_the_reason() -> None:
    cloud = ready(pool() + TAGS + PROPOSE)
    cloud.azure.delete_pool(ONE, "apps")
    sweep(cloud)
    assert numbers(cloud) == []
    assert notes(cloud) == {
        "nodePools[apps]": "no pull request: one changes fields, and adds or removes no node pool"
    }


def test_what_no_manifest_can_say_is_left_out_with_the_reason() -> None:
    cloud = ready(TAGS + PROPOSE)
    tag_by_hand(cloud, ONE, cost="{name}", own="x")
    sweep(cloud)
    assert changed_lines(cloud)[1] == "+tags: {cost: a, own: x}"
    assert notes(cloud) == {"tags.cost": "a manifest cannot say what Azure has", "tags.own": ""}


def test_a_policy_that_proposes_no_longer_closes_its_pull_request() -> None:
    cloud = drifting()
    push(cloud, fleet_files.fleet() | {PATH: fleet_files.cluster("one", extra=TAGS)})
    cloud.run()
    writes = accepted(cloud)
    sweep(cloud)
    sweep(cloud)
    assert (numbers(cloud), accepted(cloud)) == ([], writes)


def test_a_cluster_that_the_app_may_not_read_is_named_and_keeps_no_other_one_from_its_proposal() -> None:
    cloud = several(TAGS + PROPOSE)
    for name, subscription in zip("ac", (SUBSCRIPTIONS[0], SUBSCRIPTIONS[2]), strict=True):
        tag_by_hand(cloud, ClusterId(subscription, f"rg-{name}", name), cost="b")
    call = cloud.ports.azure.call

    def refused(operation: Any) -> Any:
        if isinstance(operation, GetCluster) and operation.target.name == "a":
            raise Unauthorized("the role is missing")
        return call(operation)

    around(cloud, "azure", call=refused)
    sweep(cloud)
    assert [pull_request.title for pull_request in pull_requests(cloud)] == [
        "Take what Azure has of c into its manifest"
    ]
    assert "a cannot be read in Azure: Unauthorized: the role is missing" in cloud.state.sweep().proposals


def test_clusters_that_wait_for_the_next_sweep_cost_no_call_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proposals, "NEW_AT_ONCE", 1)
    cloud = several(TAGS + PROPOSE)
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, cost="b")
    sweep(cloud)
    assert len(numbers(cloud)) == 1
    read, get = list[str](), cloud.ports.azure.call

    def noted(operation: GetCluster) -> object:
        read.append(operation.target.name)
        return get(operation)

    on_azure(cloud, GetCluster, noted)
    calls = calls_to_host(cloud)
    bring_up_to_date(cloud)
    assert (read, calls) == ([], [])
    waiting = drift_of_cluster("c", cloud.ports)
    assert waiting is not None
    assert waiting["proposals"].startswith("2 clusters wait for a pull request")


def test_a_cluster_of_which_nothing_is_proposed_does_not_take_the_time_of_all_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proposals, "SECONDS", -1)
    cloud = several(TAGS + PROPOSE)
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, cost="b")
    read, get = list[str](), cloud.ports.azure.call

    def busy(operation: GetCluster) -> Any:
        read.append(operation.target.name)
        found = get(operation)
        if operation.target.name == "a" and found is not None:
            return {**found, "properties": {**found["properties"], "provisioningState": "Updating"}}
        return found

    on_azure(cloud, GetCluster, busy)
    sweep(cloud)
    cloud.run(seconds=600, until=lambda: False)
    assert [pull_request.head[-1] for pull_request in pull_requests(cloud)] == ["b", "c"]
    assert read.count("a") == 1


def test_the_next_message_knows_too_which_pull_request_somebody_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = several(TAGS + PROPOSE)
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, cost="b")
    sweep(cloud)
    monkeypatch.setattr(proposals, "SECONDS", -1)
    cloud.state.save_proposal(replace(proposal(cloud, "a"), digest=""))
    number = proposal(cloud, "c").number
    close(cloud, number)
    accept(PullChange("d", "x", number, "c" * 40, "closed", proposal=True), cloud.ports)
    cloud.run(seconds=60, until=lambda: False)
    assert len(proposal(cloud, "c").declined) == 1
