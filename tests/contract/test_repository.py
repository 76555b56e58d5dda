"""The contract of a git host, on every implementation: its repository."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from localcloud.github.wire.github_server import GitHubServer
from shared.adapters.github import GitHubHost, github_auth, host
from shared.adapters.github.client import json_call
from shared.cluster.failures.errors import Dependency, InvalidManifest, Unavailable
from shared.ports.git_host import Capability
from tests.support.git_hosts import WITH_A_TOKEN, Case, git_host_case, having

pytestmark = pytest.mark.lives

UNKNOWN = "1234567890" * 4


@pytest.fixture(params=having(as_app=False))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    """A git host with an empty repository."""
    with git_host_case(request.param, tmp_path) as served:
        yield served


def test_head_follows_the_branch(case: Case) -> None:
    first = case.git.commit({"a.yaml": b"1"})
    assert case.host.read_head("main").commit == first
    second = case.git.commit({"a.yaml": b"2"})
    other = case.git.commit({"b.yaml": b"3"}, branch="team/next")
    heads = [case.host.read_head(branch) for branch in ("main", "team/next")]
    assert [read.commit for read in heads] == [second, other]
    assert all(abs((read.at - datetime.now(UTC)).total_seconds()) < 60 for read in heads)
    assert not any(read.at.microsecond for read in heads)


def test_the_hosts_own_log_says_when_a_branch_came_to_its_newest_commit(case: Case) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    first = case.git.commit({"a.yaml": b"1"})
    other = case.git.commit({"b.yaml": b"2"}, branch="team/next")
    newest = case.git.commit({"a.yaml": b"2"})
    asked = [("main", newest), ("team/next", other), ("main", first), ("main", other), ("gone", first)]
    found = [case.host.pushed_at(branch, commit) for branch, commit in asked]
    if case.host.name != "Azure DevOps":  # the only one with such a log
        assert found == [None] * len(asked)
        return
    assert all(at and before <= at <= datetime.now(UTC) for at in found[:2])
    assert found[2:] == [None] * 3
    case.git.reset(first)  # a push by force is a push of its own
    assert case.host.pushed_at("main", first)
    assert case.host.pushed_at("main", newest) is None


def test_the_id_of_the_repository_stays_and_comes_with_each_head(case: Case) -> None:
    case.git.commit({"a.yaml": b"1"})
    first = case.host.read_head("main").repository
    assert first > 0
    if Capability.PULLS in case.host.capabilities:  # git alone has no id: the first commit stands for one
        assert first == case.git.id
    case.git.commit({"a.yaml": b"2"})
    assert case.host.read_head("main").repository == first


def test_another_repository_is_read_with_the_same_credential(case: Case) -> None:
    case.git.commit({"a.yaml": b"1"})
    other = case.another("contoso/platform")
    first = other.commit({"b.yaml": b"2"})
    second = other.commit({"b.yaml": b"3"})
    host = case.host.other("contoso/platform")
    read = host.read_head("main")
    assert read.commit == second
    assert read.repository == host.read_head("main").repository != case.host.read_head("main").repository
    assert host.is_descendant(second, first)
    assert not host.is_descendant(first, second)
    assert [entry.path for entry in host.tree(second)] == ["b.yaml"]
    with pytest.raises(Dependency):
        case.host.other("contoso/unknown").read_head("main")


def test_a_later_repository_of_the_same_name_has_another_id(tmp_path: Path) -> None:
    with GitHubServer(tmp_path / "one", token="local", webhook_secret="s") as server:
        first = server.create_repository("acme/fleet").id
    with GitHubServer(tmp_path / "one", token="local", webhook_secret="s") as again:
        assert again.create_repository("acme/fleet").id == first
    with GitHubServer(tmp_path / "two", token="local", webhook_secret="s") as later:
        assert later.create_repository("acme/fleet").id != first


def test_the_newest_changes_of_a_path_and_who_made_them(case: Case) -> None:
    operator = "operator@example.invalid"

    def newest(commit: str, path: str, most: int = 1) -> list[tuple[str, str]]:
        changes = case.host.changes(commit, path, most)
        assert {change.committer for change in changes} <= {operator}
        return [(change.commit, change.author) for change in changes]

    added = case.git.commit(
        {"clusters/a/cluster.yaml": b"1", "clusters/ab/x": b"1"}, author="Ada@example.com"
    )
    removed = case.git.commit({"clusters/a/cluster.yaml": None}, author="grace@example.com")
    later = case.git.commit({"README.md": b"1", "clusters/ab/x": b"2"}, author="joan@example.com")
    by_ada, by_grace = (added, "ada@example.com"), (removed, "grace@example.com")
    assert newest(later, "clusters/a") == newest(removed, "clusters/a") == [by_grace]
    assert newest(removed, "clusters/ab") == [by_ada]
    assert newest(later, "clusters/a", 5) == [by_grace, by_ada]
    assert newest(later, "", 2) == [(later, "joan@example.com"), by_grace]
    assert newest(later, "clusters/never") == []
    with pytest.raises(Dependency):
        newest(UNKNOWN, "clusters/a")


def test_the_changes_since_a_commit_are_those_of_a_merged_branch_too(case: Case) -> None:
    first = case.git.commit({"a.yaml": b"1"}, author="ada@example.com")
    case.git.reset(first, "topic")
    topic = case.git.commit({"b.yaml": b"1"}, branch="topic", author="grace@example.com")
    later = case.git.commit({"a.yaml": b"2"}, author="joan@example.com")
    merge = case.git.merge(later, topic)
    assert merge is not None
    case.git.reset(merge, "main")

    def since(commit: str, earlier: str, most: int = 9) -> set[str] | None:
        found = case.host.changes_since(commit, earlier, most)
        return None if found is None else {change.commit for change in found}

    assert since(merge, first) == since(merge, first, 3) == {topic, later, merge}
    assert since(merge, first, 2) is None
    assert since(merge, later) == {topic, merge}
    assert since(first, merge) == since(first, first) == set()
    for unknown in ((merge, UNKNOWN), (UNKNOWN, merge)):
        with pytest.raises(Dependency):
            since(*unknown)


def test_the_first_parent_of_a_merge_is_what_it_changes(case: Case) -> None:
    first = case.git.commit({"a.yaml": b"1", "gone.yaml": b"1"})
    case.git.reset(first, "topic")
    topic = case.git.commit({"b/c.yaml": b"1", "gone.yaml": None}, branch="topic")
    later = case.git.commit({"a.yaml": b"2"})
    merge = case.git.merge(later, topic)
    assert merge is not None
    case.git.reset(merge, "main")
    found = case.host.changes_since(merge, first, 9) or ()
    parents = {change.commit: change.parents for change in found}
    assert parents == {merge: (later, topic), later: (first,), topic: (first,)}
    assert case.host.files_between(merge, later) == ["b/c.yaml", "gone.yaml"]
    assert case.host.files_between(merge, first) == ["a.yaml", "b/c.yaml", "gone.yaml"]
    assert case.host.files_between(first, first) == []
    for unknown in ((merge, UNKNOWN), (UNKNOWN, merge)):
        with pytest.raises(Dependency):
            case.host.files_between(*unknown)


def test_the_changes_since_a_commit_can_be_more_than_a_page_of_github_has(case: Case) -> None:
    first = case.git.commit({"a.yaml": b"0"})
    later = [case.git.commit({"a.yaml": str(number).encode()}) for number in range(1, 102)]
    found = case.host.changes_since(later[-1], first, 101)
    assert found is not None
    assert sorted(change.commit for change in found) == sorted(later)
    assert case.host.changes_since(later[-1], first, 100) is None


def test_a_page_of_commits_that_comes_again_and_again_is_not_taken_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it had pages, GitHub showed the newest 250 each time (github.blog/changelog/2021-03-22)."""

    def unpaged(*given: Any, **_: Any) -> Any:
        return json_call(*given)

    monkeypatch.setattr(host, "json_call", unpaged)
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as server:
        git = server.create_repository("acme/fleet")
        first, *later = [git.commit({"a.yaml": str(number).encode()}) for number in range(252)]
        adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
        found = adapter.changes_since(later[249], first, 1000)
        assert found is not None
        assert sorted(change.commit for change in found) == sorted(later[:250])
        with pytest.raises(Unavailable):
            adapter.changes_since(later[250], first, 1000)
        adapter.close()


