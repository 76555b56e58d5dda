"""Pull requests: comments and checks, our own branches, and issues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared.frozen import dataclass
from shared.ports.github.reviews import Reviews


@dataclass(frozen=True)
class Pull:
    """A pull request: ``head`` is its newest commit, ``base`` the branch it would be merged into.

    ``merge`` is the commit of GitHub's test merge, "" with conflicts, None while there is no test merge.
    ``fork``: the head belongs to another repository. ``url`` is that of its page.
    ``labels`` are the names of its labels.
    """

    number: int
    head: str
    base: str
    merge: str | None = None
    fork: bool = False
    open: bool = True
    merged: bool = False
    url: str = ""
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Comment:
    """One of our own comments on a pull request."""

    id: int
    body: str


@dataclass(frozen=True)
class Annotation:
    """A message at a line of a file; ``level`` is notice, warning or failure."""

    path: str
    line: int
    message: str
    level: str = "failure"


@dataclass(frozen=True)
class Check:
    """A finished check run; ``conclusion`` is success, neutral or failure.

    GitHub's limit: 65,535 characters for ``summary`` (Markdown).
    """

    name: str
    conclusion: str
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    details_url: str = ""


@dataclass(frozen=True)
class CheckRun:
    """A check run; ``status`` is "completed" once it has a ``conclusion``, "" before, as in GitHub's API."""

    name: str
    status: str
    conclusion: str


class PullRequests(Reviews, Protocol):
    """The fleet repository's pull requests."""

    @property
    def can_check(self) -> bool:
        """Whether we may write check runs: as a GitHub App only."""

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open pull requests into a branch, newest first, at most 100; their ``merge`` is None."""
        ...

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None."""
        ...

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment that begins with the marker, or None; it ignores comments of others."""
        ...

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Create a comment, or replace ``over``; at most 65,536 characters."""
        ...

    def check_runs(self, commit: str, name: str) -> Sequence[CheckRun]:
        """Return the newest check runs of a name of a commit, one of each app, at most 100."""
        ...

    def check(self, commit: str, check: Check) -> None:
        """Write a check run; raise Unauthorized unless ``can_check``."""
        ...


# Branches of our own in the fleet repository, and the pull requests that propose them.


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


# The issues of the fleet repository.


class Issues(Protocol):
    """The issues of the fleet repository."""

    def find_issue(self, marker: str) -> int | None:
        """Return the number of our newest open issue whose text begins with the marker, or None."""
        ...

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue, and return its number."""
        ...

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment; raise Dependency for an issue that no longer exists."""
        ...

    def close_issue(self, number: int) -> None:
        """Close an issue; one that is closed is success. Raise Dependency for one that no longer exists."""
        ...
