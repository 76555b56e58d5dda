"""The fleet repository: a real bare git repository, and the statuses of its commits.

Implements the ``Repository`` port; ``truncate_trees`` makes every tree incomplete, as GitHub does for a tree
that is too large.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Self

from localcloud.common.clock import system_clock
from localcloud.git.world.branches import ChangedFile
from localcloud.git.world.commit_statuses import Statuses
from localcloud.git.world.git_commands import (
    GitEntry,
    GitError,
    GitObject,
    ObjectReader,
    is_safe_name,
    list_tree,
    run_git,
)
from localcloud.git.world.new_commits import add_commit
from localcloud.git.world.pull_requests import Pulls
from localcloud.git.world.repository_history import (
    diff,
    merge_base,
    parse_commit,
    pull_files,
    refs,
    rev_list,
)
from shared.cluster.failures.errors import Dependency, InvalidManifest, Unavailable
from shared.ports import BranchHead, Clock, CommitStatus, TreeEntry
from shared.ports.git_host import BranchCommit

MAX_ID = 1 << 31
MAX_PULL_COMMITS = 250
"""docs.github.com/rest/pulls/pulls, "List commits on a pull request"."""
_SHA = re.compile(r"^[0-9a-f]{40}$")
_HEADS = "refs/heads/"
_PLAIN_MODES = ("100644", "100755")

_CONFIG = {
    "http.receivepack": "true",
    "uploadpack.allowAnySHA1InWant": "true",  # as GitHub: any commit can be fetched by its id
    "receive.autogc": "false",  # no background process outlives a push
    "gc.auto": "0",
    "core.fsync": "none",  # the local cloud outlives no power cut
}


class GitRepository:
    """A bare repository on disk. A context manager; ``close`` ends its reader process."""

    def __init__(self, path: Path, *, clock: Clock = system_clock) -> None:
        self.path = path
        self.statuses = Statuses(clock)
        self.pulls = Pulls(self, clock)
        self._merges: dict[tuple[str, str], str | None] = {}
        self.truncate_trees = False
        self.guarded: tuple[str, ...] = ()
        """The patterns of the branches that people may not move, as its host writes them."""
        self.token_expires: datetime | None = None
        self.clock = clock
        self._reader = ObjectReader(path)

    @classmethod
    def create(cls, path: Path, branch: str = "main", *, clock: Clock = system_clock) -> Self:
        """Make an empty bare repository whose default branch is ``branch``."""
        path.mkdir(parents=True, exist_ok=True)
        run_git(path, "init", "--quiet", "--bare", f"--initial-branch={branch}")
        lines = [f"[{k.partition('.')[0]}]\n\t{k.partition('.')[2]} = {v}\n" for k, v in _CONFIG.items()]
        with (path / "config").open("a") as config:
            config.writelines(lines)
        return cls(path, clock=clock)

    @cached_property
    def id(self) -> int:
        """The number that no other repository has, also not a later one of the same name."""
        stored = self.path / "github-id"
        if not stored.is_file():
            stored.write_text(f"{uuid.uuid4().int % MAX_ID + 1}")
        return int(stored.read_text())

    @property
    def default_branch(self) -> str:
        """The branch that HEAD names."""
        return (self.path / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")

    def head(self, branch: str) -> str:
        """Return the commit that a branch points to; raise Dependency when there is no such branch."""
        found = self.read(f"refs/heads/{branch}^{{commit}}") if is_safe_name(branch) else None
        if found is None:
            raise Dependency(f"no branch {branch}")
        return found.sha

    def target(self, ref: str) -> str:
        """Return the commit that a ref points to, by its full name; "" when there is no such ref."""
        whole = ref.startswith("refs/") and is_safe_name(ref)
        found = self.read(f"{ref}^{{commit}}") if whole else None
        return found.sha if found else ""

    def heads(self) -> Mapping[str, str]:
        """Return every branch with the commit that it points to."""
        found = refs(self.path)
        return {name.removeprefix(_HEADS): sha for name, sha in found.items() if name.startswith(_HEADS)}

    def guards(self, branch: str) -> bool:
        """Return whether people may not move a branch of this name, where a * is also for slashes."""
        return any(fnmatchcase(branch, pattern) for pattern in self.guarded)

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to, and the time."""
        at = self.clock().replace(microsecond=0)
        return BranchHead(self.head(branch), at, self.id, self.token_expires)

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit comes after another, or is it."""
        return bool(_SHA.match(earlier)) and merge_base(self.path, commit, earlier) == earlier

    def changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        """Return the newest commits that changed something at or below a path."""
        if self.read(f"{commit}^{{commit}}") is None:
            raise Dependency(f"no commit {commit}")
        return self._changes(rev_list(self.path, commit, limit=most, paths=[path] if path else []))

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[BranchCommit] | None:
        """Return the commits that an earlier one does not have; None for more than ``most``."""
        known = all(_SHA.match(sha) and self.read(f"{sha}^{{commit}}") for sha in (commit, earlier))
        if not known or merge_base(self.path, earlier, commit) is None:
            raise Dependency(f"no commit {commit}, or {earlier}")
        shas = rev_list(self.path, f"{earlier}..{commit}", limit=most + 1)
        return None if len(shas) > most else self._changes(shas)

    def _changes(self, shas: Sequence[str]) -> Sequence[BranchCommit]:
        commits = [parse_commit(content) for content in map(self.read, shas) if content]
        return [
            BranchCommit(
                commit.sha,
                commit.author.email.lower(),
                commit.committer.email.lower(),
                commit.message,
                commit.parents,
            )
            for commit in commits
        ]

    def files_between(self, commit: str, earlier: str) -> Sequence[str]:
        """Return the paths of the files that differ between a commit and an ancestor."""
        if not all(_SHA.match(sha) and self.read(f"{sha}^{{commit}}") for sha in (commit, earlier)):
            raise Dependency(f"no commit {commit}, or {earlier}")
        found = diff(self.path, earlier, commit)
        return sorted((*found.added, *found.modified, *found.removed))

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when trees are truncated."""
        entries = self.entries(commit)
        if self.truncate_trees:
            raise Unavailable(f"the tree of {commit} is truncated")
        return [
            TreeEntry(e.path, e.sha, e.size or 0, plain=e.mode in _PLAIN_MODES)
            for e in entries
            if e.kind != "tree"
        ]

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        if not _SHA.match(sha):
            raise InvalidManifest(f"{sha!r} is not a blob id")
        found = self.read(sha)
        if found is None or found.kind != "blob":
            raise Dependency(f"no blob {sha}")
        return found.data

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit."""
        wanted = frozenset(paths)
        entries = [e for e in self.entries(commit) if e.mode in _PLAIN_MODES and e.path in wanted]
        return {entry.path: self.blob(entry.sha) for entry in entries}

    def tarball(self, commit: str, folder: str) -> bytes:
        """Return all files of a commit, in a folder, as ``git archive`` packs them: a tar in gzip."""
        try:
            return run_git(self.path, "archive", "--format=tar.gz", f"--prefix={folder}/", commit)
        except GitError as error:
            raise Unavailable(str(error)) from error

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write a commit status; raise InvalidManifest when GitHub would answer 422."""
        found = self.read(commit) if _SHA.match(commit) else None
        if found is None or found.kind != "commit":
            raise InvalidManifest(f"No commit found for SHA: {commit}")
        self.statuses.add(commit, status)

    def read(self, name: str) -> GitObject | None:
        """Return the object that a full ref, an id or an expression of these stands for, or None."""
        try:
            return self._reader.read(name)
        except GitError as error:
            raise Unavailable(str(error)) from error

    def entries(self, commit: str) -> Sequence[GitEntry]:
        """Return every entry of a commit's or tree's content, folders included; raise Dependency."""
        if not _SHA.match(commit) or self.read(f"{commit}^{{tree}}") is None:
            raise Dependency(f"no tree {commit}")
        try:
            return list_tree(self.path, commit)
        except GitError as error:
            raise Unavailable(str(error)) from error

    def commit(
        self,
        files: Mapping[str, bytes | None],
        *,
        branch: str = "main",
        message: str = "Change the fleet",
        modes: Mapping[str, str] | None = None,
        author: str = "operator@example.invalid",
    ) -> str:
        """Commit changed files (None removes one, or a whole folder) and return the commit.

        ``modes`` are git's, of what is not a plain file: "120000" for a symlink to the path in the bytes,
        "160000" for a submodule at the commit in the bytes. The clock dates the commit: the same calls at
        the same time give the same ids.
        """
        ref, when, text = f"refs/heads/{branch}", int(self.clock().timestamp()), message.encode()
        parent = f"from {ref}^0\n" if self.read(ref) is not None else ""
        header = (
            f"commit {ref}\nmark :1\n"
            f"author Fleet Operator <{author}> {when} +0000\n"
            f"committer Fleet Operator <operator@example.invalid> {when} +0000\n"
            f"data {len(text)}\n"
        )
        script = header.encode() + text + b"\n" + parent.encode() + _changes(files, modes or {})
        try:
            done = run_git(
                self.path, "fast-import", "--quiet", "--done", stdin=script + b"get-mark :1\ndone\n"
            )
        except GitError as error:
            raise Unavailable(str(error)) from error
        return done.decode().strip()

    def point(self, ref: str, commit: str) -> None:
        """Make a ref ("refs/heads/next") point to a commit that exists."""
        try:
            run_git(self.path, "update-ref", ref, commit)
        except GitError as error:
            raise Unavailable(str(error)) from error

    def reset(self, commit: str, branch: str = "main") -> None:
        """Make a branch, or move it as a forced push does."""
        self.point(f"refs/heads/{branch}", commit)

    def merge(self, base: str, head: str) -> str | None:
        """Return the commit that merges two commits, on no branch; None when they conflict."""
        if (base, head) not in self._merges:
            self._merges[base, head] = self.land(base, head, f"Merge {head} into {base}", squash=False)
        return self._merges[base, head]

    def land(self, base: str, head: str, message: str, *, squash: bool) -> str | None:
        """Return the commit that brings another's changes to a base; None when they conflict."""
        try:
            tree = run_git(self.path, "merge-tree", "--write-tree", base, head).decode().strip()
        except GitError:
            return None
        parents = ("-p", base) if squash else ("-p", base, "-p", head)
        commit = run_git(self.path, "commit-tree", tree, *parents, "-m", message)
        return commit.decode().strip()

    def add(self, files: Mapping[str, bytes | None], message: str, parents: Sequence[str]) -> str:
        """Return a commit on no branch: the last of its parents with some files changed."""
        return add_commit(self.path, files, message, parents)

    def delete(self, branch: str) -> None:
        """Delete a branch."""
        self.head(branch)
        run_git(self.path, "update-ref", "-d", f"refs/heads/{branch}")

    def changed_files(self, base: str, head: str) -> Sequence[ChangedFile]:
        """Return what changed from the newest common ancestor of two commits to the second."""
        return pull_files(self.path, base, head)

    def commits_of(self, base: str, head: str) -> Sequence[BranchCommit]:
        """Return the commits that only the second has."""
        return self._changes(rev_list(self.path, f"{base}..{head}", limit=MAX_PULL_COMMITS))

    def has(self, commit: str, base: str, head: str) -> bool:
        """Return whether a commit is among those that only the second of two has."""
        return self.is_descendant(head, commit) and not self.is_descendant(base, commit)

    def close(self) -> None:
        """End the reader process."""
        self._reader.close()

    def __enter__(self) -> GitRepository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _changes(files: Mapping[str, bytes | None], modes: Mapping[str, str]) -> bytes:
    """Return the lines of ``git fast-import`` that write and remove files."""
    lines = []
    for path, data in files.items():
        mode = modes.get(path, "100644")
        if "\n" in path or path.startswith('"'):
            raise InvalidManifest(f"{path!r} is not a path that can be committed here")
        if data is None:
            lines.append(f"D {path}\n".encode())
        elif mode == "160000":
            lines.append(f"M {mode} {data.decode()} {path}\n".encode())
        else:
            lines.append(f"M {mode} inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
    return b"".join(lines)
