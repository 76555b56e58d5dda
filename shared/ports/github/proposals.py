"""Branches of our own in the fleet repository, and the pull requests that propose them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from shared.ports.github.pull_requests import Pull


@dataclass(frozen=True)
class NewCommit:
    """The last of ``parents`` with one file changed; the first parent is what the branch points to."""

    path: str
    content: bytes
    message: str
    parents: Sequence[str]


@dataclass(frozen=True)
class PullText:
    """What a pull request says. GitHub's limits: 256 characters for the title, 65,536 for the body."""

    title: str
    body: str


class Proposing(Protocol):
    """Writes to the fleet repository, which take permissions that no other part of Roadstead needs.

    Every method raises Unauthorized without the permissions Contents: write and Pull requests: write.
    """

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""
        ...

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit that no branch has yet, and return its id."""
        ...

    def create_branch(self, branch: str, commit: str) -> None:
        """Create a branch; raise Conflict when there is one of this name."""
        ...

    def advance_branch(self, branch: str, commit: str) -> None:
        """Let a branch point to a descendant of its tip; raise Conflict when the commit is none."""
        ...

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; one that does not exist is success."""
        ...

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request of a branch, or return the one that is open."""
        ...

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says; raise Dependency for one that does not exist."""
        ...

    def close_pull(self, number: int) -> None:
        """Close a pull request; one that is closed is success. Raise Dependency when there is none."""
        ...