def test_who_the_message_of_a_commit_names_has_written_it_too(case: Case) -> None:
    lines = [
        "* one",
        "",
        "  Co-authored-by: Ada <Ada@example.com>",
        "",
        "* two",
        "",
        "co-authored-By:G <g@x.y>",
    ]
    commit = case.git.commit(
        {"a.yaml": b"1"}, author="joan@example.com", message="\n".join(["Both", "", *lines])
    )
    (change,) = case.host.changes(commit, "", 1)
    assert change.people == {"joan@example.com", "operator@example.invalid", "ada@example.com", "g@x.y"}
    named = case.git.commit({"a.yaml": b"2"}, message="Name Co-authored-by: Ada <ada@example.com> here")
    (change,) = case.host.changes(named, "", 1)
    assert change.people == {"operator@example.invalid"}


def test_the_message_of_a_commit_is_read_with_its_last_lines(case: Case) -> None:
    text = "Change the fleet\n\nBecause of a certificate.\n\nRollout: emergency"
    first = case.git.commit({"a.yaml": b"1"}, message=text)
    same = case.git.commit({"a.yaml": b"1"}, message="Nothing changes")
    found = case.host.changes(same, "", 2)
    assert [(change.commit, change.message) for change in found] == [(same, "Nothing changes"), (first, text)]


def test_a_commit_descends_from_itself_and_from_what_came_before_it(case: Case) -> None:
    first, second, third = (case.git.commit({"a.yaml": text}) for text in (b"1", b"2", b"3"))
    parted = case.git.commit({"a.yaml": b"4"}, branch="other")
    assert all(case.host.is_descendant(third, earlier) for earlier in (first, second, third))
    assert not any(case.host.is_descendant(first, later) for later in (second, third))
    assert not case.host.is_descendant(third, parted)
    assert not case.host.is_descendant(parted, third)
    assert not case.host.is_descendant(third, UNKNOWN)
    assert not case.host.is_descendant(UNKNOWN, first)


