"""The contract of a git host, on every implementation: branches of our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.github.wire.github_server import GitHubServer
from shared.adapters.github import GitHubHost, github_auth
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest, Unauthorized
from shared.ports import CommitStatus, NewCommit, PullText
from shared.ports.git_host import Capability
from shared.ports.pull_requests import AutoMerge
from tests.support.git_hosts import ON_GITHUB, Case, having
from tests.support.github_app import APP, KEY

pytestmark = pytest.mark.lives

BRANCH = "roadstead/drift/example/one"
TEXT = PullText("One", "what differs")


def changed(case: Case, *parents: str, content: bytes = b"2\n") -> str:
    """Create a commit that changes one file."""
    return case.host.add_commit(NewCommit({"a.yaml": content}, "Change a", parents))


def files(case: Case, commit: str) -> Mapping[str, bytes]:
    return {entry.path: case.host.blob(entry.sha) for entry in case.host.tree(commit)}


def proposed(case: Case) -> str:
    """Create the branch with a commit, and return that."""
    commit = changed(case, case.git.head("main"))
    case.host.move_branch(BRANCH, None, commit)
    return commit


def test_a_commit_changes_several_files_at_once(case: Case) -> None:
    main = case.git.head("main")
    before = files(case, main)
    commit = case.host.add_commit(NewCommit({"a.yaml": b"2\n", "folder/b.yaml": b"3\n"}, "Two", [main]))
    assert files(case, commit) == {**before, "a.yaml": b"2\n", "folder/b.yaml": b"3\n"}


def test_a_commit_changes_one_file_of_its_last_parent_and_is_on_no_branch(case: Case) -> None:
    main = case.git.head("main")
    commit = changed(case, main, content="é\n".encode())
    assert files(case, commit) == {"a.yaml": "é\n".encode(), "b.yaml": b"1\n"}
    assert case.host.is_descendant(commit, main)
    assert (case.git.head("main"), case.host.tip(BRANCH)) == (main, None)


def test_a_commit_can_remove_files_and_add_others(case: Case) -> None:
    main = case.git.head("main")
    added = case.host.add_commit(NewCommit({"a.yaml": None, "c/d.yaml": b"3\n"}, "Move a", [main]))
    assert files(case, added) == {"b.yaml": b"1\n", "c/d.yaml": b"3\n"}


def test_a_commit_cannot_remove_a_file_that_there_is_not(case: Case) -> None:
    with pytest.raises(InvalidManifest):
        case.host.add_commit(NewCommit({"c.yaml": None}, "Remove c", [case.git.head("main")]))


def test_a_commit_with_two_parents_comes_after_both_and_has_the_files_of_the_last(case: Case) -> None:
    first = changed(case, case.git.head("main"))
    main = case.git.commit({"c.yaml": b"3\n"})
    both = changed(case, first, main, content=b"4\n")
    assert files(case, both) == {"a.yaml": b"4\n", "b.yaml": b"1\n", "c.yaml": b"3\n"}
    assert case.host.is_descendant(both, first)
    assert case.host.is_descendant(both, main)


def test_a_commit_of_an_unknown_parent_is_a_dependency(case: Case) -> None:
    with pytest.raises(Dependency):
        changed(case, "0" * 40)


def test_a_branch_is_created_once(case: Case) -> None:
    commit = proposed(case)
    assert case.host.tip(BRANCH) == commit
    with pytest.raises(Conflict):
        case.host.move_branch(BRANCH, None, case.git.head("main"))
    assert case.host.tip(BRANCH) == commit


def test_a_branch_moves_to_a_descendant_and_to_no_other_commit(case: Case) -> None:
    first = proposed(case)
    after = changed(case, first, content=b"3\n")
    beside = changed(case, case.git.head("main"), content=b"4\n")
    case.host.move_branch(BRANCH, first, after)
    with pytest.raises(Conflict):
        case.host.move_branch(BRANCH, after, beside)
    assert case.host.tip(BRANCH) == after


def test_what_somebody_pushed_in_between_is_not_lost(case: Case) -> None:
    first = proposed(case)
    mine = case.git.commit({"b.yaml": b"mine\n"}, branch=BRANCH)
    with pytest.raises(Conflict):
        case.host.move_branch(BRANCH, first, changed(case, first, content=b"3\n"))
    assert case.host.tip(BRANCH) == mine


def test_a_branch_that_does_not_exist_any_more_cannot_move(case: Case) -> None:
    first = proposed(case)
    case.host.delete_branch(BRANCH)
    with pytest.raises(Conflict):
        case.host.move_branch(BRANCH, first, changed(case, first, content=b"3\n"))


def test_a_branch_is_deleted_once_and_its_pull_request_ends(case: Case) -> None:
    proposed(case)
    number = case.host.open_pull(BRANCH, "main", TEXT).number
    case.host.delete_branch(BRANCH)
    case.host.delete_branch(BRANCH)
    pull = case.host.pull(number)
    assert pull is not None
    assert (case.host.tip(BRANCH), pull.open, pull.merged) == (None, False, False)


def test_branches_are_listed_by_the_beginning_of_their_names(case: Case) -> None:
    main = case.git.head("main")
    pin = f"roadstead/pin/{main}"
    case.host.move_branch(pin, None, main)
    case.host.move_branch("roadstead/pins", None, main)
    commit = proposed(case)
    assert case.host.branches("roadstead/pin/") == {pin: main}
    assert case.host.branches("roadstead/") == {pin: main, "roadstead/pins": main, BRANCH: commit}
    assert case.host.branches("roadstead/pin/none") == {}
    case.host.delete_branch(pin)
    assert case.host.branches("roadstead/pin/") == {}


def test_a_branch_holds_its_commit_when_another_one_is_pushed_by_force(case: Case) -> None:
    first, second = case.git.head("main"), case.git.commit({"a.yaml": b"2\n"})
    case.host.move_branch(f"roadstead/pin/{second}", None, second)
    case.git.reset(first)
    assert case.host.branches("roadstead/pin/") == {f"roadstead/pin/{second}": second}
    assert files(case, second)["a.yaml"] == b"2\n"


REQUIRED = "roadstead/plan"
MERGING = having(Capability.PROPOSALS, Capability.AUTO_MERGE)


def awaiting(case: Case) -> tuple[int, str]:
    """Open the pull request in a repository that allows auto-merge and requires a status."""
    case.git.pulls.allows_auto_merge, case.git.pulls.required_checks = True, (REQUIRED,)
    head = proposed(case)
    return case.host.open_pull(BRANCH, "main", TEXT).number, head


def passes(case: Case, commit: str, state: str = "success", *, pull: int = 0) -> None:
    case.host.set_status(commit, CommitStatus(state, "planned", REQUIRED, pull=pull))


@pytest.mark.parametrize("case", MERGING, indirect=True)
def test_the_host_merges_a_pull_request_once_what_its_rules_require_has_passed(case: Case) -> None:
    number, head = awaiting(case)
    assert [case.host.enable_auto_merge(number, head) for _ in range(2)] == [AutoMerge.ENABLED] * 2
    passes(case, head, "failure", pull=number)
    pull = case.host.pull(number)
    assert pull is not None
    assert (pull.open, case.git.is_descendant(case.git.head("main"), head)) == (True, False)
    passes(case, head, pull=number)
    pull = case.host.pull(number)
    assert pull is not None
    assert (pull.open, pull.merged, case.git.is_descendant(case.git.head("main"), head)) == (
        False,
        True,
        True,
    )
    assert case.host.enable_auto_merge(number, head) is AutoMerge.MERGED


@pytest.mark.parametrize("case", ON_GITHUB, indirect=True)
def test_the_host_merges_by_itself_with_a_method_that_the_repository_allows(case: Case) -> None:
    number, head = awaiting(case)
    case.git.pulls.methods = ("squash",)
    assert case.host.enable_auto_merge(number, head) is AutoMerge.ENABLED
    passes(case, head)
    pull = case.host.pull(number)
    assert pull is not None
    assert (pull.merged, case.git.is_descendant(case.git.head("main"), head)) == (True, False)


@pytest.mark.parametrize("case", MERGING, indirect=True)
def test_a_pull_request_that_somebody_has_pushed_to_is_not_merged_by_itself(case: Case) -> None:
    number, head = awaiting(case)
    case.git.commit({"b.yaml": b"theirs\n"}, branch=BRANCH)
    assert case.host.enable_auto_merge(number, head) is AutoMerge.MOVED


@pytest.mark.parametrize("case", ON_GITHUB, indirect=True)
def test_github_says_that_it_is_not_allowed_to_merge_or_has_nothing_to_wait_for(case: Case) -> None:
    number, head = awaiting(case)
    case.git.pulls.allows_auto_merge = False
    assert case.host.enable_auto_merge(number, head) is AutoMerge.NOT_ALLOWED
    case.git.pulls.allows_auto_merge = True
    passes(case, head)
    assert case.host.enable_auto_merge(number, head) is AutoMerge.NO_RULES


@pytest.mark.parametrize("case", MERGING, indirect=True)
def test_nothing_is_merged_before_a_rule_waits_nor_after_it_was_closed(case: Case) -> None:
    number, head = awaiting(case)
    case.git.pulls.required_checks = ()
    assert case.host.enable_auto_merge(number, head) is AutoMerge.NO_RULES
    pull = case.host.pull(number)
    assert pull is not None
    assert pull.open
    case.host.close_pull(number)
    assert case.host.enable_auto_merge(number, head) is AutoMerge.CLOSED


@pytest.mark.parametrize("case", MERGING, indirect=True)
def test_a_push_after_auto_merge_was_enabled_is_merged_by_the_rules_for_it_or_not_at_all(case: Case) -> None:
    number, head = awaiting(case)
    assert case.host.enable_auto_merge(number, head) is AutoMerge.ENABLED
    case.git.commit({"b.yaml": b"theirs\n"}, branch=BRANCH)
    assert case.host.pull(number) is not None
    passes(case, head, pull=0)
    pull = case.host.pull(number)
    assert pull is not None
    assert pull.open


@pytest.mark.parametrize("case", MERGING, indirect=True)
def test_no_pull_request_that_does_not_exist_is_merged_by_itself(case: Case) -> None:
    with pytest.raises(Dependency):
        case.host.enable_auto_merge(99, case.git.head("main"))


def test_a_rule_guards_branches_by_name_also_before_they_exist(case: Case) -> None:
    pin = f"roadstead/pin/example/{case.git.head('main')}"
    assert not case.host.is_guarded(pin)
    case.git.guarded = ("roadstead/pin/**/*",)
    assert case.host.is_guarded(pin)
    assert case.host.is_guarded(pin.replace("example/", "example/try/"))
    assert not case.host.is_guarded("roadstead/pin")
    assert not case.host.is_guarded("main")


def test_a_pull_request_is_opened_once(case: Case) -> None:
    commit = proposed(case)
    opened = case.host.open_pull(BRANCH, "main", TEXT)
    assert (opened.head, opened.base, opened.open, opened.fork) == (commit, "main", True, False)
    assert opened.url.endswith(f"{case.rules.pull_page}{opened.number}")
    assert case.host.open_pull(BRANCH, "main", TEXT).number == opened.number
    (record,) = case.git.pulls.listed(state="all")
    assert (record.title, record.body, record.head) == ("One", "what differs", BRANCH)


def test_another_pull_request_is_opened_when_the_first_one_is_closed(case: Case) -> None:
    proposed(case)
    first = case.host.open_pull(BRANCH, "main", TEXT).number
    case.host.close_pull(first)
    case.host.close_pull(first)
    assert case.host.open_pull(BRANCH, "main", TEXT).number != first


def test_a_pull_request_that_is_merged_says_so(case: Case) -> None:
    proposed(case)
    number = case.host.open_pull(BRANCH, "main", TEXT).number
    before = case.host.pull(number)
    case.git.pulls.merged_into_base(number)
    after = case.host.pull(number)
    assert before is not None
    assert after is not None
    assert [(version.open, version.merged) for version in (before, after)] == [(True, False), (False, True)]


def test_the_text_of_a_pull_request_changes(case: Case) -> None:
    proposed(case)
    number = case.host.open_pull(BRANCH, "main", TEXT).number
    case.host.edit_pull(number, PullText("Two", "what differs now"))
    (record,) = case.git.pulls.listed()
    assert (record.title, record.body) == ("Two", "what differs now")


def test_a_pull_request_that_does_not_exist_is_a_dependency(case: Case) -> None:
    with pytest.raises(Dependency):
        case.host.edit_pull(99, TEXT)
    with pytest.raises(Dependency):
        case.host.close_pull(99)


def test_a_branch_without_commits_of_its_own_has_no_pull_request(case: Case) -> None:
    case.host.move_branch(BRANCH, None, case.git.head("main"))
    with pytest.raises(InvalidManifest):
        case.host.open_pull(BRANCH, "main", TEXT)


def test_a_text_that_is_too_long_is_refused(case: Case) -> None:
    proposed(case)
    with pytest.raises(InvalidManifest):
        case.host.open_pull(BRANCH, "main", PullText("x" * (case.rules.title + 1), "text"))
    number = case.host.open_pull(BRANCH, "main", PullText("x" * 255, "y" * 65_536)).number
    with pytest.raises(InvalidManifest):
        case.host.edit_pull(number, PullText("One", "y" * (case.rules.text + 1)))


def test_an_app_that_may_only_read_the_repository_is_refused(tmp_path: Path) -> None:
    credentials = {"app_id": APP.id, "private_key": KEY, "installation_id": str(APP.installation)}
    app = replace(APP, writes_contents=False)
    with GitHubServer(tmp_path, token="local", webhook_secret="s", app=app) as server:
        main = server.create_repository("acme/fleet").commit({"a.yaml": b"1\n"})
        adapter = GitHubHost("acme/fleet", github_auth(**credentials), base_url=server.url)
        assert adapter.tip("main") == main
        with pytest.raises(Unauthorized, match=r"by integration; .* the permissions Contents: write"):
            adapter.add_commit(NewCommit({"a.yaml": b"2\n"}, "Change a", [main]))
        with pytest.raises(Unauthorized):
            adapter.move_branch(BRANCH, None, main)
        with pytest.raises(Unauthorized):
            adapter.delete_branch("main")
        adapter.close()


def test_the_local_github_refuses_what_github_refuses(tmp_path: Path) -> None:
    with GitHubServer(tmp_path, token="local", webhook_secret="s") as server:
        git = server.create_repository("acme/fleet")
        main = git.commit({"a.yaml": b"1\n"})
        url, headers = f"{server.url}/repos/acme/fleet", {"Authorization": "Bearer local"}
        with httpx.Client(base_url=url, headers=headers) as api:
            tree = api.get(f"/git/commits/{main}").json()["tree"]["sha"]
            file = {"path": "a.yaml", "mode": "100644", "content": "2"}
            refused: list[tuple[str, str, dict[str, Any], int, str]] = [
                ("POST", "/git/refs", {"ref": "next", "sha": main}, 422, "not a valid ref name"),
                ("POST", "/git/refs", {"ref": "refs/heads/main", "sha": main}, 422, "already exists"),
                ("POST", "/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40}, 422, "Object does not exist"),
                ("PATCH", "/git/refs/heads/none", {"sha": main}, 422, "Reference does not exist"),
                ("PATCH", "/git/refs/heads/main", {"sha": "0" * 40}, 422, "Object does not exist"),
                ("DELETE", "/git/refs/heads/none", {}, 422, "Reference does not exist"),
                ("POST", "/git/trees", {"base_tree": main, "tree": [file]}, 404, "Not Found"),
                ("POST", "/git/trees", {"base_tree": tree, "tree": []}, 422, "Invalid request"),
                ("POST", "/git/trees", {"base_tree": tree, "tree": [{**file, "sha": main}]}, 422, "either"),
                ("POST", "/git/commits", {"message": "x", "tree": main}, 422, "Tree SHA does not exist"),
                (
                    "POST",
                    "/git/commits",
                    {"message": "x", "tree": tree, "parents": [tree]},
                    422,
                    "Parent SHA",
                ),
                ("POST", "/git/commits", {"tree": tree}, 422, "message"),
            ]
            for method, path, body, status, message in refused:
                answer = api.request(method, path, json=body)
                assert answer.status_code == status, answer.text
                assert message in answer.json()["message"]
            beside = git.commit({"a.yaml": b"3\n"}, branch="beside")
            moved = api.patch("/git/refs/heads/main", json={"sha": beside})
            assert moved.json()["message"] == "Update is not a fast forward"
            forced = api.patch("/git/refs/heads/main", json={"sha": beside, "force": True})
            assert (forced.status_code, git.head("main")) == (200, beside)
