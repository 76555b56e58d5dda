"""The contract of a git host, on every implementation: its pull requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.github.world_host import WorldHost
from shared.cluster.failures.errors import Dependency, InvalidManifest, Unauthorized
from shared.ports import Annotation, Capability, Check, Comment, GitHost
from tests.support.git_hosts import Case

PAGE = "https://fleet.example/pulls/1"
MARKER = "<!-- roadstead:plan -->"


def test_a_pull_request_shows_its_head_and_the_commit_that_a_merge_would_make(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    case.git.commit({"b.yaml": b"3\n"})
    head = case.git.commit({"c.yaml": b"4\n"}, branch="next")
    found = case.host.pull(number)
    assert found is not None
    assert (found.head, found.base, found.fork, found.open) == (head, "main", False, True)
    assert found.merge
    tree = {entry.path: case.git.blob(entry.sha) for entry in case.git.tree(found.merge)}
    assert tree == {"a.yaml": b"2\n", "b.yaml": b"3\n", "c.yaml": b"4\n"}
    assert case.host.pull(99) is None


def test_a_conflict_differs_from_a_merge_that_was_not_tried_yet(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    case.git.commit({"a.yaml": b"3\n"})
    number = case.git.pulls.open("Two", "next", "main", fork=True).number
    case.git.pulls.slow_merges = 1
    first, second = case.host.pull(number), case.host.pull(number)
    assert first is not None
    assert second is not None
    assert (first.merge, second.merge) == (None, "")
    assert first.fork


@pytest.mark.lives
def test_only_the_open_pull_requests_into_the_branch_are_listed_newest_first(case: Case) -> None:
    for name in ("one", "two", "three"):
        case.branch(name, {f"{name}.yaml": b""})
        case.git.pulls.open(name, name, "main")
    case.git.pulls.open("other", "one", "two")
    case.git.pulls.change(2, state="closed")
    assert [pull.number for pull in case.host.open_pulls("main")] == [3, 1]
    closed = case.host.pull(2)
    assert closed is not None
    assert not closed.open


@pytest.mark.lives
def test_our_comment_is_recognised_and_edited(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    assert case.host.comment(number, MARKER) is None
    case.git.pulls.write_comment(number, "mallory", f"{MARKER}\nmine now")
    case.host.write_comment(number, "no marker", over=None)
    for text in range(120):  # more than one page of comments by others
        case.git.pulls.write_comment(number, "someone", f"{text} {MARKER}")
    case.host.write_comment(number, f"{MARKER}\nfirst", over=None)
    found = case.host.comment(number, MARKER)
    assert found is not None
    assert found.body == f"{MARKER}\nfirst"
    case.host.write_comment(number, f"{MARKER}\nsecond", over=found)
    again = case.host.comment(number, MARKER)
    assert again == Comment(found.id, f"{MARKER}\nsecond")
    assert len(case.git.pulls.comments(number)) == 123


def test_a_comment_that_the_host_would_refuse_is_refused(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    with pytest.raises(InvalidManifest, match="too long"):
        case.host.write_comment(number, "x" * (case.rules.note + 1), over=None)
    case.host.write_comment(number, "x" * 65_536, over=None)
    with pytest.raises(Dependency):
        case.host.write_comment(99, "x", over=None)


def test_the_newest_check_run_of_a_name_says_how_far_it_is(case: Case) -> None:
    commit = case.git.commit({"a.yaml": b"2\n"})
    assert case.host.conclusions(commit, "e2e tests") == []
    case.git.pulls.write_check(commit, {"name": "e2e tests", "conclusion": "success"})
    case.git.pulls.write_check(commit, {"name": "another", "conclusion": "failure"})
    assert case.host.conclusions(commit, "e2e tests") == ["success"]
    case.git.pulls.write_check(commit, {"name": "e2e tests", "status": "in_progress"})
    assert case.host.conclusions(commit, "e2e tests") == [""]


def test_the_newest_check_run_counts_of_each_app_that_has_one_of_the_name(case: Case) -> None:
    commit, name = case.git.commit({"a.yaml": b"2\n"}), "e2e tests"
    case.git.pulls.write_check(commit, {"name": name, "conclusion": "failure"}, suite=1)
    case.git.pulls.write_check(commit, {"name": name, "conclusion": "success"}, suite=2)
    assert case.host.conclusions(commit, name) == ["success"], "the workflow ran again for the same commit"
    case.git.pulls.write_check(commit, {"name": name, "conclusion": "failure"}, app=2, suite=3)
    assert {*case.host.conclusions(commit, name)} == {"success", "failure"}


@pytest.mark.parametrize(
    ("lacking", "call"),
    [
        (Capability.CHECKS, lambda host: host.conclusions("c" * 40, "test")),
        (Capability.WRITTEN_CHECKS, lambda host: host.write_check("c" * 40, Check("a", "neutral", "b", "c"))),
        (Capability.REVIEWS, lambda host: host.reviews(1)),
        (Capability.PROPOSALS, lambda host: host.tip("main")),
        (Capability.ISSUES, lambda host: host.find_issue("mark")),
        (Capability.FORMS, lambda host: host.newest_issues()),
    ],
)
def test_a_host_refuses_what_it_lacks_and_says_what_is_lost(
    lacking: Capability, call: Callable[[GitHost], object]
) -> None:
    host = WorldHost(MemoryRepository(), app=True)
    host.lacks = frozenset({lacking})
    with pytest.raises(Unauthorized, match=lacking):
        call(host)


def test_a_check_run_is_written_by_an_app_alone_with_all_its_annotations(case: Case) -> None:
    commit = case.branch("next", {"a.yaml": b"2\n"})
    notes = tuple(Annotation("a.yaml", line, f"line {line}") for line in range(1, 121))
    check = Check("roadstead/plan", "failure", "120 problems", "# Plan", notes, PAGE)
    assert (Capability.WRITTEN_CHECKS in case.host.capabilities) == case.app
    if not case.app:
        with pytest.raises(Unauthorized):
            case.host.write_check(commit, check)
        return
    case.host.write_check(commit, check)
    (run,) = case.git.pulls.checks(commit)
    assert (run.name, run.status, run.conclusion) == ("roadstead/plan", "completed", "failure")
    assert run.details_url == PAGE
    assert run.output == {"title": "120 problems", "summary": "# Plan"}
    assert [a["start_line"] for a in run.annotations] == list(range(1, 121))
    assert run.annotations[0]["annotation_level"] == "failure"