def test_a_branch_that_is_not_there_is_named_in_the_error(case: Case) -> None:
    with pytest.raises(Dependency, match="no branch main"):
        case.host.read_head("main")  # the repository is still empty
    case.git.commit({"a.yaml": b"1"})
    for branch in ("release", "main~0", "mai"):
        with pytest.raises(Dependency, match=f"no branch {branch}"):
            case.host.read_head(branch)


def test_the_tree_of_a_commit_lists_every_file_and_flags_what_is_not_plain(case: Case) -> None:
    old = case.git.commit({"clusters/a/cluster.yaml": b"kind: Cluster\n", "run.sh": b"#!", "ä ö.txt": b""})
    new = case.git.commit(
        {"link": b"run.sh", "module": UNKNOWN.encode()}, modes={"link": "120000", "module": "160000"}
    )
    entries = {entry.path: entry for entry in case.host.tree(new)}
    assert sorted(entries) == ["clusters/a/cluster.yaml", "link", "module", "run.sh", "ä ö.txt"]
    assert [path for path, entry in entries.items() if not entry.plain] == ["link", "module"]
    assert entries["clusters/a/cluster.yaml"].size == len(b"kind: Cluster\n")
    assert entries["module"].sha == UNKNOWN
    assert len(case.host.tree(old)) == 3


@pytest.mark.parametrize("case", WITH_A_TOKEN, indirect=True)
def test_a_truncated_tree_is_an_error_and_never_a_short_list(case: Case) -> None:
    commit = case.with_large_tree()
    with pytest.raises(Unavailable, match=commit):
        case.host.tree(commit)


def test_blobs_come_back_byte_for_byte(case: Case) -> None:
    contents = {"empty": b"", "binary": bytes(range(256)) * 300, "text": "größer\r\n".encode()}
    tree = case.host.tree(case.git.commit(contents))
    for _ in range(2):  # the second time, the adapter has them in memory
        assert {entry.path: case.host.blob(entry.sha) for entry in tree} == contents


def test_an_archive_has_the_plain_files_that_are_asked_for_byte_for_byte(case: Case) -> None:
    contents = {f"clusters/c{n}/cluster.yaml": b"kind: Cluster\n" * n for n in range(300)}
    contents |= {"ä ö.txt": bytes(range(256)) * 3, f"{'deep/' * 40}x": b"far down", "not asked": b"1"}
    commit = case.git.commit(contents)
    asked = contents.keys() - {"not asked"}
    assert case.host.archive(commit, [*asked, "not there"]) == {path: contents[path] for path in asked}
    linked = case.git.commit(
        {"link": "ä ö.txt".encode(), "module": UNKNOWN.encode()}, modes={"link": "120000", "module": "160000"}
    )
    assert case.host.archive(linked, ["link", "module", "ä ö.txt"]) == {"ä ö.txt": contents["ä ö.txt"]}
    assert case.host.archive(linked, []) == {}


def test_files_of_an_archive_are_asked_for_once(tmp_path: Path) -> None:
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as server:
        commit = server.create_repository("acme/fleet").commit(
            {"a.yaml": b"1", "b.yaml": b"2", "c.yaml": b"3"}
        )
        adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
        assert adapter.archive(commit, ["a.yaml", "b.yaml"]) == {"a.yaml": b"1", "b.yaml": b"2"}
    assert adapter.archive(commit, ["b.yaml", "not there"]) == {"b.yaml": b"2"}  # nobody answers any more
    with pytest.raises(Unavailable):
        adapter.archive(commit, ["b.yaml", "c.yaml"])
    adapter.close()


def test_what_is_not_in_the_repository_is_a_missing_dependency(case: Case) -> None:
    case.git.commit({"a.yaml": b"1"})
    with pytest.raises(Dependency, match=UNKNOWN):
        case.host.tree(UNKNOWN)
    with pytest.raises(Dependency, match=UNKNOWN):
        case.host.blob(UNKNOWN)
    with pytest.raises(Dependency):
        case.host.archive(UNKNOWN, ["a.yaml"])
    with pytest.raises(InvalidManifest):
        case.host.blob("main")


def test_thousands_of_deletes_ask_for_the_tree_of_a_commit_once(tmp_path: Path) -> None:
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as server:
        git = server.create_repository("acme/fleet")
        commits = [git.commit({"a.yaml": text}) for text in (b"1", b"2")]
        adapter = GitHubHost("acme/fleet", github_auth(token="local"), base_url=server.url)
        trees = [adapter.tree(commit) for commit in commits]
        git.truncate_trees = True  # whoever asks again gets an error
        assert [adapter.tree(commit) for commit in commits] == trees
        assert [[entry.size for entry in tree] for tree in trees] == [[1], [1]]
        with pytest.raises(Unavailable):
            adapter.tree(git.commit({"a.yaml": b"3"}))
        adapter.close()
