"""The pull requests of the fleet repository, with their comments and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
