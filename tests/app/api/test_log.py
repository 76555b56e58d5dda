"""What lies between the commits that an environment's clusters have and the head of the branch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import SHOWN, log_view
from shared.app.planner.pins import AFTER
from shared.cluster.divergence.trial import Trial
from shared.frozen import replace
from shared.plan.plan import Action, Item
from tests.support import fleet_files
from tests.support.function_calls import call
from tests.support.pipeline_runs import cloud_with, push, record_of
from tests.support.replaced_ports import around
from tests.support.soaking_stages import SOAKED, numbered, wait
from tests.support.staged_fleets import DEV, PROD, ready_fleet, staged, tags
from tests.support.waiting_fleets import APPROVED, LATE, NAMESPACE, change, fleet, note

pytestmark = pytest.mark.lives


def view(cloud: MemoryCloud, environment: str = "production") -> Any:
    return log_view(environment, cloud.ports)


def places(cloud: MemoryCloud, environment: str = "production") -> dict[str, tuple[int | None, list[str]]]:
    return {
        place["commit"]: (place["behind"], place["clusters"]) for place in view(cloud, environment)["pulled"]
    }


def test_the_commits_that_wait_for_production_are_listed_with_their_files() -> None:
    cloud = fleet()
    first = cloud.repository.head("main")
    second = change(cloud, "ingress", "Add the ingress\n\nFor the shop.")
    third = change(cloud, "metrics", "Add metrics")
    assert places(cloud) == {first: (2, [*PROD])}
    assert places(cloud, "development") == {third: (0, [*DEV])}
    found = view(cloud)
    assert (found["environment"], found["branch"], found["head"]) == ("production", "main", third)
    listed = [(commit["commit"], commit["title"], commit["files"]) for commit in found["commits"]]
    assert listed == [
        (third, "Add metrics", ["platform/metrics.yaml"]),
        (second, "Add the ingress", ["platform/ingress.yaml"]),
    ]
    assert found["commits"][0]["author"] == "operator@example.invalid"
    assert view(cloud, "development")["commits"] == []


def test_a_commit_that_changes_nothing_of_an_environment_leaves_it_at_the_head() -> None:
    cloud = fleet()
    files = cloud.repository.files(cloud.repository.head("main"))
    readme = note(cloud, {**files, "README.md": b"1"})
    assert places(cloud) == {readme: (0, [*PROD])}
    tagged = note(cloud, {**files, **staged(APPROVED, tags("new"), DEV)})
    assert places(cloud) == {tagged: (0, [*PROD])}
    assert places(cloud, "development") == {tagged: (0, [*DEV])}


def test_a_commit_that_breaks_development_is_not_verified_there() -> None:
    cloud = fleet()
    (before,) = places(cloud)
    files = {**cloud.repository.files(before), "platform/late.yaml": LATE}
    broken = note(cloud, files)
    assert places(cloud) == {before: (1, [*PROD])}
    (found,) = view(cloud, "development")["pulled"]
    assert (found["commit"], found["clusterCount"], found["unverifiedCount"]) == (broken, 3, 3)
    (found,) = view(cloud)["pulled"]
    assert found["unverifiedCount"] == 0


def test_a_cluster_whose_stage_has_an_earlier_commit_has_not_the_newest_one() -> None:
    cloud = fleet()
    (first,) = places(cloud)
    newest = change(cloud, "ingress")
    known = cloud.state.plan(newest)
    assert known is not None
    items = tuple(
        Item(item.cluster, Action.UNCHANGED, 1, item.uid, lags=True) if item.cluster in PROD else item
        for item in known.plan.items
    )
    around(cloud, "state", plan=lambda _: replace(known, plan=replace(known.plan, items=items)))
    assert places(cloud) == {first: (1, [*PROD])}


def test_a_cluster_that_tries_something_has_what_it_tries() -> None:
    cloud = fleet()
    (first,) = places(cloud)
    known = record_of(cloud, "a1")
    trial = Trial(7, "d" * 40, "files", "ann", cloud.clock(), cloud.clock() + timedelta(hours=1))
    cloud.state.save(replace(known, divergence=replace(known.divergence, trial=trial)))
    assert places(cloud, "development") == {first: (0, [*DEV[1:]]), "d" * 40: (None, ["a1"])}


def test_a_commit_that_is_refused_is_one_that_no_cluster_has() -> None:
    cloud = fleet()
    (before,) = places(cloud)
    change(cloud, "Apps_Bad")
    assert places(cloud) == {before: (1, [*PROD])}
    assert places(cloud, "development") == {before: (1, [*DEV])}


def test_of_a_pull_request_the_merge_alone_is_listed_with_all_that_it_brings() -> None:
    cloud = fleet()
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    for name in ("a", "b"):
        git.commit({f"platform/{name}.yaml": (NAMESPACE % name).encode()}, branch="topic", message=name)
    git.commit({"README.md": b"1"}, message="Meanwhile")
    merged = git.pulls.merged_into_base(git.pulls.open("Add a and b", "topic", "main").number)
    found = view(cloud)
    assert [(commit["title"], commit["files"]) for commit in found["commits"]] == [
        ("Add a and b (#1)", ["platform/a.yaml", "platform/b.yaml"]),
        ("Meanwhile", ["README.md"]),
    ]
    assert found["head"] == merged.merge_commit


def test_clusters_with_several_commits_have_a_distance_each_and_the_longest_is_listed() -> None:
    cloud = fleet()
    first = cloud.repository.head("main")
    second = change(cloud, "a")
    files = dict(cloud.repository.files(second))
    for name, commit in (("b1", first), ("b2", second)):  # what a manifest names is no pin, and stays
        files[f"clusters/{name}/cluster.yaml"] += f"  flux: {{commit: {commit}}}\n".encode()
    fleet_yaml = fleet_files.all_at_once(staged())["fleet.yaml"]
    third = note(cloud, {**files, "fleet.yaml": fleet_yaml})
    assert places(cloud) == {third: (0, ["b3", "b4"]), second: (1, ["b2"]), first: (2, ["b1"])}
    assert len(view(cloud)["commits"]) == 2


def test_a_commit_that_the_branch_lost_and_one_that_is_far_behind_have_no_distance() -> None:
    cloud = fleet()
    git = cloud.repository
    lost, first = git.commit({"a.yaml": b"lost"}, branch="other"), git.head("main")
    files = dict(git.files(first)) | {"fleet.yaml": fleet_files.all_at_once(staged())["fleet.yaml"]}
    for name, commit in zip(PROD, (lost, first, first, "f" * 40), strict=True):
        files[f"clusters/{name}/cluster.yaml"] += f"  flux: {{commit: {commit}}}\n".encode()
    note(cloud, files)
    for number in range(AFTER):
        git.commit({"README.md": str(number).encode()})
    assert {place["behind"] for place in view(cloud)["pulled"]} == {None}
    assert view(cloud)["commits"] == []


def test_the_calls_to_git_are_bounded_whatever_clusters_and_commits_there_are() -> None:
    cloud = fleet()
    for number in range(2 * SHOWN):
        cloud.repository.commit({f"platform/{number}.yaml": b""})
    calls, host = list[str](), cloud.ports.git_host

    def counted(name: str) -> Any:
        def ask(*given: Any) -> Any:
            calls.append(name)
            return getattr(host, name)(*given)

        return ask

    names = ("read_head", "changes_since", "files_between", "tree", "changes", "is_descendant")
    around(cloud, "git_host", **{name: counted(name) for name in names})
    found = view(cloud)
    assert (len(found["commits"]), found["more"]) == (SHOWN, SHOWN)
    assert calls == ["read_head", "changes_since", *["files_between"] * SHOWN]


def test_clusters_whose_flux_follows_a_branch_by_itself_have_no_commit() -> None:
    cloud = cloud_with(fleet_files.following_branch(staged()))
    assert places(cloud) == {"": (None, [*PROD])}
    assert view(cloud)["commits"] == []


def test_a_cluster_whose_stage_is_to_have_an_earlier_commit_is_not_at_the_head() -> None:
    cloud = ready_fleet(SOAKED)
    first = push(cloud, numbered(1))
    wait(cloud, 10)
    push(cloud, numbered(2))
    wait(cloud, 5)
    assert places(cloud, "development") == {first: (1, [*DEV])}


def test_a_commit_of_another_repository_is_none_of_the_branch() -> None:
    cloud = fleet()
    files = {**cloud.repository.files(cloud.repository.head("main"))}
    own = f"  flux: {{repository: https://github.com/contoso/platform, commit: {'f' * 40}}}\n"
    files["clusters/b1/cluster.yaml"] += own.encode()
    head = note(cloud, files | {"fleet.yaml": fleet_files.all_at_once(staged())["fleet.yaml"]})
    assert places(cloud) == {head: (0, ["b2", "b3", "b4"]), "": (None, ["b1"])}


def test_an_environment_without_a_cluster_is_not_found() -> None:
    cloud = fleet()
    for name in ("staging", ""):
        status, body = call(cloud.ports, "log", query={"environment": name})
        assert status == 404
        assert "no cluster is in an environment" in body["error"]
    status, body = call(cloud.ports, "log", query={"environment": "production"})
    assert (status, body["environment"]) == (200, "production")
