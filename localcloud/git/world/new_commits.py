"""Commits that change some files, without a working tree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from localcloud.git.world.git_commands import GitError, run_git
from shared.cluster.failures.errors import Dependency, InvalidManifest


class AbsentFile(GitError):
    """A file that is to be removed does not exist."""


def new_tree(repository: Path, base: str, files: Sequence[tuple[str, str, str]]) -> str:
    """Return a tree like another one, with these files: mode, id of the blob, and path of each.

    One without an id is removed; raise AbsentFile for one that there is not.
    """
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": os.fspath(Path(folder, "index"))}
        run_git(repository, "read-tree", base, environment=index)
        for mode, blob, path in files:
            if not blob:
                if not run_git(repository, "ls-files", path, environment=index):
                    raise AbsentFile(path)
                removal = f"0 {'0' * 40}\t{path}\n".encode()
                run_git(repository, "update-index", "--index-info", stdin=removal, environment=index)
                continue
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


def add_commit(
    repository: Path, files: Mapping[str, bytes | None], message: str, parents: Sequence[str]
) -> str:
    """Return a commit on no branch: the last of its parents with some files changed; raise Dependency."""
    try:
        blobs = {
            path: "" if content is None else new_blob(repository, content) for path, content in files.items()
        }
        tree = new_tree(repository, parents[-1], [("100644", blob, path) for path, blob in blobs.items()])
        return new_commit(repository, tree, message, parents)
    except AbsentFile as error:
        raise InvalidManifest(f"no file {error}") from error
    except GitError as error:
        raise Dependency(str(error)) from error
