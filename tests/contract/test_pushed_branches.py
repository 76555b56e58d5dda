"""Branches that are moved by a push: of several at once one wins, and what the server refuses is said."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localcloud.gitlab.wire.gitlab_server import GitLabServer
from localcloud.gitlab.world.project import Project
from shared.adapters.gitlab import GitLabHost
from shared.cluster.failures.errors import Conflict, Unauthorized
from shared.ports import NewCommit

BRANCH = "roadstead/drift/one"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitLabServer]:
    with GitLabServer(tmp_path, token="local") as served:
        served.create_repository("acme/fleet").commit({"a.yaml": b"1\n", "b/c.yaml": b"1\n"})
        yield served


@pytest.fixture
def project(server: GitLabServer) -> Project:
    return server.repository("acme/fleet")


@pytest.fixture
def hosts(server: GitLabServer) -> Iterator[list[GitLabHost]]:
    """Several instances of the app."""
    found = [GitLabHost(server.clone_url("acme/fleet"), "", "local") for _ in range(4)]
    yield found
    for host in found:
        host.close()


@pytest.mark.lives
def test_of_several_instances_that_move_a_branch_at_once_one_wins(
    hosts: list[GitLabHost], project: Project
) -> None:
    tip = project.head("main")
    hosts[0].move_branch(BRANCH, None, tip)
    for turn in range(3):
        commits = [
            host.add_commit(NewCommit({"a.yaml": f"{turn} {number}\n".encode()}, "Change", (tip,)))
            for number, host in enumerate(hosts)
        ]

        def move(place: int, before: str = tip, ids: list[str] = commits) -> bool:
            try:
                hosts[place].move_branch(BRANCH, before, ids[place])
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(len(hosts)) as pool:
            won = [place for place, moved in enumerate(pool.map(move, range(len(hosts)))) if moved]
        assert len(won) == 1
        tip = commits[won[0]]
        assert project.head(BRANCH) == tip


@pytest.mark.lives
def test_a_commit_of_one_instance_is_moved_to_by_another_and_waits_under_no_branch(
    hosts: list[GitLabHost], project: Project
) -> None:
    tip = project.head("main")
    commit = hosts[0].add_commit(NewCommit({"b/c.yaml": None, "b/d.yaml": b"2\n"}, "Move", (tip,)))
    assert project.target(f"refs/roadstead/{commit}") == commit
    assert hosts[1].branches("") == {"main": tip}
    hosts[1].move_branch(BRANCH, None, commit)
    assert project.head(BRANCH) == commit
    assert project.target(f"refs/roadstead/{commit}") == ""
    assert {entry.path for entry in hosts[2].tree(commit)} == {"a.yaml", "b/d.yaml"}
    hosts[3].move_branch("roadstead/pin/one", None, tip)
    with pytest.raises(Conflict, match="roadstead/pin/one is at"):
        hosts[2].move_branch("roadstead/pin/one", None, tip)


def test_our_commits_are_those_of_the_user_of_the_token(hosts: list[GitLabHost], project: Project) -> None:
    commit = hosts[0].add_commit(NewCommit({"a.yaml": b"2\n"}, "Change a", (project.head("main"),)))
    (change,) = project.changes(commit, "", 1)
    assert change.people == {"operator@example.invalid"}
    assert change.message == "Change a"


def test_what_a_rule_of_the_server_refuses_is_said_with_the_permission_that_it_takes(
    hosts: list[GitLabHost], project: Project
) -> None:
    hook = project.path / "hooks" / "update"
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/*) exit 1;; esac\n')
    hook.chmod(0o755)
    with pytest.raises(
        Unauthorized, match=r"refuses to move refs/heads/.*: hook declined; give .* the scope api"
    ):
        hosts[0].move_branch(BRANCH, None, project.head("main"))
    assert hosts[0].tip(BRANCH) is None
