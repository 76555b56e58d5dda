"""A repository that cannot be read is reported by the timer, without a push, for as long as it lasts."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.common.front_door import ScriptedFault
from localcloud.github.wire.github_server import GitHubServer
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.github import GitHubHost, github_auth
from shared.app.api.views.clusters import fleet_view
from shared.app.recovery import missed_work
from shared.cluster.failures.errors import Unavailable
from shared.cluster.failures.fleet_problem import FailedPart, FleetProblem
from tests.support import fleet_files
from tests.support.pipeline_runs import ready
from tests.support.replaced_ports import around, frozen

pytestmark = pytest.mark.lives

NAME = "example/fleet"
BLOCKED: dict[str, Any] = {
    "message": "Repository access blocked",
    "block": {"reason": "dmca", "html_url": "https://x"},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as running:
        running.create_repository(NAME).commit(fleet_files.fleet("one"))
        yield running


@pytest.fixture
def cloud(server: GitHubServer) -> Iterator[MemoryCloud]:
    """A fleet whose repository is on the local GitHub, through the adapter of production."""
    cloud = MemoryCloud()
    adapter = GitHubHost(NAME, github_auth(token="local"), base_url=server.url)
    cloud.with_ports(lambda ports: replace(ports, git_host=adapter))
    missed_work.plan_missed_head(cloud.ports)
    assert cloud.step()
    yield cloud
    adapter.close()


def answers(status: int, body: dict[str, Any] | None = None, **headers: str) -> ScriptedFault:
    return ScriptedFault("^GET .*/git/ref", status, body or {}, headers, times=None)


@pytest.mark.parametrize(
    ("fault", "problem", "action"),
    [
        (
            answers(401, {"message": "Bad credentials"}),
            "Unauthenticated: example/fleet: Bad",
            "renews the token or the key",
        ),
        (
            answers(403, {"message": "not accessible"}),
            "Unauthorized: example/fleet: not acc",
            "owner of the repos",
        ),
        (answers(403, {}, **{"Retry-After": "9"}), "Throttled", "the same token"),
        (
            answers(403, {}, **{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9", "Date": "soon"}),
            "Throttled",
            "the same token",
        ),
        (
            answers(404),
            "Dependency: example/fleet: no branch main, or the cred",
            "set the repository and its branch",
        ),
        (
            answers(451, BLOCKED),
            "Withheld: example/fleet: Repository access blocked (dmca, https",
            "asks the git host",
        ),
        (
            answers(403, BLOCKED),
            "Withheld: example/fleet: Repository access blocked (dmca, https",
            "asks the git host",
        ),
        (
            answers(301, Location="/repositories/7"),
            "Withheld: example/fleet: GitHub answered with a redirect",
            "present",
        ),
        (answers(500), "Unavailable: example/fleet: GitHub gave no reason", "status page of the git host"),
        (
            answers(200, {"ref": 7}),
            "Unavailable: example/fleet: GitHub's response cannot be parsed",
            "status page",
        ),
        (
            answers(200, {"object": {"sha": "x" * 40}}),
            "Unavailable: example/fleet: GitHub's response cannot be parsed",
            "status page",
        ),
        (
            answers(200, {"object": []}),
            "Unavailable: example/fleet: GitHub's response cannot be parsed",
            "status page",
        ),
    ],
)
def test_each_answer_is_reported_with_who_must_act_and_cleared_after_it(
    server: GitHubServer,
    cloud: MemoryCloud,
    fault: ScriptedFault,
    problem: str,
    action: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.door.faults = [fault]
    with caplog.at_level(logging.ERROR):
        assert not missed_work.plan_missed_head(cloud.ports)
    shown = fleet_view(cloud.ports)
    assert shown["problem"].startswith(f"the repository could not be read: {problem}")
    assert action in shown["fleetSuggestedAction"]
    assert shown["problem"] in caplog.text
    server.door.faults = []
    cloud.clock.advance(300)
    assert missed_work.plan_missed_head(cloud.ports)
    while cloud.step():
        pass
    assert fleet_view(cloud.ports)["problem"] == ""


def test_before_the_first_push_nothing_is_called_broken_and_the_first_commit_is_planned(
    tmp_path: Path,
) -> None:
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as running:
        repository, cloud = running.create_repository(NAME), MemoryCloud()
        adapter = GitHubHost(NAME, github_auth(token="local"), base_url=running.url)
        cloud.with_ports(lambda ports: replace(ports, git_host=adapter))
        assert not missed_work.plan_missed_head(cloud.ports)
        shown = fleet_view(cloud.ports)
        assert shown["problem"].startswith(
            "no commit was planned yet, and none was found: Dependency: example/fleet: no branch main"
        )
        assert shown["fleetSuggestedAction"].startswith("Push the first commit to the branch. If it has one")
        repository.commit(fleet_files.fleet("one"))
        assert missed_work.plan_missed_head(cloud.ports)
        while cloud.step():
            pass
        assert fleet_view(cloud.ports)["problem"] == ""
        adapter.close()


@pytest.mark.parametrize("body", [[], {"truncated": False}, {"truncated": False, "tree": [{"type": "blob"}]}])
def test_a_tree_that_is_none_is_reported(server: GitHubServer, cloud: MemoryCloud, body: Any) -> None:
    server.repository(NAME).commit(fleet_files.fleet("one", "two"))
    server.door.faults = [ScriptedFault("^GET .*/git/trees/", 200, body, times=None)]
    assert missed_work.plan_missed_head(cloud.ports)
    cloud.run(120, until=lambda: False)
    assert "GitHub's response cannot be parsed" in fleet_view(cloud.ports)["problem"]


def test_a_deleted_branch_is_reported(server: GitHubServer, cloud: MemoryCloud, tmp_path: Path) -> None:
    git, folder = server.repository(NAME), tmp_path / f"{NAME}.git"
    subprocess.run(["git", "-C", str(folder), "update-ref", "-d", "refs/heads/main"], check=True)
    assert not missed_work.plan_missed_head(cloud.ports)
    assert "no branch main" in fleet_view(cloud.ports)["problem"]
    git.commit(fleet_files.fleet("one"))
    assert missed_work.plan_missed_head(cloud.ports)


def test_the_timer_writes_a_lasting_problem_once_and_keeps_a_lost_approval() -> None:
    cloud = ready("one")
    lost = FleetProblem("no answer", FailedPart.REQUEST, approve_again="c" * 40)
    cloud.state.save_fleet(replace(cloud.state.fleet(), problem=lost))

    def away(_: str) -> None:
        raise Unavailable("GitHub answered 500")

    around(cloud, "git_host", read_head=away)
    missed_work.plan_missed_head(cloud.ports)
    etag = cloud.state.fleet().etag
    missed_work.plan_missed_head(cloud.ports)
    assert cloud.state.fleet().etag == etag
    assert str(cloud.state.fleet().problem).endswith("GitHub answered 500; approve cccccccc again")


def test_a_planner_that_read_the_branch_meanwhile_knows_better_than_the_timer() -> None:
    cloud = ready("one")

    def away(_: str) -> None:
        raise Unavailable("GitHub answered 500")

    around(cloud, "git_host", read_head=away)

    def meanwhile() -> None:
        cloud.state.save_fleet(cloud.state.fleet())

    frozen(cloud, "state", "save_fleet", meanwhile)
    missed_work.plan_missed_head(cloud.ports)
    assert cloud.state.fleet().problem is None


@pytest.mark.parametrize("failed", [FailedPart.READ, FailedPart.REQUEST])
def test_a_head_is_planned_again_after_requests_to_plan_it_have_failed(failed: FailedPart) -> None:
    """One of them may have been about what changed since, such as a pin that nobody knew."""
    cloud = ready("one")
    before = cloud.state.fleet()
    plan = cloud.state.plan(before.commit)
    cloud.clock.advance(600)
    cloud.state.save_fleet(replace(before, problem=FleetProblem("503", failed, "Unavailable")))
    missed_work.plan_missed_head(cloud.ports)
    cloud.run(60)
    after = cloud.state.plan(before.commit)
    assert plan is not None
    assert after is not None
    assert after.at > plan.at
    assert cloud.state.fleet().problem is None
