"""Pull requests, in memory: planned read-only, commented on, marked as out of date when their base moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import pull_plan_view
from shared.app.pull_requests import pull_requests
from shared.app.pull_requests.comment import OUTDATED
from shared.app.recovery.housekeeping import KEPT
from shared.cluster.failures.errors import Terminal, Throttled
from shared.ports import Comment
from tests.support import fleet_files
from tests.support.proposals import Repo
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def test_a_pull_request_that_renames_a_folder_says_so(repo: Repo) -> None:
    (body,) = repo.comments(repo.propose(fleet_files.fleet("one", "three")))
    assert "it looks like a rename of two to three" in body
    assert "needs approval" in body


def test_a_pull_request_shows_its_plan_and_changes_nothing(repo: Repo) -> None:
    records, writes = repo.cloud.state.clusters(), list(repo.cloud.azure.accepted)
    files = fleet_files.fleet("one", "three")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    files["clusters/three/cluster.yaml"] = fleet_files.cluster("three", count=2)
    number = repo.propose(files)
    (body,) = repo.comments(number)
    assert "**1 create, 1 update, 1 delete**." in body
    assert "| `nodePools[system].count` | `1` | `3` | in place | `clusters/one/cluster.yaml:10` |" in body
    head = repo.cloud.repository.head("topic")
    assert repo.status(head) == ("roadstead/plan", "success", "1 create, 1 update, 1 delete")
    assert (repo.cloud.state.clusters(), repo.cloud.azure.accepted) == (records, writes)


def test_a_second_push_edits_the_comment_and_a_repeated_request_writes_nothing(repo: Repo) -> None:
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    head = repo.cloud.repository.push(fleet_files.fleet("one", "two"), branch="topic")
    repo.tell(number, head)
    (body,) = repo.comments(number)
    assert "**2 unchanged**." in body
    before = repo.cloud.repository.pulls.comments(number)
    repo.tell(number, head, "reopened")
    assert repo.cloud.repository.pulls.comments(number) == before


def test_commits_that_only_the_base_has_are_no_changes(repo: Repo) -> None:
    git = repo.cloud.repository
    git.reset(git.head("main"), "topic")
    repo.push(fleet_files.fleet("one", "two", "new-on-main"))
    head = git.push(fleet_files.fleet("one", "two", "three"), branch="topic")
    number = git.pulls.open("A change", "topic", "main").number
    repo.tell(number, head, "opened")
    (body,) = repo.comments(number)
    assert "**1 create, 3 unchanged**" in body
    assert "new-on-main" not in body


def test_a_missing_test_merge_is_awaited_and_conflicts_are_reported(repo: Repo) -> None:
    git = repo.cloud.repository
    git.pulls.slow_merges = 2
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    (body,) = repo.comments(number)
    assert "[!NOTE]" not in body
    git.pulls.slow_merges = 9
    repo.tell(number, git.push(fleet_files.fleet("one", "two"), branch="topic"))
    assert "There is no test merge yet" in repo.comments(number)[0]
    git.pulls.slow_merges = 0
    main = fleet_files.fleet("one", "two")
    main["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=5)
    repo.push(main)
    main["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=7)
    repo.tell(number, git.push(main, branch="topic"))
    assert "The branch conflicts with its base" in repo.comments(number)[0]


def test_a_pull_request_from_a_fork_is_validated_and_shows_nothing_of_the_fleet(repo: Repo) -> None:
    files = fleet_files.fleet("one", "three")
    files["clusters/three/cluster.yaml"] = files["clusters/three/cluster.yaml"].replace(
        b"location", b"loaction"
    )
    number = repo.propose(files, fork=True)
    (body,) = repo.comments(number)
    assert "This pull request comes from a fork" in body
    assert "did you mean location?" in body
    assert "two" not in body
    assert "delete" not in body
    _, state, description = repo.status(repo.cloud.repository.head("topic"))
    assert (state, description) == ("failure", "1 problem in the manifests")


def test_open_pull_requests_are_marked_as_out_of_date_when_their_base_moves(repo: Repo) -> None:
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    repo.push(fleet_files.fleet("one", "two", "four"))
    (body,) = repo.comments(number)
    assert body.split("\n", 1)[1].startswith(OUTDATED)
    repo.push(fleet_files.fleet("one", "two", "four", "five"))
    assert repo.comments(number) == [body]
    repo.tell(number, repo.cloud.repository.head("topic"), "reopened")
    (fresh,) = repo.comments(number)
    assert OUTDATED not in fresh


def test_a_comment_of_an_earlier_head_is_written_again_when_the_base_moves(repo: Repo) -> None:
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    (before,) = repo.cloud.repository.pulls.comments(number)
    repo.tell(number, repo.cloud.repository.push(fleet_files.fleet("one"), branch="topic"))
    (newer,) = repo.cloud.repository.pulls.comments(number)
    repo.cloud.ports.git_host.write_comment(number, before.body, over=Comment(newer.id, newer.body))
    repo.push(fleet_files.fleet("one", "two", "four"))
    (body,) = repo.comments(number)
    assert f" head={repo.cloud.repository.head('topic')} " in body
    assert OUTDATED not in body


def test_a_github_app_writes_a_check_run_with_each_problem_at_its_line(repo: Repo) -> None:
    repo.cloud.git_host.is_app = True
    files = fleet_files.fleet("one", "two")
    files["clusters/two/cluster.yaml"] = files["clusters/two/cluster.yaml"].replace(b"location", b"loaction")
    repo.propose(files)
    (check,) = repo.cloud.repository.pulls.checks(repo.cloud.repository.head("topic"))
    assert (check.name, check.conclusion) == ("roadstead/plan", "failure")
    (note,) = check.annotations
    assert (note["path"], note["start_line"]) == ("clusters/two/cluster.yaml", 7)
    assert not repo.cloud.repository.statuses.latest(check.sha)


def test_a_pull_request_that_was_closed_or_has_another_base_is_left_alone(repo: Repo) -> None:
    git = repo.cloud.repository
    git.reset(git.head("main"), "topic")
    head = git.push(fleet_files.fleet("one"), branch="topic")
    number = git.pulls.open("A change", "topic", "main").number
    git.pulls.change(number, state="closed")
    repo.tell(number, head)
    repo.tell(99, head, "opened")
    assert repo.comments(number) == []


def test_a_pull_request_with_too_many_new_manifests_is_refused_before_they_are_read(repo: Repo) -> None:
    names = [f"cluster-{number}" for number in range(pull_requests.NEW_MANIFESTS + 1)]
    files = {
        path: content + b"# \n" * number
        for number, (path, content) in enumerate(fleet_files.fleet(*names).items())
    }
    number = repo.propose(files)
    (body,) = repo.comments(number)
    assert "at most 500 are read for a pull request; split it" in body
    assert "cluster-1" not in body


def fails_once(cloud: MemoryCloud, error: Exception) -> list[Exception]:
    """Let the next comment fail; return what was raised so far."""
    write, raised = cloud.ports.git_host.write_comment, list[Exception]()

    def once(number: int, body: str, *, over: Comment | None) -> None:
        if not raised:
            raised.append(error)
            raise error
        write(number, body, over=over)

    around(cloud, "git_host", write_comment=once)
    return raised


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Throttled("slow", retry_after=7), "**1 create, 2 unchanged**"),
        (Terminal("no"), "could not be planned: "),
    ],
)
def test_retryable_errors_are_retried_and_others_reported(repo: Repo, error: Exception, text: str) -> None:
    fails_once(repo.cloud, error)
    number = repo.propose(fleet_files.fleet("one", "two", "three"))
    (body,) = repo.comments(number)
    assert text in body


def test_errors_of_pull_requests_never_prevent_the_plan_of_a_push(repo: Repo) -> None:
    repo.propose(fleet_files.fleet("one", "two", "three"))
    raised = fails_once(repo.cloud, Terminal("no"))
    repo.push(fleet_files.fleet("one", "two", "four"))
    assert len(raised) == 1
    assert {record.name for record in repo.cloud.state.clusters()} == {"one", "two", "four"}


def test_the_last_plan_of_a_pull_request_is_a_page_and_ends_a_month_later(repo: Repo) -> None:
    git = repo.cloud.repository
    number = repo.propose(fleet_files.fleet("one", "three"))
    view = pull_plan_view(number, repo.cloud.ports)
    assert view is not None
    assert (view["head"], view["base"], view["outdated"]) == (git.head("topic"), git.head("main"), False)
    assert {item["cluster"]: item["action"] for item in view["items"]}["two"] == "on-hold"
    assert view["needsApproval"] == ["two"]
    git.push(fleet_files.fleet("one", "two", "four"))
    repo.cloud.state.save_fleet(replace(repo.cloud.state.fleet(), commit=git.head("main")))
    outdated = pull_plan_view(number, repo.cloud.ports)
    assert outdated is not None
    assert outdated["outdated"]
    kind, age = KEPT["plans of pull requests"]
    assert repo.cloud.state.prune(kind, repo.cloud.clock() - age) == 0
    assert repo.cloud.state.prune(kind, repo.cloud.clock() + timedelta(seconds=1)) == 1
    assert pull_plan_view(number, repo.cloud.ports) is None
