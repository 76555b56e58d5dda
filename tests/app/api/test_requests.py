"""A cluster by request: who may have which, and the pull request that adds exactly one file."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace

import pytest

from shared.app.api.access import Principal, Role
from shared.app.api.acts.fleet import pause
from shared.app.api.acts.request_limits import requester
from shared.app.intake.accept import accept
from shared.cluster.record_parts import Phase
from shared.language.yaml.parser import parse
from shared.ports import NewCommit, Pull
from tests.support.console_pages import browse, shown
from tests.support.pipeline_runs import phases, pushed, record_of
from tests.support.replaced_ports import around, fails_once
from tests.support.rollbacks import open_pulls
from tests.support.self_service import ASKED, RULE, SOMEBODY, ask, fleet

pytestmark = pytest.mark.lives


def test_the_pull_request_adds_one_file_and_a_merge_creates_the_cluster() -> None:
    cloud = fleet(RULE)
    result = ask(cloud)
    assert result.status == 201, result.body
    (pull,) = open_pulls(cloud)
    before = cloud.repository.files(cloud.repository.head("main"))
    after = cloud.repository.files(cloud.repository.head(pull.head))
    assert after.keys() - before.keys() == {"clusters/test-aks/cluster.yaml"}
    assert {path: after[path] for path in before} == before
    assert "a load test" in pull.body
    merged = cloud.repository.pulls.merged_into_base(pull.number)
    accept(pushed(cloud, merged.merge_commit), cloud.ports)
    cloud.run()
    assert phases(cloud)["test-aks"] is Phase.READY
    record = record_of(cloud, "test-aks")
    assert (record.desired.environment, record.document["spec"]["lifetime"]) == ("development", "8h")
    assert record.desired.labels == {"requested-by": "dana-example.com", "requested-by-id": "7"}


def test_whoever_asks_twice_gets_the_same_pull_request() -> None:
    cloud = fleet(RULE)
    assert ask(cloud).body["pullRequest"] == ask(cloud).body["pullRequest"]
    assert len(open_pulls(cloud)) == 1


def test_another_request_of_the_same_name_does_not_change_the_open_one() -> None:
    cloud = fleet(RULE)
    ask(cloud)
    refused = ask(cloud, replace(ASKED, lifetime="9h"))
    assert (refused.status, "another manifest" in str(refused.body["error"])) == (409, True)


def test_a_person_has_as_many_at_once_as_the_rule_allows() -> None:
    cloud = fleet(RULE)
    ask(cloud)
    refused = ask(cloud, replace(ASKED, name="second-aks"))
    assert (refused.status, "may have 1 at once" in str(refused.body["error"])) == (409, True)
    assert ask(cloud, replace(ASKED, name="third-aks"), replace(SOMEBODY, id="8", name="kim")).status == 201
    (pull,) = [pull for pull in open_pulls(cloud) if "dana" in pull.head]
    cloud.repository.pulls.change(pull.number, state="closed")
    assert ask(cloud, replace(ASKED, name="second-aks")).status == 201


def test_a_request_after_a_declined_one_has_a_pull_request_of_its_own() -> None:
    cloud = fleet(RULE)
    first = ask(cloud)
    (pull,) = open_pulls(cloud)
    cloud.repository.pulls.change(pull.number, state="closed")
    second = ask(cloud, replace(ASKED, lifetime="9h"))
    assert second.status == 201
    assert second.body["pullRequest"] != first.body["pullRequest"]


@pytest.mark.parametrize("call", ["add_commit", "move_branch", "open_pull"])
@pytest.mark.parametrize("before", [True, False])
def test_whoever_asks_again_after_a_crash_gets_one_pull_request(call: str, before: bool) -> None:
    cloud = fleet(RULE)
    fails_once(cloud, "git_host", call, after=not before)
    assert ask(cloud).status == 502
    assert ask(cloud).status == 201
    assert len(open_pulls(cloud)) == 1


def test_where_the_host_does_not_list_all_pull_requests_each_branch_counts() -> None:
    cloud = fleet(RULE)
    ask(cloud)
    others = [Pull(number, f"{number:040x}", "main") for number in range(100, 200)]
    around(cloud, "git_host", open_pulls=lambda _: others)
    refused = ask(cloud, replace(ASKED, name="second-aks"))
    assert (refused.status, "may have 1 at once" in str(refused.body["error"])) == (409, True)
    changed = ask(cloud, replace(ASKED, lifetime="9h"))
    assert (changed.status, "another manifest" in str(changed.body["error"])) == (409, True)


def test_a_branch_that_somebody_else_has_moved_is_left_alone() -> None:
    cloud = fleet(RULE)
    ask(cloud)
    (pull,) = open_pulls(cloud)
    cloud.repository.push({"clusters/test-aks/cluster.yaml": b"another: one"}, branch=pull.head)
    refused = ask(cloud)
    assert (refused.status, "has other files" in refused.body["error"]) == (409, True)


@pytest.mark.parametrize("merged_in", [True, False])
def test_a_branch_on_which_somebody_else_has_put_more_gets_no_pull_request_of_the_app(
    merged_in: bool,
) -> None:
    cloud = fleet(RULE)
    ask(cloud)
    (pull,) = open_pulls(cloud)
    more = {**cloud.repository.files(cloud.repository.head(pull.head)), "classes/small.yaml": b"mine"}
    if merged_in:  # as one commit that was there before the app's
        before = cloud.repository.head("main")
        cloud.git_host.delete_branch(pull.head)
        commit = cloud.git_host.add_commit(NewCommit(more, "Add test-aks", [before]))
        cloud.git_host.move_branch(pull.head, None, commit)
    else:
        cloud.repository.push(more, branch=pull.head)
    cloud.repository.pulls.change(pull.number, state="closed")
    refused = ask(cloud)
    assert (refused.status, "has other files" in refused.body["error"]) == (409, True)
    assert not open_pulls(cloud)


def test_a_request_that_is_merged_while_another_one_is_opened_counts() -> None:
    cloud = fleet(RULE)
    ask(cloud)
    (first,) = open_pulls(cloud)
    listed = cloud.ports.git_host.open_pulls
    seen = list[int]()

    def merged_meanwhile(base: str) -> Sequence[Pull]:
        seen.append(1)
        if len(seen) == 1:  # the other request has read the branch, and not yet the pull requests
            cloud.repository.pulls.merged_into_base(first.number)
        return listed(base)

    around(cloud, "git_host", open_pulls=merged_meanwhile)
    refused = ask(cloud, replace(ASKED, name="second-aks"))
    assert (refused.status, "may have 1 at once" in str(refused.body.get("error"))) == (409, True)
    assert not open_pulls(cloud)


@pytest.mark.parametrize("name", ["123", "null", "true", "1e3"])
def test_a_name_that_yaml_takes_for_something_else_is_a_name(name: str) -> None:
    cloud = fleet(RULE)
    result = ask(cloud, replace(ASKED, name=name))
    assert result.status == 201, result.body


@pytest.mark.parametrize("name", ["a..b", "dana.lock", "x.lock@", ".x.", "\u674e\u96f7", "x" * 62 + ".y"])
def test_a_branch_has_a_name_that_git_takes_whatever_the_caller_is_called(name: str) -> None:
    for found in (
        requester(replace(SOMEBODY, name=name)),
        requester(replace(SOMEBODY, id=name)),
        requester(replace(SOMEBODY, id=name, name=name)),
    ):
        branch = f"refs/heads/roadstead/request/f/{found.account}/{found.name}/x"
        subprocess.run(["git", "check-ref-format", branch], check=True)


@pytest.mark.parametrize("merged", [True, False])
def test_a_person_whose_name_has_changed_has_no_more_than_before(merged: bool) -> None:
    cloud = fleet(RULE)
    ask(cloud)
    if merged:
        cloud.repository.pulls.merged_into_base(open_pulls(cloud)[0].number)
    refused = ask(cloud, replace(ASKED, name="second-aks"), replace(SOMEBODY, name="new-name@example.com"))
    assert (refused.status, "may have 1 at once" in str(refused.body["error"])) == (409, True)


def test_somebody_else_with_the_name_that_a_person_had_has_a_limit_of_their_own() -> None:
    cloud = fleet(RULE)
    ask(cloud)
    assert ask(cloud, replace(ASKED, name="second-aks"), replace(SOMEBODY, id="8")).status == 201


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        (
            "environment: development, clusters: 0",
            "environment development: 1 of 0 clusters; this commit adds 1; 0 would fit",
        ),
        ("clusters: 1", "git has 2 clusters in eastus of the subscription "),
    ],
)
def test_a_request_beyond_a_quota_is_refused_with_the_numbers_and_what_would_fit(
    quota: str, said: str
) -> None:
    cloud = fleet(RULE)
    fleet_file = cloud.repository.files(cloud.repository.head("main"))["fleet.yaml"]
    entry = f"spec:\n  clusterQuotas:\n    - {{{quota}}}\n".encode()
    cloud.repository.commit({"fleet.yaml": fleet_file.replace(b"spec:\n", entry, 1)})
    refused = ask(cloud)
    assert refused.status == 409
    assert str(refused.body["error"]).startswith(said), refused.body
    assert open_pulls(cloud) == []


@pytest.mark.parametrize(
    ("changes", "roles", "why"),
    [
        ({"cluster_class": "large"}, {Role.OPERATOR}, "it is for the classes small"),
        ({"environment": "production"}, {Role.OPERATOR}, "it is for the environments development"),
        ({"location": "westus"}, {Role.OPERATOR}, "it is for the regions eastus"),
        ({"lifetime": "25h"}, {Role.OPERATOR}, "a cluster lasts 24h at most"),
        ({}, {Role.READER}, "it is for the roles Operator"),
    ],
)
def test_what_no_rule_allows_is_refused_with_the_reason(
    changes: dict[str, str], roles: set[Role], why: str
) -> None:
    cloud = fleet(RULE)
    refused = ask(cloud, replace(ASKED, **changes), replace(SOMEBODY, roles=frozenset(roles)))
    assert (refused.status, why in str(refused.body["error"])) == (403, True)
    assert open_pulls(cloud) == []


def test_a_role_in_the_environment_alone_is_enough() -> None:
    limited = Principal("7", "dana", frozenset(), limited=frozenset({(Role.OPERATOR, "development")}))
    assert ask(fleet(RULE), principal=limited).status == 201


def test_a_role_that_includes_the_one_of_the_rule_is_enough() -> None:
    assert ask(fleet(RULE), principal=replace(SOMEBODY, roles=frozenset({Role.ADMIN}))).status == 201


def test_without_a_rule_nobody_may_ask() -> None:
    refused = ask(fleet())
    assert (refused.status, "has no rule" in str(refused.body["error"])) == (403, True)


def test_nothing_is_added_under_a_name_that_is_taken_or_in_a_pause() -> None:
    cloud = fleet(RULE)
    assert ask(cloud, replace(ASKED, name="one")).status == 409
    pause("an incident", None, "ops", cloud.ports)
    assert ask(cloud).status == 409


def test_a_request_that_would_be_invalid_is_refused_before_anything_is_written() -> None:
    cloud = fleet(RULE.replace("small", "nowhere"))
    refused = ask(cloud, replace(ASKED, cluster_class="nowhere"))
    assert (refused.status, "would be invalid" in str(refused.body["error"])) == (409, True)
    assert cloud.ports.git_host.branches("roadstead/request/") == {}


def test_an_invalid_request_without_a_location_says_which_ones_it_may_name() -> None:
    cloud = fleet(RULE.replace("small", "nowhere").replace("[eastus]", "[eastus, westeurope]"))
    for location, says in (("", True), ("eastus", False)):
        refused = ask(cloud, replace(ASKED, cluster_class="nowhere", location=location))
        hint = "a request may name the location: eastus, westeurope"
        assert (refused.status, hint in str(refused.body["error"])) == (409, says)


def test_the_file_is_plain_yaml_whatever_the_caller_is_called() -> None:
    cloud = fleet(RULE)
    ask(cloud, principal=replace(SOMEBODY, name='x"}\nspec: {evil: true}'))
    (pull,) = open_pulls(cloud)
    text = cloud.repository.files(cloud.repository.head(pull.head))["clusters/test-aks/cluster.yaml"]
    assert parse(text, "cluster.yaml").find(("metadata", "labels", "requested-by")).value == (
        "x---spec---evil--true"
    )


def test_the_page_shows_what_waits_and_what_there_is_and_its_form_asks_for_a_cluster() -> None:
    cloud = fleet(RULE.replace("Operator", "Admin"))
    page = shown(cloud.ports, "/requests")
    assert "/acts/request" in page.actions
    form = {"name": "test-aks", "class": "small", "environment": "development", "location": "eastus"}
    form |= {"lifetime": "8h", "reason": "a load test", "token": page.hidden["token"], "back": "/requests"}
    assert browse(cloud.ports, "/acts/request", form=form).status_code == 303
    assert "test-aks , yours" in shown(cloud.ports, "/requests").text
    (pull,) = open_pulls(cloud)
    accept(pushed(cloud, cloud.repository.pulls.merged_into_base(pull.number).merge_commit), cloud.ports)
    cloud.run()
    after = shown(cloud.ports, "/requests").text
    assert ("No request waits" in after, "test-aks Ready , yours" in after) == (True, True)


def test_the_page_has_no_form_for_somebody_whom_no_rule_is_for() -> None:
    page = shown(fleet(RULE).ports, "/requests", role="Reader")
    assert ("/acts/request" in page.actions, "No rule of selfService" in page.text) == (False, True)
