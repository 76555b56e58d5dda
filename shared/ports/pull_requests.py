"""Pull requests of a git host: those of people, and those that we propose; see ``git_host``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from shared.frozen import dataclass

# Pull requests: what they would change, what is said on them, and who reviewed them.


@dataclass(frozen=True)
class Pull:
    """A pull request: ``head`` is its newest commit, ``base`` the branch it would be merged into.

    ``merge`` is the commit of the host's test merge, "" with conflicts, None while there is no test merge.
    ``fork``: the head belongs to another repository. ``url`` is that of its page.
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
    """What is wrong at a line of a file."""

    path: str
    line: int
    message: str


@dataclass(frozen=True)
class Check:
    """The result of a check, with a page of its own; ``conclusion`` is success, neutral or failure.

    ``summary`` is Markdown, of at most 65,535 characters. ``target_url`` is its page, "" for none.
    """

    name: str
    conclusion: str
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    target_url: str = ""


@dataclass(frozen=True)
class MergedPull:
    """A merged pull request; ``head`` is its newest commit, ``merge_commit`` what ``base`` was then.

    The merge commit is that of a merge or a squash, or the last commit of a rebase. ``repository`` is that of
    ``base``, ``author`` who opened it, 0 for a deleted account, ``at`` when it was merged, ``labels`` what it
    has now.
    """

    number: int
    head: str
    base: str
    repository: int
    merge_commit: str
    author: int
    at: datetime
    labels: frozenset[str] = frozenset()


class ReviewState(StrEnum):
    """What a review says; one that was dismissed counts no more."""

    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    COMMENTED = "COMMENTED"
    DISMISSED = "DISMISSED"


@dataclass(frozen=True)
class Review:
    """A submitted review: ``commit`` is what the reviewer saw."""

    id: int
    reviewer: int
    login: str
    state: ReviewState
    commit: str
    at: datetime
    url: str
    text: str = ""


@dataclass(frozen=True)
class PullAuthors:
    """The accounts that wrote or committed the commits of a pull request.

    ``complete``: every commit has the accounts of all who wrote or committed it, and all were listed.
    """

    accounts: frozenset[int]
    complete: bool


class PullRequests(Protocol):
    """The pull requests of the fleet repository. Of a list that has no end, the result is None."""

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open pull requests into a branch, newest first, at most 100; their ``merge`` is None."""

    def pull(self, number: int) -> Pull | None:
        """Return a pull request, or None."""

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment that begins with the marker, or None; it ignores comments of others."""

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Create a comment, or replace ``over``; at most 65,536 characters."""

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Return what the newest runs of a check say of a commit, at most 100; "" for one that has not ended.

        Several services can run a check of one name.
        """

    def write_check(self, commit: str, check: Check) -> None:
        """Write the result of a check; raise Unauthorized without that capability."""

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged pull requests that brought a commit, at most 100; none for an unknown one."""

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the submitted reviews of a pull request by living accounts, oldest first; at most 1,000."""

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames, if it changes at most 1,000 files."""

    def pull_authors(self, number: int) -> PullAuthors:
        """Return who wrote the commits of a pull request."""

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of the team "owner/slug" and of the teams below it, at most 1,000.

        Raise Dependency for a team that the credential does not see, Unauthorized without the permission to
        read members.
        """


# Branches of our own in the fleet repository, and the pull requests that propose them.


@dataclass(frozen=True)
class NewCommit:
    """The last of ``parents`` with some files changed; the first parent is what the branch points to.

    ``files`` has the content of each by its path, None for one that is removed.
    """

    files: Mapping[str, bytes | None]
    message: str
    parents: Sequence[str]


@dataclass(frozen=True)
class PullText:
    """What a pull request says: at most 255 characters of title, and 65,536 of body."""

    title: str
    body: str


PLAN_STATUS = "roadstead/plan"
"""The context of the status that has the plan of a pull request; the branch may require it."""


class AutoMerge(StrEnum):
    """What became of asking a host to merge a pull request by itself; the value says who acts next."""

    ENABLED = "the host merges it once the rules of the branch allow that"
    MERGED = "it is merged"
    CLOSED = "it is closed: whoever closed it decides"
    MOVED = "somebody has pushed to it: a person reviews and merges it"
    NOT_ALLOWED = (
        "the repository does not allow auto-merge: an administrator turns it on in the settings of the "
        "repository, or a person merges it"
    )
    NO_RULES = (
        "no rule of the branch waits for anything, and then there is no auto-merge: an administrator has the "
        "branch require the status roadstead/plan, or on GitLab a pipeline, or a person merges it"
    )
    REFUSED = "the host refuses auto-merge, and the log has its reason: a person merges it"
    LACKING = "the host has no auto-merge: a person merges it"


def auto_merge_of(pull: Pull, head: str, *, enabled: bool) -> AutoMerge | None:
    """Return what a pull request shows of its auto-merge, None where that is to be enabled."""
    if pull.merged or not pull.open:
        return AutoMerge.MERGED if pull.merged else AutoMerge.CLOSED
    if pull.head != head:
        return AutoMerge.MOVED
    return AutoMerge.ENABLED if enabled else None


class OwnBranches(Protocol):
    """Writes to the fleet repository, which take permissions that no other part of Roadstead needs.

    Every method raises Unauthorized without them.
    """

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""

    def branches(self, prefix: str) -> Mapping[str, str]:
        """Return the branches whose names begin with a prefix, each with the commit that it points to."""

    def is_guarded(self, branch: str) -> bool:
        """Return whether a rule of the host keeps people from moving a branch of this name.

        There need be no such branch. A rule counts although some people may bypass it.
        """

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit that no branch has yet, and return its id."""

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Let a branch point to a commit: a new one without a ``tip``, or one that moves forward from it.

        Raise Conflict for a new branch of a name that there is, and for a commit that does not come after
        what the branch points to.
        """

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; one that does not exist is success."""

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a pull request of a branch, or return the one that is open."""

    def enable_auto_merge(self, number: int, head: str) -> AutoMerge:
        """Have the host merge a pull request once its own rules allow that, if ``head`` is its newest commit.

        No rule is bypassed: what waits for a check or a review goes on waiting. Where a host does not end it
        with the next push, the rules are asked of that commit too. Asking again changes nothing.
        """

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a pull request says; raise Dependency for one that does not exist."""

    def close_pull(self, number: int) -> None:
        """Close a pull request; one that is closed is success. Raise Dependency when there is none."""
