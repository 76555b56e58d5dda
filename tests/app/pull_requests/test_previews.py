"""Pull requests have a queue, sessions and limits of their own, so that none delays a push or another one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange, Push
from shared.app.planner import planner
from shared.cluster.failures.errors import Terminal, Unavailable
from shared.cluster.queues.messages import (
    CLOCKS_DIFFER,
    OutdatedRequest,
    PlanRequest,
    PreviewRequest,
    QueueRequest,
    message_of,
)
from shared.ports import FleetConfig, PlanLimits, TreeEntry
from tests.support import fleet_files
from tests.support.proposals import Repo, fleet_of
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def opened(repo: Repo, branch: str, *, fork: bool = False) -> tuple[int, str]:
    """Open a pull request that is not announced yet."""
    git = repo.cloud.repository
    git.reset(git.head("main"), branch)
    head = git.push(fleet_files.fleet("one", "two", "three"), branch=branch)
    return git.pulls.open("A change", branch, "main", fork=fork).number, head


def test_every_pull_request_is_a_session_of_a_queue_of_its_own(repo: Repo) -> None:
    for branch in ("a", "b"):
        number, head = opened(repo, branch)
        repo.announce(number, head, "opened")
    broker = repo.cloud.broker
    assert broker.counts("plans").active == 0
    repo.cloud.clock.advance(PreviewRequest.WINDOW + CLOCKS_DIFFER.total_seconds())
    locks = [broker.accept_session("previews") for _ in range(3)]
    assert [lock and lock.session for lock in locks] == ["pull-1", "pull-2", None]


def test_a_pull_request_that_is_planned_forever_delays_no_push_and_no_other_pull_request(repo: Repo) -> None:
    stuck, head = opened(repo, "stuck", fork=True)
    repo.announce(stuck, head, "opened")
    repo.cloud.clock.advance(PreviewRequest.WINDOW + CLOCKS_DIFFER.total_seconds())
    assert repo.cloud.broker.accept_session("previews") is not None  # somebody plans it, and does not end
    number, head = opened(repo, "topic")
    repo.announce(number, head, "opened")
    repo.cloud.clock.advance(PreviewRequest.WINDOW + CLOCKS_DIFFER.total_seconds())
    commit = repo.cloud.repository.push(fleet_files.fleet("one", "two", "four"))
    accept(Push("d1", f"push-{commit}", commit, repo.cloud.clock() + timedelta(minutes=1)), repo.cloud.ports)
    while repo.cloud.step():  # at once: no lock ends
        pass
    assert repo.cloud.state.fleet().commit == commit
    assert len(repo.comments(number)) == 1
    assert repo.comments(stuck) == []


def test_a_flood_of_pushes_to_a_pull_request_is_one_plan_every_ten_seconds(repo: Repo) -> None:
    number, head = opened(repo, "topic")
    looked_up: list[int] = []
    pull = repo.cloud.ports.git_host.pull

    def counted(wanted: int) -> Any:
        looked_up.append(wanted)
        return pull(wanted)

    around(repo.cloud, "git_host", pull=counted)
    for second in range(60):
        for part in range(5):
            accept(
                PullChange(f"{second}.{part}", f"{second}.{part}", number, head, "synchronize"),
                repo.cloud.ports,
            )
        repo.cloud.clock.advance(1)
    repo.cloud.run()
    assert 6 <= len(looked_up) <= 7


def test_a_push_that_a_late_clock_counts_with_the_events_before_it_is_planned(repo: Repo) -> None:
    number, head = opened(repo, "topic")
    clock = repo.cloud.clock
    clock.advance(PreviewRequest.WINDOW - clock().timestamp() % PreviewRequest.WINDOW - 1)
    repo.announce(number, head, "opened")
    repo.cloud.run(2, until=lambda: False)
    head = repo.cloud.repository.push(fleet_files.fleet("one", "two", "four"), branch="topic")
    late = replace(repo.cloud.ports, clock=lambda: clock() - timedelta(seconds=3))
    accept(PullChange("d2", "late", number, head, "synchronize"), late)
    repo.cloud.run()
    assert f" head={head} " in repo.comments(number)[0]


def slow(repo: Repo, seconds: float) -> None:
    """Let every read of a tree take so long."""
    tree = repo.cloud.repository.tree

    def late(commit: str) -> Any:
        repo.cloud.clock.advance(seconds)
        return tree(commit)

    around(repo.cloud, "git_host", tree=late)


@pytest.mark.parametrize(
    ("fork", "seconds", "text"),
    [
        (True, 9, "its manifests were validated"),
        (True, 11, "it takes longer than 20 seconds; split it, or ask a maintainer to push it"),
        (False, 11, "**1 create, 2 unchanged**"),
        (False, 61, "it takes longer than 120 seconds; split it"),
    ],
)
def test_a_pull_request_is_not_planned_longer_than_its_time(
    repo: Repo, fork: bool, seconds: float, text: str
) -> None:
    slow(repo, seconds)
    number = repo.propose(fleet_files.fleet("one", "two", "three"), fork=fork)
    (body,) = repo.comments(number)
    assert text in body
    _, state, description = repo.status(repo.cloud.repository.head("topic"))
    assert (state == "failure") == ("longer" in text)
    assert ("longer" in description) == ("longer" in text)


@pytest.mark.parametrize(("part", "fork"), [(2, False), (20, True)])
def test_a_pull_request_may_take_a_part_of_the_work_of_a_plan(part: int, fork: bool) -> None:
    limit = 500
    config = FleetConfig("example", "example/fleet", limits=PlanLimits(plan_work=limit * part))
    repo = fleet_of(MemoryCloud(config=config))
    files = fleet_files.fleet("one", "two", "three")
    files["clusters/three/cluster.yaml"] += b"# more\n" * 1000
    number = repo.propose(files, fork=fork)
    (body,) = repo.comments(number)
    assert f"its manifests take more than {limit} units of work; split it" in body
    assert repo.status(repo.cloud.repository.head("topic"))[1] == "failure"


def test_a_pull_request_that_adds_large_files_is_refused_before_they_are_read(repo: Repo) -> None:
    tree = repo.cloud.repository.tree

    def large(commit: str) -> Any:
        added = (
            [TreeEntry("video", "f" * 40, 40 << 20)] if commit != repo.cloud.repository.head("main") else []
        )
        return [*tree(commit), *added]

    around(repo.cloud, "git_host", tree=large)
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    (body,) = repo.comments(number)
    assert "its new files have 40 MiB, and at most 32 MiB are read" in body


@pytest.mark.parametrize(("wrong", "conclusion"), [(b"", "neutral"), (b"a: [", "failure")])
def test_the_check_of_a_fork_is_neutral_or_a_failure(repo: Repo, wrong: bytes, conclusion: str) -> None:
    repo.cloud.git_host.is_app = True
    files = fleet_files.fleet("one", "two", "three")
    files["clusters/three/cluster.yaml"] += wrong
    repo.propose(files, fork=True)
    (check,) = repo.cloud.repository.pulls.checks(repo.cloud.repository.head("topic"))
    assert check.conclusion == conclusion


def test_an_error_that_lasts_is_reported_on_the_pull_request(repo: Repo) -> None:
    def refused(_: str) -> Any:
        raise Unavailable("no answer")

    around(repo.cloud, "git_host", tree=refused)
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    (body,) = repo.comments(number)
    assert "could not be planned: Unavailable" in body
    assert repo.status(repo.cloud.repository.head("topic"))[1:] == (
        "failure",
        "could not be planned: Unavailable",
    )


def test_a_request_that_github_takes_no_report_for_becomes_a_dead_letter(repo: Repo) -> None:
    def refused(_: int) -> Any:
        raise Terminal("no")

    around(repo.cloud, "git_host", pull=refused)
    repo.propose(fleet_files.fleet("one", "two", "three"))
    (letter,) = repo.cloud.state.dead_letters(5)
    assert (letter.queue, letter.reason) == ("previews", "MaxDeliveryCountExceeded")
    assert PreviewRequest.model_validate_json(letter.body).pull == 1


def test_pull_requests_are_marked_as_out_of_date_apart_from_the_plan_of_the_push(repo: Repo) -> None:
    repo.propose(fleet_files.fleet("one", "two", "three"))
    commit = repo.cloud.repository.push(fleet_files.fleet("one", "two", "four"))
    at = repo.cloud.clock() + timedelta(minutes=1)
    planner.handle(PlanRequest(commit=commit, at=at), repo.cloud.ports)
    assert repo.cloud.state.fleet().commit == commit
    (waiting,) = repo.cloud.broker.peek("previews")
    assert message_of(waiting.draft.body, QueueRequest) == OutdatedRequest(commit=commit)
