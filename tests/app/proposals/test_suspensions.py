"""One pull request suspends the clusters that somebody selected, and its merge does it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.suspensions import suspend
from shared.app.http_result import HttpResult
from shared.app.intake.accept import accept
from shared.cluster.failures.errors import Unauthorized, Unavailable
from shared.cluster.record_parts import Phase
from shared.ports import NewCommit
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with, phases, push, pushed
from tests.support.replaced_ports import around, fails_once
from tests.support.rollbacks import open_pulls

pytestmark = pytest.mark.lives

NAMES = ("one", "two")


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(fleet_files.fleet(*NAMES, "three"))


def ask(cloud: MemoryCloud, *names: str, owner: str = "", reason: str = "an audit") -> HttpResult:
    return suspend(names or NAMES, timedelta(hours=4), owner, "ada", cloud.ports, reason)


def test_one_pull_request_suspends_all_once_it_is_merged_and_nothing_before(cloud: MemoryCloud) -> None:
    answer = ask(cloud)
    assert answer.status == 201, answer.body
    (pull,) = open_pulls(cloud)
    assert str(answer.body["pullRequest"]).endswith(f"/pull/{pull.number}")
    assert pull.title.startswith("Suspend one, two until 2026-")
    assert "Responsible: ada. Reason: an audit" in pull.body
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    merged = cloud.repository.pulls.merged_into_base(pull.number)
    accept(pushed(cloud, merged.merge_commit), cloud.ports)
    cloud.run(600)
    assert phases(cloud) == {"one": Phase.SUSPENDED, "two": Phase.SUSPENDED, "three": Phase.READY}
    cloud.run(5 * 3600)
    assert set(phases(cloud).values()) == {Phase.READY}, "it ends by itself"


def test_the_manifests_have_the_suspension_and_nothing_else_changes(cloud: MemoryCloud) -> None:
    ask(cloud, owner="team-shop")
    (pull,) = open_pulls(cloud)
    before, after = (
        {entry.path: cloud.repository.blob(entry.sha).decode() for entry in cloud.repository.tree(commit)}
        for commit in (cloud.repository.head("main"), cloud.repository.head(pull.head))
    )
    changed = {path for path in after if after[path] != before[path]}
    assert changed == {f"clusters/{name}/cluster.yaml" for name in NAMES}
    for path in changed:
        lines = set(after[path].splitlines()) - set(before[path].splitlines())
        assert len(lines) <= 4, lines
        assert "team-shop" in after[path]
        assert not set(before[path].splitlines()) - set(after[path].splitlines())


def test_who_asks_twice_gets_the_pull_request_that_is_open(cloud: MemoryCloud) -> None:
    first = ask(cloud)
    assert ask(cloud, *reversed(NAMES)).body["pullRequest"] == first.body["pullRequest"]
    assert len(open_pulls(cloud)) == 1


@pytest.mark.parametrize("call", ["add_commit", "move_branch", "open_pull"])
@pytest.mark.parametrize("before", [True, False])
def test_who_asks_again_after_a_crash_gets_one_pull_request(
    cloud: MemoryCloud, call: str, before: bool
) -> None:
    fails_once(cloud, "git_host", call, after=not before)
    assert ask(cloud).status == 502
    assert ask(cloud).status == 201
    assert len(open_pulls(cloud)) == 1


def test_a_commit_says_nothing_that_a_person_wrote(cloud: MemoryCloud) -> None:
    written, add = list[NewCommit](), cloud.ports.git_host.add_commit

    def noted(commit: NewCommit) -> str:
        written.append(commit)
        return add(commit)

    around(cloud, "git_host", add_commit=noted)
    assert ask(cloud, reason="Fixes #1\n\nCo-authored-by: x <x@example.com>").status == 201
    assert [commit.message for commit in written] == [pull.title for pull in open_pulls(cloud)]


def test_a_cluster_that_cannot_be_suspended_keeps_all_from_it_and_is_named(cloud: MemoryCloud) -> None:
    unknown = ask(cloud, "one", "tow")
    assert (unknown.status, "no manifest of tow; did you mean two?" in unknown.body["error"]) == (404, True)
    broken = fleet_files.fleet(*NAMES, "three")
    broken["clusters/two/cluster.yaml"] = fleet_files.cluster("two", extra="  colour: red\n")
    push(cloud, broken)
    cloud.run()
    invalid = ask(cloud)
    assert (invalid.status, "the manifest of two would be invalid" in invalid.body["error"]) == (409, True)
    push(cloud, broken | {"clusters/two/cluster.yaml": b"name: \xff"})
    cloud.run()
    strange = ask(cloud)
    assert (strange.status, "cluster.yaml is not UTF-8 text" in strange.body["error"]) == (409, True)
    assert not open_pulls(cloud)


def test_a_branch_that_somebody_else_has_moved_is_left_alone(cloud: MemoryCloud) -> None:
    ask(cloud)
    (pull,) = open_pulls(cloud)
    cloud.repository.push({"clusters/one/cluster.yaml": b"another: one"}, branch=pull.head)
    refused = ask(cloud)
    assert (refused.status, "has other files" in refused.body["error"]) == (409, True)


@pytest.mark.parametrize("error", [Unauthorized("no right to write"), Unavailable("no answer")])
def test_what_the_host_refuses_is_said(cloud: MemoryCloud, error: Exception) -> None:
    def refuses(*_: object) -> str:
        raise error

    around(cloud, "git_host", add_commit=refuses)
    answer = ask(cloud)
    assert (answer.status, str(error) in answer.body["error"]) == (502, True)
