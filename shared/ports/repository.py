"""The fleet repository and its pull requests, at their host."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class TreeEntry:
    """A file in a git tree: path from the root, blob id, size in bytes, and whether it is a plain file."""

    path: str
    sha: str
    size: int
    plain: bool = True


@dataclass(frozen=True)
class CommitStatus:
    """What GitHub shows on a commit; ``state`` is pending, success, failure or error.

    GitHub's limits: description 140 characters; one status per context, the newest counts.
    """

    state: str
    description: str
    context: str
    target_url: str = ""


@dataclass(frozen=True)
class BranchHead:
    """The commit that a branch pointed to, and when that was said: whole seconds by the host's own clock."""

    commit: str
    at: datetime


class Repository(Protocol):
    """The fleet repository at its host."""

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to; raise Dependency when there is no such branch."""
        ...

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Tell whether a commit comes after another, or is it; False also where either is not known.

        Unlike where a branch is, that never changes: once both are known, no answer is old.
        """
        ...

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when the answer is truncated or partial."""
        ...

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        ...

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit, however many, in one answer.

        A file may be left out, or be another than the tree says (git's export attributes can do that):
        hold each against its blob id. Raise Unavailable when the answer is cut off, broken or too large.
        """
        ...

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status."""
        ...


@dataclass(frozen=True)
class Pull:
    """A pull request: ``head`` is its newest commit, ``base`` the branch it would be merged into.

    ``merge`` is the commit that a merge would make, "" with conflicts, None while GitHub has not tried yet.
    ``fork``: the head belongs to another repository.
    """

    number: int
    head: str
    base: str
    merge: str | None = None
    fork: bool = False
    open: bool = True


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


class PullRequests(Protocol):
    """The fleet repository's pull requests."""

    @property
    def can_check(self) -> bool:
        """Whether we may write check runs: as a GitHub App only."""

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open ones into a branch, newest first, at most 100; ``merge`` is not known here."""
        ...

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None."""
        ...

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment that begins with the marker, or None; others' comments do not count."""
        ...

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Write a new comment, or over one; at most 65,536 characters."""
        ...

    def check(self, commit: str, check: Check) -> None:
        """Write a check run; raise Unauthorized unless ``can_check``."""
        ...
