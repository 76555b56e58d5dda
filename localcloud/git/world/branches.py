"""What pull requests need of a repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from localcloud.git.world.commit_statuses import Statuses
from shared.ports.git_host import BranchCommit


@dataclass(frozen=True)
class ChangedFile:
    """A file of a pull request; ``status`` is added, removed, modified or renamed from ``previous``."""

    path: str
    status: str
    previous: str = ""


class Branches(Protocol):
    """A repository with branches."""

    @property
    def statuses(self) -> Statuses:
        """The statuses of its commits."""
        ...

    @property
    def id(self) -> int:
        """GitHub's number of the repository."""
        ...

    def head(self, branch: str) -> str:
        """Return the commit that the branch points to; raise Dependency."""
        ...

    def merge(self, base: str, head: str) -> str | None:
        """Return the commit that merges two commits; None when they conflict."""
        ...

    def land(self, base: str, head: str, message: str, *, squash: bool) -> str | None:
        """Return the commit that brings another's changes to a base; None when they conflict.

        Squashed it has the base as its one parent.
        """
        ...

    def reset(self, commit: str, branch: str = "main") -> None:
        """Let a branch point to a commit."""
        ...

    def add(self, files: Mapping[str, bytes | None], message: str, parents: Sequence[str]) -> str:
        """Return a commit on no branch: the last of its parents with some files changed; raise Dependency."""
        ...

    def delete(self, branch: str) -> None:
        """Delete a branch; raise Dependency when there is none."""
        ...

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit comes after another, or is it."""
        ...

    def changed_files(self, base: str, head: str) -> Sequence[ChangedFile]:
        """Return what changed from the newest common ancestor of two commits to the second."""
        ...

    def commits_of(self, base: str, head: str) -> Sequence[BranchCommit]:
        """Return the commits that only the second has."""
        ...

    def has(self, commit: str, base: str, head: str) -> bool:
        """Return whether a commit is an ancestor of, or equal to, the second of two and not of the first."""
        ...
