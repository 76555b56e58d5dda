"""A fleet repository on disk is read as it would be committed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cli.errors import UsageError
from cli.worktree import open_worktree
from tests.support import fleet_files
from tests.support.roadstead_command import write


def test_files_have_the_ids_that_git_gives_them(tmp_path: Path) -> None:
    tree = open_worktree(write(tmp_path, fleet_files.example()))
    assert set(tree.files.blobs) == set(fleet_files.example())
    for path in ("fleet.yaml", "flux/gotk-components.yaml"):
        asked = subprocess.run(
            ["git", "hash-object", "--no-filters", path],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert tree.files.blobs[path] == asked.stdout.strip()


def test_what_is_not_a_plain_file_is_recognised_and_never_followed(tmp_path: Path) -> None:
    root = write(tmp_path / "fleet", fleet_files.fleet("one", "two"))
    write(tmp_path / "elsewhere", {"cluster.yaml": fleet_files.cluster("three")})
    (root / "clusters" / "three").symlink_to(tmp_path / "elsewhere")
    (root / "loop").symlink_to(root)
    (root / "clusters" / "two" / "cluster.yaml").unlink()
    os.mkfifo(root / "clusters" / "two" / "cluster.yaml")
    write(root, {"vendor/.git": b"gitdir: elsewhere", "vendor/file": b"", ".git/config": b""})
    tree = open_worktree(root)
    assert tree.files.other == {"clusters/three", "clusters/two/cluster.yaml", "loop", "vendor"}
    assert not any(path.startswith((".git", "vendor")) for path in tree.files.blobs)
    desired = tree.resolve()
    assert (set(desired.clusters), set(desired.invalid)) == ({"one"}, {"two", "three"})


@pytest.mark.parametrize(
    ("folder", "message"),
    [("nowhere", "there is no folder"), ("", "roadstead init"), ("fleet/clusters", "it is in")],
)
def test_a_folder_that_is_no_fleet_repository_is_an_error_with_its_remedy(
    tmp_path: Path, folder: str, message: str
) -> None:
    write(tmp_path / "fleet", fleet_files.example())
    with pytest.raises(UsageError, match=message):
        open_worktree(tmp_path / folder)


@pytest.mark.parametrize(
    "content", [b"", b"- 1", b"metadata: {name: 3}", b"a: &a [*a]", b"\xff", b"x" * 300_000]
)
def test_a_broken_fleet_file_is_a_problem_and_no_crash(tmp_path: Path, content: bytes) -> None:
    tree = open_worktree(write(tmp_path, fleet_files.example() | {"fleet.yaml": content}))
    assert {problem.file for problem in tree.resolve().problems} >= {"fleet.yaml"}
