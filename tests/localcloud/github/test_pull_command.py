"""``python -m localcloud pull``, on the local GitHub, as an operator types it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localcloud.git.world.git_repository import GitRepository
from localcloud.github.wire.github_server import GitHubServer
from localcloud.runtime import pull_command
from localcloud.runtime.state_folder import MARKER
from shared.ports import CommitStatus

pytestmark = pytest.mark.lives

Pull = Callable[..., tuple[int, str]]
"""Runs the command, and returns its exit code and what it printed, errors too."""


@pytest.fixture
def git(tmp_path: Path) -> Iterator[GitRepository]:
    """Serve a GitHub whose cloud has its state folder above the current one."""
    state, settings = tmp_path / ".localcloud", {"GITHUB_REPOSITORY": "acme/fleet", "GITHUB_TOKEN": "secret"}
    state.mkdir()
    (state / MARKER).touch()
    with GitHubServer(tmp_path / "host", token="secret", webhook_secret="s") as server:
        (state / "cloud.json").write_text(json.dumps({"urls": {"github": server.url}}))
        (state / "local.settings.json").write_text(json.dumps({"Values": settings}))
        repository = server.create_repository("acme/fleet")
        repository.commit({"a.yaml": b"1", "b.yaml": b"1"}, message="A fleet")
        yield repository


@pytest.fixture
def pull(
    git: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pull:
    (tmp_path / "fleet" / "clusters").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "fleet" / "clusters")

    def run(*arguments: str) -> tuple[int, str]:
        code = pull_command.main(arguments)
        printed = capsys.readouterr()
        return code, (printed.out + printed.err).strip()

    return run


def branch(git: GitRepository, name: str, content: bytes, message: str = "Change a") -> str:
    git.reset(git.head("main"), name)
    return git.commit({"a.yaml": content}, branch=name, message=message)


def test_a_pull_request_is_opened_listed_shown_and_merged(git: GitRepository, pull: Pull) -> None:
    head = branch(git, "ingress", b"2", "Add the ingress\n\nFor the shop.")
    code, said = pull("open", "ingress", "--body", "We need it.")
    assert (code, said.splitlines()[0]) == (0, "Opened pull request 1: Add the ingress")
    assert pull("list") == (0, "1  open    ingress  Add the ingress")
    assert pull("show", "1")[1].endswith("Roadstead writes its plan within some seconds.")
    git.set_status(head, CommitStatus("success", "1 update", "roadstead/plan"))
    git.pulls.write_comment(1, "roadstead[bot]", "<!-- mark -->\n**1 update**")
    shown = pull("show", "1")[1].split("\n\n")
    assert shown == [
        f"Add the ingress\nopen: ingress into main, commit {head[:8]}",
        "roadstead/plan: success: 1 update",
        "We need it.",
        "--- roadstead[bot]",
        "**1 update**",
    ]
    code, said = pull("merge", "1")
    assert (code, said) == (0, f"Merged pull request 1 into main: commit {git.head('main')[:8]}")
    newest = git.changes(git.head("main"), "", 1)[0].message
    assert newest.strip() == "Merge pull request #1 from acme/ingress\n\nAdd the ingress"
    assert pull("list") == (0, "There is no open pull request.")
    assert pull("list", "--all") == (0, "1  merged  ingress  Add the ingress")


def test_one_is_squashed_with_the_messages_of_its_commits(git: GitRepository, pull: Pull) -> None:
    branch(git, "one", b"2", "Change a\n\nCo-authored-by: Ann <ann@example.com>")
    pull("open", "one", "--title", "Another title")
    assert pull("merge", "1", "--squash")[0] == 0
    (newest,) = git.changes(git.head("main"), "", 1)
    assert newest.message.strip() == "Change a (#1)\n\nCo-authored-by: Ann <ann@example.com>"
    branch(git, "two", b"3", "First")
    git.commit({"b.yaml": b"2"}, branch="two", message="Second")
    pull("open", "two", "--title", "Both")
    assert pull("merge", "2", "--squash")[0] == 0
    (newest,) = git.changes(git.head("main"), "", 1)
    assert newest.message.strip() == "Both (#2)\n\n* First\n\n* Second"


def test_one_that_is_closed_changes_nothing(git: GitRepository, pull: Pull) -> None:
    before = git.head("main")
    branch(git, "next", b"2")
    pull("open", "next")
    assert pull("close", "1") == (0, "Closed pull request 1 without a merge")
    assert git.head("main") == before
    assert pull("merge", "1") == (1, f"the pull request 1 is closed already; {pull_command.LIST}")


def test_what_cannot_be_done_is_said_with_what_to_do(git: GitRepository, pull: Pull) -> None:
    missing = "the local GitHub has no branch nowhere; push it: git push origin nowhere"
    assert pull("open", "nowhere") == (1, missing)
    assert pull("merge", "7") == (1, f"there is no pull request 7; {pull_command.LIST}")
    branch(git, "mine", b"2")
    branch(git, "other", b"3")
    for name in ("mine", "other"):
        pull("open", name)
    code, said = pull("open", "mine")
    assert (code, said) == (1, "the local GitHub refuses it: A pull request already exists for mine.")
    pull("merge", "1")
    code, said = pull("merge", "2")
    assert code == 1
    assert said.startswith(
        "the branch other conflicts with main; on other, run git pull --no-rebase origin main"
    )
    git.reset(git.head("main"), "same")
    assert "No commits between main and same" in pull("open", "same")[1]


def test_without_a_running_cloud_it_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for files in ({}, {"cloud.json": {"urls": {"github": "http://127.0.0.1:1"}}}):
        for name, content in files.items():
            (tmp_path / name).write_text(json.dumps(content))
            settings = {"GITHUB_REPOSITORY": "a/b", "GITHUB_TOKEN": "c"}
            (tmp_path / "local.settings.json").write_text(json.dumps({"Values": settings}))
        assert pull_command.main(["list", "--state", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"no local cloud runs in {tmp_path}: ")
        assert said.endswith("; start it with make up\n")
