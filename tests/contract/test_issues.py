"""The contract of a git host, on every implementation: its issues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports.git_host import Capability, Issue
from tests.support.git_hosts import ON_GITHUB, Case, git_host_case, having

pytestmark = pytest.mark.lives

MARKER = "<!-- roadstead 0123456789abcdef -->"


@pytest.fixture(params=having(Capability.ISSUES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    """A git host that has issues, whose repository has a first commit."""
    with git_host_case(request.param, tmp_path) as served:
        served.git.commit({"a.yaml": b"1\n", "b.yaml": b"1\n"})
        yield served


def test_an_issue_is_opened_commented_and_closed(case: Case) -> None:
    number = case.host.open_issue("One cluster failed", f"{MARKER}\ntext")
    case.host.comment_issue(number, "still so")
    case.host.close_issue(number)
    case.host.close_issue(number)
    (issue,) = case.git.pulls.issues.listed(state="all")
    assert (issue.title, issue.body) == ("One cluster failed", f"{MARKER}\ntext")
    assert (issue.state, issue.state_reason, issue.comments) == ("closed", "completed", ("still so",))


def test_an_open_issue_of_ours_is_found_by_its_marker_and_no_other_one(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    case.git.pulls.open("Two", "next", "main")
    assert case.host.find_issue(MARKER) is None
    case.git.pulls.issues.create("mine now", f"{MARKER}\n", "mallory")
    first = case.host.open_issue("One", f"{MARKER}\ntext")
    case.host.open_issue("Two", "no marker")
    case.git.pulls.issues.create("of nobody any more", f"{MARKER}\n", "")
    assert case.host.find_issue(MARKER) == first
    newest = case.host.open_issue("Three", f"{MARKER}\ntext")
    assert case.host.find_issue(MARKER) == newest
    case.host.close_issue(newest)
    assert case.host.find_issue(MARKER) == first


@pytest.mark.parametrize("case", ON_GITHUB, indirect=True)
def test_what_people_have_opened_is_listed_with_whether_its_text_was_edited(case: Case) -> None:
    issues = case.git.pulls.issues
    case.branch("next", {"a.yaml": b"2\n"})
    case.git.pulls.open("Two", "next", "main")
    first = issues.create("A cluster, please", "text", "contributor")
    edited = issues.create("Another one", "mine", "reviewer")
    closed = issues.create("An old one", "text", "contributor")
    issues.create("by an app", "text", "robot[bot]")
    issues.create("of nobody any more", "text", "")
    issues.change(closed.number, state="closed", state_reason="completed")
    issues.edit(edited.number, "theirs")
    at = first.created_at.replace(microsecond=0)
    found = [replace(issue, at=issue.at.replace(microsecond=0)) for issue in case.host.newest_issues()]
    assert found == [
        Issue(edited.number, "reviewer", 3, "theirs", edited.created_at.replace(microsecond=0), edited=True),
        Issue(first.number, "contributor", 4, "text", at),
    ]


def test_an_issue_that_does_not_exist_any_more_is_a_dependency(case: Case) -> None:
    number = case.host.open_issue("One", "text")
    case.git.pulls.issues.delete(number)
    with pytest.raises(Dependency):
        case.host.comment_issue(number, "x")
    with pytest.raises(Dependency):
        case.host.close_issue(number)
    with pytest.raises(Dependency):
        case.host.comment_issue(99, "x")


def test_a_text_that_is_too_long_is_refused(case: Case) -> None:
    with pytest.raises(InvalidManifest):
        case.host.open_issue("One", "x" * (case.rules.text + 1))
    with pytest.raises(InvalidManifest):
        case.host.open_issue("x" * (case.rules.title + 1), "text")
    number = case.host.open_issue("x" * 255, "y" * 65_536)
    with pytest.raises(InvalidManifest):
        case.host.comment_issue(number, "x" * (case.rules.note + 1))


@pytest.mark.parametrize("case", ON_GITHUB, indirect=True)
def test_our_comment_on_an_issue_is_found_by_its_marker_and_nobody_elses(case: Case) -> None:
    number = case.host.open_issue("A cluster, please", "text")
    case.git.pulls.issues.comment(number, f"{MARKER}\ntheirs", "mallory")
    assert case.host.comment(number, MARKER) is None
    case.host.comment_issue(number, f"{MARKER}\nours")
    found = case.host.comment(number, MARKER)
    assert found is not None
    assert found.body == f"{MARKER}\nours"
