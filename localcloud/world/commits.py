"""A git repository in memory: commits on branches, blobs by hash, statuses. For tests and simulation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from localcloud.world.flux_sources import Source
from shared.jobs.errors import Dependency, InvalidManifest, Unavailable
from shared.ports import CommitStatus, TreeEntry


class Commits:
    """The Repository port over dictionaries; ``push`` is the operator."""

    def __init__(self) -> None:
        self._heads: dict[str, str] = {}
        self._trees: dict[str, dict[str, str]] = {}
        self._blobs: dict[str, bytes] = {}
        self.statuses: list[tuple[str, CommitStatus]] = []
        self.truncate_trees = False

    def push(self, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Make a commit with exactly these files the head of a branch; return its id."""
        tree: dict[str, str] = {}
        for path, content in files.items():
            sha = hashlib.sha1(content, usedforsecurity=False).hexdigest()
            self._blobs[sha] = content
            tree[path] = sha
        parent = self._heads.get(branch, "")
        text = f"{parent}{sorted(tree.items())}{len(self._trees)}"
        commit = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self._trees[commit] = tree
        self._heads[branch] = commit
        return commit

    def reset(self, commit: str, branch: str = "main") -> None:
        """Move a branch to a commit that exists: a forced push."""
        self._heads[branch] = commit

    def head(self, branch: str) -> str:
        """Return the commit that the branch points to."""
        if branch not in self._heads:
            raise Dependency(f"there is no branch {branch}")
        return self._heads[branch]

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit."""
        if self.truncate_trees:
            raise Unavailable("the tree is truncated")
        if commit not in self._trees:
            raise Dependency(f"there is no commit {commit}")
        return [TreeEntry(path, sha, len(self._blobs[sha])) for path, sha in self._trees[commit].items()]

    def blob(self, sha: str) -> bytes:
        """Return a file's content."""
        if sha not in self._blobs:
            raise Dependency(f"there is no blob {sha}")
        return self._blobs[sha]

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Keep a commit status; GitHub refuses a description of more than 140 characters."""
        if len(status.description) > 140:
            raise InvalidManifest("the description is too long")
        self.statuses.append((commit, status))

    def status(self, commit: str) -> CommitStatus | None:
        """Return the newest status of a commit."""
        return next((status for sha, status in reversed(self.statuses) if sha == commit), None)

    def source(self, _: str, branch: str) -> Source | None:
        """Return the branch as the local Flux reads it."""
        commit = self._heads.get(branch)
        if commit is None:
            return None
        return Source(commit, lambda: {p: self._blobs[sha] for p, sha in self._trees[commit].items()})
