"""Versions of channels: one pull request for the first environment, which promotions carry on."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.versions import versions_view
from shared.app.outbox import send
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import PromoteRequest
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.ports.azure import ListVersions
from tests.support.channel_proposals import BRANCH, FILE, in_git, proposed, stored, tree
from tests.support.pipeline_runs import phases, push
from tests.support.promotions import PROD, TEST, asked_again, decided, environment, merge, pulls
from tests.support.replaced_ports import around, falls_silent, on_azure

pytestmark = pytest.mark.lives


def begun(*withheld: str, version: str = "1.35.7") -> MemoryCloud:
    """Return a fleet with the channel stable, all Ready; some versions are not offered yet."""
    cloud = MemoryCloud()
    cloud.azure.withheld.update(withheld)
    push(cloud, tree(version))
    cloud.run()
    assert phases(cloud) == dict.fromkeys((*TEST, *PROD), Phase.READY)
    return cloud


def running(cloud: MemoryCloud, names: tuple[str, ...]) -> set[str]:
    records = {record.name: record for record in cloud.state.clusters()}
    return {records[name].running.kubernetes_version for name in names}


def test_an_offered_version_is_proposed_to_the_first_environment_and_nothing_moves_before_a_merge() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    assert (pull.title, pull.base) == ("Kubernetes 1.36.3 for development", "main")
    assert in_git(cloud, BRANCH) == in_git(cloud).replace("'1.35.7'", "'1.36.3'")
    assert "| `kubernetesVersion` | `1.35.7` | `1.36.3` |" in pull.body
    assert "2 clusters (`a1`, `a2`)" in pull.body
    assert "AKS offers it in every region of the environment" in pull.body
    assert "Nobody has read `a1`, `a2`; `roadstead ready --to 1.36 --wait` reads them." in pull.body
    assert "CHANGELOG-1.36.md" in pull.body
    reports = "https://cve-api.prod-aks.azure.com/api/v1/aks-k8s-releases"
    assert f"[1.35.7]({reports}/1.35.7/scan-reports), [1.36.3]({reports}/1.36.3/scan-reports)" in pull.body
    assert running(cloud, (*TEST, *PROD)) == {"1.35.7"}
    (shown,) = versions_view(cloud.ports)["channels"]
    assert (shown["channel"], shown["proposed"], shown["problem"]) == ("stable", "1.36.3", "")
    assert shown["pullRequest"].endswith(f"/pull/{pull.number}")
    commits, comments = stored(cloud).commits, len(cloud.repository.pulls.listed())
    asked_again(cloud)
    assert (stored(cloud).commits, len(cloud.repository.pulls.listed())) == (commits, comments)


def test_a_merge_upgrades_the_first_environment_and_a_promotion_carries_it_to_the_file_of_the_next() -> None:
    cloud = begun()
    merge(cloud, proposed(cloud)[0].number)
    assert running(cloud, TEST) == {"1.36.3"}
    assert cloud.ports.git_host.tip(BRANCH) is None
    (pull,) = pulls(cloud)
    assert "`environments/production.versions.yaml`" in pull.body
    assert running(cloud, PROD) == {"1.35.7"}
    merge(cloud, pull.number)
    assert running(cloud, PROD) == {"1.36.3"}
    assert "'1.36.3'" in in_git(cloud, file="environments/production.versions.yaml")
    assert (proposed(cloud), pulls(cloud)) == ([], [])


def test_a_newer_version_changes_the_open_pull_request() -> None:
    cloud = begun("1.36.3")
    (pull,) = proposed(cloud)
    assert pull.title == "Kubernetes 1.36.2 for development"
    cloud.azure.withheld.clear()
    asked_again(cloud)
    (same,) = proposed(cloud)
    assert (same.number, same.title) == (pull.number, "Kubernetes 1.36.3 for development")
    assert "'1.36.3'" in in_git(cloud, BRANCH)


def test_it_is_closed_when_git_has_the_version_without_it() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    push(cloud, tree("1.36.3"))
    cloud.run()
    assert proposed(cloud) == []
    (closed,) = proposed(cloud, "closed")
    assert closed.number == pull.number
    assert cloud.ports.git_host.tip(BRANCH) is None
    assert stored(cloud).declined == ()


def test_one_that_a_person_closes_is_not_opened_again_for_this_version_and_for_the_next_one_it_is() -> None:
    cloud = begun("1.36.3")
    (pull,) = proposed(cloud)
    cloud.ports.git_host.close_pull(pull.number)
    decided(cloud, pull.number, "closed")
    asked_again(cloud)
    assert proposed(cloud) == []
    assert "was closed without a merge" in stored(cloud).problem
    (shown,) = versions_view(cloud.ports)["channels"]
    assert (shown["proposed"], shown["pullRequest"]) == ("", "")
    cloud.azure.withheld.clear()
    asked_again(cloud)
    (following,) = proposed(cloud)
    assert following.title == "Kubernetes 1.36.3 for development"
    assert following.number != pull.number


def test_a_version_that_a_commit_took_back_is_not_proposed_again() -> None:
    cloud = begun()
    merge(cloud, proposed(cloud)[0].number)
    push(cloud, tree("1.35.7"))
    cloud.run()
    asked_again(cloud)
    assert proposed(cloud) == []
    assert "a commit took it back" in stored(cloud).problem


def test_a_channel_without_a_newer_version_proposes_nothing() -> None:
    cloud = begun("1.36.2", "1.36.3", "1.37.0", "1.37.1")
    assert (proposed(cloud), stored(cloud).problem) == ([], "")


def test_a_list_that_is_empty_leaves_the_pull_request_open_and_says_so() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    withheld = ("1.33.11", "1.33.13", "1.34.9", "1.34.10", "1.35.6", "1.35.7", "1.36.2", "1.36.3")
    cloud.azure.withheld.update((*withheld, "1.37.0", "1.37.1"))
    asked_again(cloud)
    assert [found.number for found in proposed(cloud)] == [pull.number]
    assert "eastus offers is unknown" in stored(cloud).problem
    cloud.azure.withheld.clear()
    asked_again(cloud)
    assert (proposed(cloud)[0].number, stored(cloud).problem) == (pull.number, "")


def test_the_pull_request_of_an_environment_that_leaves_its_channel_is_closed_and_declines_nothing() -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    found = tree()
    del found[FILE]
    found["environments/development.yaml"] = environment("development", "1.35.7")
    push(cloud, found)
    cloud.run()
    assert proposed(cloud) == []
    (closed,) = proposed(cloud, "closed")
    assert closed.number == pull.number
    (comment,) = cloud.repository.pulls.comments(pull.number)
    assert "the environment follows no channel itself" in comment.body
    assert cloud.ports.git_host.tip(BRANCH) is None
    assert (stored(cloud).declined, stored(cloud).values) == ((), ())


@pytest.mark.parametrize("path", ["clusters/a1/cluster.yaml", "environments/development.yaml"])
def test_while_a_file_is_invalid_the_pull_request_stays_open(path: str) -> None:
    cloud = begun()
    (pull,) = proposed(cloud)
    valid = tree()
    push(cloud, valid | {path: valid[path] + b"  unknownField: 1\n"})
    cloud.run()
    assert [found.number for found in proposed(cloud)] == [pull.number]
    push(cloud, valid)
    cloud.run()
    assert [found.number for found in proposed(cloud)] == [pull.number]


def test_a_git_host_that_is_down_for_a_moment_delays_a_proposal_by_minutes_and_not_to_the_next_sweep() -> (
    None
):
    cloud = begun("1.36.2", "1.36.3", "1.37.0", "1.37.1")
    cloud.azure.withheld.clear()
    cloud.clock.advance(7 * 3600)
    host = cloud.ports.git_host

    def tip(_: str) -> str | None:
        raise Unavailable("nobody answers")

    around(cloud, "git_host", tip=tip)
    send(PromoteRequest(), cloud.ports)
    cloud.run(seconds=1)
    assert proposed(cloud) == []
    cloud.with_ports(lambda ports: replace(ports, git_host=host))
    cloud.run(seconds=900)
    assert [found.title for found in proposed(cloud)] == ["Kubernetes 1.36.3 for development"]


def test_while_azure_says_nothing_the_pull_request_stays_and_the_reason_is_shown_until_it_does() -> None:
    cloud = begun("1.36.3")
    (pull,) = proposed(cloud)

    azure = cloud.ports.azure
    falls_silent(cloud, ListVersions)
    asked_again(cloud)
    assert "which versions of Kubernetes eastus offers is unknown" in stored(cloud).problem
    assert [found.number for found in proposed(cloud)] == [pull.number]
    cloud.with_ports(lambda ports: replace(ports, azure=azure))
    asked_again(cloud)
    assert stored(cloud).problem == ""
    assert [found.title for found in proposed(cloud)] == ["Kubernetes 1.36.2 for development"]


def test_what_a_cluster_sets_in_its_own_file_is_not_promoted_as_what_the_channel_has() -> None:
    cloud, found = begun(), tree()
    for name in TEST:
        path = f"clusters/{name}/cluster.yaml"
        found[path] = found[path].replace(b"spec:\n", b"spec:\n  kubernetesVersion: '1.36.3'\n")
    push(cloud, found)
    cloud.run()
    assert running(cloud, TEST) == {"1.36.3"}
    assert pulls(cloud) == []
    assert "'1.35.7'" in in_git(cloud, file="environments/production.versions.yaml")


def test_another_channel_of_the_target_is_not_overruled_by_a_promotion() -> None:
    cloud = MemoryCloud()
    found = tree()
    path = "environments/production.yaml"
    found[path] = found[path].replace(b"channel: stable", b"channel: patch")
    push(cloud, found)
    cloud.run()
    assert [pull.title for pull in proposed(cloud)] == ["Kubernetes 1.36.3 for development"]
    merge(cloud, proposed(cloud)[0].number)
    assert pulls(cloud) == []
    assert running(cloud, PROD) == {"1.35.7"}


def test_a_version_that_one_region_lacks_is_proposed_once_that_region_offers_it() -> None:
    cloud, found = MemoryCloud(), tree()
    path = "clusters/a2/cluster.yaml"
    found[path] = found[path].replace(b"location: eastus", b"location: westeurope")
    azure = cloud.ports.azure

    def behind(call: ListVersions) -> Any:
        offered = azure.call(call)["values"]
        if call.target.location == "westeurope":
            late = ("1.36.3", "1.37.0", "1.37.1")
            patches = [{p: ways for p, ways in v["patchVersions"].items() if p not in late} for v in offered]
            offered = [{**v, "patchVersions": own} for v, own in zip(offered, patches, strict=True) if own]
        return {"values": offered}

    on_azure(cloud, ListVersions, behind)
    push(cloud, found)
    cloud.run()
    assert (proposed(cloud), stored(cloud).problem) == ([], "")
    cloud.with_ports(lambda ports: replace(ports, azure=azure))
    asked_again(cloud)
    assert [pull.title for pull in proposed(cloud)] == ["Kubernetes 1.36.3 for development"]
