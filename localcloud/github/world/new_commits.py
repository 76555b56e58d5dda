"""Commits that change some files, without a working tree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from localcloud.github.world.git_commands import GitError, run_git
from shared.cluster.failures.errors import Dependency


def new_tree(repository: Path, base: str, files: Sequence[tuple[str, str, str]]) -> str:
    """Return a tree like another one, with these files: mode, id of the blob, and path of each."""
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": os.fspath(Path(folder, "index"))}
        run_git(repository, "read-tree", base, environment=index)
        for mode, blob, path in files:
            entry = f"{mode},{blob},{path}"
            run_git(repository, "update-index", "--add", "--cacheinfo", entry, environment=index)
        return run_git(repository, "write-tree", environment=index).decode().strip()


def new_blob(repository: Path, content: bytes) -> str:
    """Save the content of a file, and return its id."""
    return run_git(repository, "hash-object", "-w", "--stdin", stdin=content).decode().strip()


def new_commit(repository: Path, tree: str, message: str, parents: Sequence[str]) -> str:
    """Save a commit on no branch, and return its id."""
    options = [option for parent in parents for option in ("-p", parent)]
    done = run_git(repository, "commit-tree", tree, *options, stdin=message.encode())
    return done.decode().strip()


def add_commit(repository: Path, files: Mapping[str, bytes], message: str, parents: Sequence[str]) -> str:
    """Return a commit on no branch: the last of its parents with these files changed; raise Dependency."""
    try:
        blobs = [("100644", new_blob(repository, content), path) for path, content in files.items()]
        tree = new_tree(repository, parents[-1], blobs)
        return new_commit(repository, tree, message, parents)
    except GitError as error:
        raise Dependency(str(error)) from error
