"""The contract of a git host, on every implementation: the statuses of its commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports import CommitStatus
from shared.ports.git_host import Capability
from tests.support.git_hosts import WITH_A_TOKEN, Case, git_host_case, having

UNKNOWN = "1234567890" * 4


@pytest.fixture(params=having(Capability.STATUSES, as_app=False))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    """A git host that has statuses."""
    with git_host_case(request.param, tmp_path) as served:
        yield served


def test_the_newest_status_of_a_context_counts_and_its_history_stays(case: Case) -> None:
    commit = case.git.commit({"a.yaml": b"1"})
    plan, other = (
        CommitStatus("pending", "3 clusters", "roadstead/plan", "https://example.com/plan"),
        CommitStatus("error", "", "roadstead/other"),
    )
    done = CommitStatus("success", "d" * case.rules.description, "roadstead/plan")
    for status in (plan, other, done):
        case.host.set_status(commit, status)
    shown = [case.rules.shown(status) for status in (done, other, plan)]
    assert [r.status for r in case.git.statuses.latest(commit)] == shown[:2]
    assert [r.status for r in case.git.statuses.history(commit)] == shown


def test_a_status_that_is_pending_may_be_written_again_and_again(case: Case) -> None:
    commit = case.git.commit({"a.yaml": b"1"})
    for text in ("1 of 3", "2 of 3", "3 of 3", "3 of 3"):
        case.host.set_status(commit, CommitStatus("pending", text, "roadstead/c"))
    (shown,) = (record.status for record in case.git.statuses.latest(commit))
    assert shown.state in ("pending", "running")
    assert shown.description == ("3 of 3" if case.rules.keeps_statuses else "2 of 3")
    for state in ("success", "pending", "failure", "failure"):
        case.host.set_status(commit, CommitStatus(state, state, "roadstead/c"))
    (shown,) = (record.status for record in case.git.statuses.latest(commit))
    assert shown == case.rules.shown(CommitStatus("failure", "failure", "roadstead/c"))


@pytest.mark.parametrize("length", [255, 256])
def test_a_status_with_an_address_that_the_host_does_not_take_comes_without_it(
    case: Case, length: int
) -> None:
    commit, target = case.git.commit({"a.yaml": b"1"}), "https://example.com/".ljust(length, "x")
    case.host.set_status(commit, CommitStatus("success", "done", "roadstead/c", target))
    (shown,) = (record.status for record in case.git.statuses.latest(commit))
    assert shown.target_url == (target if length <= case.rules.target else "")


@pytest.mark.parametrize(
    ("state", "more", "target", "reason"),
    [
        ("success", 1, "", "description is too long"),
        ("done", 0, "", "state"),
        ("success", 0, "ftp://example.com", "target_url"),
    ],
)
def test_a_status_that_the_host_would_refuse_is_refused_with_its_reason(
    case: Case, state: str, more: int, target: str, reason: str
) -> None:
    status = CommitStatus(state, "d" * (case.rules.description + more), "c", target)
    commit = case.git.commit({"a.yaml": b"1"})
    with pytest.raises(InvalidManifest, match=reason):
        case.host.set_status(commit, status)
    with pytest.raises((InvalidManifest, Dependency), match=f"No commit found for SHA|{UNKNOWN}"):
        case.host.set_status(UNKNOWN, CommitStatus("success", "", "c"))
    assert not case.git.statuses.history(commit)


@pytest.mark.parametrize("case", WITH_A_TOKEN, indirect=True)
def test_a_commit_holds_no_more_than_a_thousand_statuses_of_one_context(case: Case) -> None:
    commit = case.git.commit({"a.yaml": b"1"})
    if not case.rules.keeps_statuses:
        for number in range(3):
            case.host.set_status(commit, CommitStatus("pending", f"{number}", "c"))
        assert {record.id for record in case.git.statuses.history(commit)} == {1}, (
            "it is changed, and never a second"
        )
        return
    for _ in range(1000):
        case.git.statuses.add(commit, CommitStatus("pending", "", "c"))
    with pytest.raises(InvalidManifest, match="maximum number of statuses"):
        case.host.set_status(commit, CommitStatus("success", "", "c"))
    with pytest.raises(InvalidManifest, match="maximum number of statuses"):
        case.host.set_status(commit, CommitStatus("success", "", "C"))
    case.host.set_status(commit, CommitStatus("success", "", "another"))
