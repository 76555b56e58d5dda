"""What lies between the commits that an environment's clusters pull and the head of the branch."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views import commits
from shared.app.api.views.commits import log_view
from tests.support.function_calls import call
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around
from tests.support.staged_fleets import ALL_AT_ONCE, PROD, staged


def fleet() -> tuple[MemoryCloud, str]:
    """Return a fleet whose production pulls its first commit, and that commit."""
    cloud = MemoryCloud()
    first = push(cloud, staged(ALL_AT_ONCE))
    pulls(cloud, dict.fromkeys(PROD, first))
    return cloud, first


def pulls(cloud: MemoryCloud, commits: dict[str, str]) -> None:
    """Push that clusters pull these commits."""
    files = staged(ALL_AT_ONCE)
    for name, commit in commits.items():
        path = f"clusters/{name}/cluster.yaml"
        files[path] += f"  flux: {{commit: {commit}}}\n".encode()
    push(cloud, files)
    cloud.run()


def change(cloud: MemoryCloud, path: str, message: str, author: str = "ann@example.com") -> str:
    return cloud.repository.commit({path: message.encode()}, message=message, author=author)


def view(cloud: MemoryCloud, environment: str = "production") -> Any:
    return log_view(environment, cloud.ports)


def test_the_commits_after_what_clusters_pull_are_listed_with_their_files() -> None:
    cloud, first = fleet()
    second = cloud.repository.head("main")
    third = change(cloud, "platform/ingress.yaml", "Add the ingress\n\nFor the shop.")
    found = view(cloud)
    assert (found["environment"], found["branch"], found["head"]) == ("production", "main", third)
    assert found["pulled"] == [{"commit": first, "behind": 2, "clusterCount": 4, "clusters": [*PROD]}]
    assert [(commit["commit"], commit["title"]) for commit in found["commits"]] == [
        (third, "Add the ingress"),
        (second, ""),
    ]
    assert found["commits"][0]["files"] == ["platform/ingress.yaml"]
    assert found["commits"][0]["author"] == "ann@example.com"
    assert found["commits"][1]["fileCount"] == 4


def test_of_a_pull_request_the_merge_alone_is_listed_with_all_that_it_brings() -> None:
    cloud, _ = fleet()
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    for name in ("a", "b"):
        git.commit({f"platform/{name}.yaml": b"1"}, branch="topic", message=name)
    git.commit({"README.md": b"1"}, message="Meanwhile")
    merged = git.pulls.merged_into_base(git.pulls.open("Add a and b", "topic", "main").number)
    titles = [(commit["title"], commit["files"]) for commit in view(cloud)["commits"]][:2]
    assert titles == [
        ("Add a and b (#1)", ["platform/a.yaml", "platform/b.yaml"]),
        ("Meanwhile", ["README.md"]),
    ]
    assert view(cloud)["head"] == merged.merge_commit


def test_clusters_with_several_commits_have_a_distance_each_and_the_longest_is_listed() -> None:
    cloud, first = fleet()
    second = change(cloud, "platform/a.yaml", "a")
    pulls(cloud, {"b1": first, "b2": second, "b3": second, "b4": second})
    found = view(cloud)
    distances = {place["commit"]: (place["behind"], place["clusters"]) for place in found["pulled"]}
    assert distances == {second: (1, ["b2", "b3", "b4"]), first: (3, ["b1"])}
    assert len(found["commits"]) == 3


def test_a_commit_that_the_branch_lost_and_one_that_is_far_behind_have_no_distance() -> None:
    cloud, first = fleet()
    git = cloud.repository
    lost = git.commit({"a.yaml": b"lost"}, branch="other")
    pulls(cloud, {"b1": lost, "b2": first, "b3": first, "b4": "f" * 40})
    for number in range(commits.AFTER):
        git.commit({"README.md": str(number).encode()})
    assert {place["behind"] for place in view(cloud)["pulled"]} == {None}
    assert view(cloud)["commits"] == []


def test_the_calls_to_git_are_bounded_whatever_clusters_and_commits_there_are() -> None:
    cloud, first = fleet()
    for number in range(2 * commits.SHOWN):
        change(cloud, f"platform/{number}.yaml", "more")
    calls = list[str]()
    host = cloud.ports.git_host

    def counted(name: str) -> Any:
        def ask(*given: Any) -> Any:
            calls.append(name)
            return getattr(host, name)(*given)

        return ask

    names = ("read_head", "changes_since", "files_between", "tree", "changes", "is_descendant")
    around(cloud, "git_host", **{name: counted(name) for name in names})
    found = view(cloud)
    assert (len(found["commits"]), found["more"]) == (commits.SHOWN, commits.SHOWN + 1)
    assert calls == ["read_head", "changes_since", *["files_between"] * commits.SHOWN]
    assert found["pulled"][0]["commit"] == first


def test_clusters_that_follow_a_branch_by_themselves_are_named_so() -> None:
    cloud, _ = fleet()
    found = view(cloud, "development")
    assert [(place["commit"], place["behind"], place["clusterCount"]) for place in found["pulled"]] == [
        ("", None, 3)
    ]
    assert found["commits"] == []


def test_an_environment_without_a_cluster_is_not_found() -> None:
    cloud, _ = fleet()
    for name in ("staging", ""):
        status, body = call(cloud.ports, "log", query={"environment": name})
        assert status == 404
        assert "no cluster is in an environment" in body["error"]
    status, body = call(cloud.ports, "log", query={"environment": "production"})
    assert (status, body["environment"]) == (200, "production")
