"""The contract of a git host, on every implementation: its reviews."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from localcloud.common.front_door import ScriptedFault
from localcloud.git.world.people import CONTRIBUTOR, OPERATOR, PEOPLE, REVIEWER
from localcloud.github.wire.github_auth import GitHubApp
from localcloud.github.wire.github_server import GitHubServer
from shared.adapters.github import GitHubHost, github_auth
from shared.adapters.github import reviews as adapter_reviews
from shared.cluster.failures.errors import Dependency, Unauthorized, Unavailable
from shared.ports import MergedPull, PullAuthors, Review, ReviewState
from tests.support.git_hosts import Case
from tests.support.github_app import APP, KEY

pytestmark = pytest.mark.lives


def reviewed(case: Case, number: int, login: str, event: str, body: str = "") -> int:
    record = case.git.pulls.get(number)
    assert record is not None
    return case.git.pulls.reviews.submit(record, PEOPLE[login], event, body).id


@pytest.mark.parametrize("squash", [False, True])
def test_a_commit_shows_the_pull_request_that_was_merged_as_it(case: Case, squash: bool) -> None:
    head = case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    assert case.host.merged_as(head) == []
    merged = case.git.pulls.merged_into_base(number, squash=squash)
    assert merged.merged_at is not None
    commit, at = merged.merge_commit, merged.merged_at.replace(microsecond=0)
    expected = MergedPull(number, head, "main", case.git.id, commit, OPERATOR.id, at)
    assert case.host.merged_as(commit) == [expected]
    assert case.host.merged_as(head) == [expected]
    later = case.git.commit({"c.yaml": b"3\n"})
    assert (case.git.head("main"), case.host.merged_as(later)) == (later, [])


def test_a_merged_pull_request_shows_the_labels_that_it_has(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    merged = case.git.pulls.merged_into_base(number)
    case.git.pulls.change(number, labels=("hotfix", "area: fleet"))
    (found,) = case.host.merged_as(merged.merge_commit)
    assert found.labels == {"hotfix", "area: fleet"}


def test_the_reviews_of_a_pull_request_are_listed_from_the_oldest_with_what_was_seen(case: Case) -> None:
    first = case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    ids = [reviewed(case, number, "reviewer", "APPROVE", "Good.")]
    second = case.git.commit({"b.yaml": b"2\n"}, branch="next")
    ids.append(reviewed(case, number, "contributor", "REQUEST_CHANGES", "No."))
    case.git.pulls.reviews.dismiss(ids[1])
    case.git.pulls.merged_into_base(number)
    ids.append(reviewed(case, number, "reviewer", "COMMENT", "Late."))
    found = case.host.reviews(number)
    assert found is not None
    rules = case.rules
    expected = [
        (REVIEWER.id, rules.login.format("reviewer"), ReviewState.APPROVED, first, "Good."),
        (CONTRIBUTOR.id, rules.login.format("contributor"), ReviewState.DISMISSED, second, "No."),
        (REVIEWER.id, rules.login.format("reviewer"), ReviewState.COMMENTED, second, "Late."),
    ]
    if rules.texts:
        assert [review.id for review in found] == ids
    else:
        expected = [(*row[:4], "") for row in expected if row[2] is not ReviewState.COMMENTED]
    expected = [row for row in expected if rules.withdrawn or row[2] is not ReviewState.DISMISSED]
    assert [(r.reviewer, r.login, r.state, r.commit, r.text) for r in found] == expected
    pages = [f"{rules.pull_page}{number}{rules.review_page.format(review.id)}" for review in found]
    assert all(review.at.tzinfo for review in found)
    assert all(review.url.endswith(page) for review, page in zip(found, pages, strict=True))


def test_who_is_against_approves_no_more_until_they_do_again(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"})
    number = case.git.pulls.open("Two", "next", "main").number

    def last() -> ReviewState:
        found = case.host.reviews(number)
        assert found
        return found[-1].state

    reviewed(case, number, "reviewer", "APPROVE")
    assert last() is ReviewState.APPROVED
    reviewed(case, number, "reviewer", "REQUEST_CHANGES", "No.")
    assert last() is ReviewState.CHANGES_REQUESTED
    reviewed(case, number, "reviewer", "APPROVE")
    assert last() is ReviewState.APPROVED


def test_long_lists_are_read_to_their_end(case: Case) -> None:
    case.branch("next", {f"new/{name:03}.yaml": b"" for name in range(120)})
    number = case.git.pulls.open("Many", "next", "main").number
    for _ in range(130):
        reviewed(case, number, "contributor", "COMMENT", "x")
    last = reviewed(case, number, "reviewer", "APPROVE")
    found = case.host.reviews(number)
    assert found is not None
    assert (found[-1].reviewer, found[-1].state) == (REVIEWER.id, ReviewState.APPROVED)
    assert len(found) == (131 if case.rules.texts else 1), "a comment is no vote"
    assert found[-1].id == last or not case.rules.texts
    assert case.host.removed_files(number) == frozenset()


def test_removed_and_renamed_files_are_those_of_the_pull_request_alone(case: Case) -> None:
    case.git.commit({"c.yaml": b"some lines\nof a file\nthat stays\n", "d.yaml": b"4\n"})
    files: dict[str, bytes | None] = {"a.yaml": None, "b.yaml": b"2\n", "c.yaml": None}
    case.branch("next", files | {"moved.yaml": b"some lines\nof a file\nthat stays\n"})
    number = case.git.pulls.open("Two", "next", "main").number
    case.git.commit({"d.yaml": None})
    assert case.host.removed_files(number) == frozenset({"a.yaml", "c.yaml"})
    case.git.pulls.merged_into_base(number)
    assert case.host.removed_files(number) == frozenset({"a.yaml", "c.yaml"})


def test_the_authors_of_a_pull_request_are_accounts_and_some_have_none(case: Case) -> None:
    case.branch("next", {"a.yaml": b"2\n"}, author="Contributor@example.com")
    number = case.git.pulls.open("Two", "next", "main").number
    known = frozenset({CONTRIBUTOR.id, OPERATOR.id})
    assert case.host.pull_authors(number) == PullAuthors(known, complete=True)
    case.git.commit({"b.yaml": b"2\n"}, branch="next", author="somebody@example.com")
    assert case.host.pull_authors(number) == PullAuthors(known, complete=False)


def test_a_co_author_is_an_account_behind_an_address_of_the_host_and_none_behind_another(case: Case) -> None:
    hidden = f"More\n\nCo-authored-by: R <{case.rules.hidden}>"
    case.branch("next", {"a.yaml": b"2\n"})
    case.git.commit({"b.yaml": b"2\n"}, branch="next", message=hidden)
    number = case.git.pulls.open("Two", "next", "main").number
    known = frozenset({OPERATOR.id, REVIEWER.id})
    assert case.host.pull_authors(number) == PullAuthors(known, complete=True)
    case.git.commit(
        {"b.yaml": b"3\n"}, branch="next", message="Yet more\n\nCo-authored-by: R <r@example.com>"
    )
    assert case.host.pull_authors(number) == PullAuthors(known, complete=False)


def test_an_address_is_a_persons_hides_one_or_is_nobodys(case: Case) -> None:
    assert {address: case.host.addressee(address) for address in case.rules.addresses} == case.rules.addresses


def test_the_members_of_a_team_are_accounts(case: Case) -> None:
    assert case.host.team_members("acme/approvers") == frozenset({REVIEWER.id})
    case.teams.members["acme/two"] = ("operator", "contributor")
    assert case.host.team_members("Acme/Two") == frozenset({OPERATOR.id, CONTRIBUTOR.id})
    with pytest.raises(Dependency, match="no team acme/none"):
        case.host.team_members("acme/none")


@contextmanager
def served(folder: Path, *, app: GitHubApp | None = None) -> Iterator[tuple[GitHubServer, GitHubHost]]:
    """Serve a repository; the adapter is the App, or has a token without one."""
    credentials = {"app_id": APP.id, "private_key": KEY, "installation_id": str(APP.installation)}
    auth = github_auth(**credentials) if app else github_auth(token="local")
    with GitHubServer(folder, token="local", webhook_secret="s", app=app) as server:
        server.create_repository("acme/fleet").commit({"a.yaml": b"1\n"})
        adapter = GitHubHost("acme/fleet", auth, base_url=server.url)
        yield server, adapter
        adapter.close()


def test_an_app_without_the_permission_hears_which_one(tmp_path: Path) -> None:
    app = replace(APP, reads_members=False)
    with served(tmp_path, app=app) as (_, adapter), pytest.raises(Unauthorized) as refused:
        adapter.team_members("acme/approvers")
    assert str(refused.value) == (
        "acme/fleet: Resource not accessible by integration; give the GitHub App the organization permission "
        "Members: read, and accept it for acme"
    )


def test_a_token_that_does_not_see_the_team_hears_which_permission_it_may_lack(tmp_path: Path) -> None:
    with served(tmp_path) as (server, adapter):
        with pytest.raises(Dependency, match="the permission Members: read of acme") as refused:
            adapter.team_members("acme/none")
        assert "no team acme/none, or the credential cannot read it" in str(refused.value)
        server.door.faults = [ScriptedFault("GET .*/members", status=502)]
        with pytest.raises(Unavailable):
            adapter.team_members("acme/approvers")


def test_a_list_beyond_the_limit_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(adapter_reviews, "PAGES", 1)
    with served(tmp_path) as (server, adapter):
        git = server.repository("acme/fleet")
        git.reset(git.head("main"), "next")
        git.commit({f"{name}.yaml": b"" for name in range(100)}, branch="next")
        number = git.pulls.open("Many", "next", "main").number
        assert adapter.removed_files(number) is None
        assert adapter.reviews(number) == list[Review]()
