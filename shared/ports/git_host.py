"""The port of a git host: what a fleet needs of any host.

Every error says what the caller does next (``shared.cluster.failures.errors``). Throttled: ask after so many
seconds. Unavailable: ask again. Dependency: it is not there, or the credential does not see it. Conflict:
somebody wrote meanwhile, so read again. InvalidManifest: the host refuses what it was given. Unauthenticated,
Unauthorized and Withheld: a person acts; the message says which permission, or which name, is missing.

Accounts, and the repository, are ids of the host: no rename changes one, and nobody else gets it. Times are
by the host's clock, in whole seconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from shared.masking import cut, without_secrets

# The repository, and the statuses of its commits.

CREDENTIAL_SOON = timedelta(days=30)
"""So long before its end a credential is a problem. It does not make the app less ready."""
DESCRIPTION_LIMIT = 140
"""Characters of a status; GitHub takes no more (docs.github.com/rest/commits/statuses)."""
_CO_AUTHOR = re.compile(r"(?im)^[ \t]*co-authored-by:[^<>\n]*<([^<>\s]+)>[ \t]*\r?$")
"""docs.github.com, "Creating a commit with multiple authors". A squash has the messages of its commits."""


def status_line(text: str) -> str:
    """Return the description of a commit status: one line without control characters, short enough."""
    text = without_secrets(text, DESCRIPTION_LIMIT)
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return cut(line, DESCRIPTION_LIMIT, "...")


def co_authors(message: str) -> frozenset[str]:
    """Return the addresses of those who the message of a commit says wrote it too, in lower case."""
    return frozenset(address.lower() for address in _CO_AUTHOR.findall(message))


@dataclass(frozen=True)
class BranchHead:
    """The commit that a branch pointed to, when the host stated it, and the id of the repository.

    ``credential_expires`` is when the token ends with which it was read, as the host says it; None for one
    that does not end, or that the app renews by itself.
    """

    commit: str
    at: datetime
    repository: int
    credential_expires: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Change:
    """A commit that changed something, the addresses of its author and its committer, and its message.

    Git takes an address as its author states it, here in lower case; "" for none.
    """

    commit: str
    author: str
    committer: str
    message: str = field(default="", compare=False)

    @property
    def people(self) -> frozenset[str]:
        """Who wrote and committed it."""
        return frozenset(filter(None, (self.author, self.committer))) | co_authors(self.message)


@dataclass(frozen=True)
class TreeEntry:
    """A file in a git tree: path from the root, blob id, size in bytes, and whether it is a plain file."""

    path: str
    sha: str
    size: int
    plain: bool = True


@dataclass(frozen=True)
class CommitStatus:
    """What the host shows on a commit; ``state`` is pending, success, failure or error.

    The description is as ``status_line`` makes it. Of each context the newest status counts.
    """

    state: str
    description: str
    context: str
    target_url: str = ""


class Repository(Protocol):
    """The fleet repository."""

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to; raise Dependency when there is no such branch."""
        ...

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit is a descendant of another, or equal to it; False when either is unknown.

        Unlike the head of a branch, the result is never stale once both commits are known.
        """
        ...

    def changes(self, commit: str, path: str, most: int) -> Sequence[Change]:
        """Return the newest commits, up to this one, that changed something at or below a path, newest first.

        "" is the path of everything: every commit counts then. ``most`` is at most 100. Raise Dependency for
        an unknown commit.
        """
        ...

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[Change] | None:
        """Return the commits up to this one that an earlier one does not have; None for more than ``most``.

        Raise Dependency for an unknown commit, or two without a common ancestor.
        """
        ...

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when the response is truncated or partial."""
        ...

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""
        ...

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit, however many, from one download.

        A file may be missing, or differ from the tree (git's export attributes can do that): compare each
        with its blob id. Raise Unavailable when the download is truncated, malformed or too large.
        """
        ...

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status."""
        ...


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

    ``summary`` is Markdown, of at most 65,535 characters.
    """

    name: str
    conclusion: str
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()


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

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Return what the newest runs of a check say of a commit, at most 100; "" for one that has not ended.

        Several services can run a check of one name.
        """
        ...

    def write_check(self, commit: str, check: Check) -> None:
        """Write the result of a check; raise Unauthorized without that capability."""
        ...

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged pull requests that brought a commit, at most 100; none for an unknown one."""
        ...

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the submitted reviews of a pull request by living accounts, oldest first; at most 1,000."""
        ...

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames, if it changes at most 1,000 files."""
        ...

    def pull_authors(self, number: int) -> PullAuthors:
        """Return who wrote the commits of a pull request."""
        ...

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of the team "owner/slug" and of the teams below it, at most 1,000.

        Raise Dependency for a team that the credential does not see, Unauthorized without the permission to
        read members.
        """
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
    """What a pull request says: at most 256 characters of title, and 65,536 of body."""

    title: str
    body: str


class Proposing(Protocol):
    """Writes to the fleet repository, which take permissions that no other part of Roadstead needs.

    Every method raises Unauthorized without them.
    """

    def tip(self, branch: str) -> str | None:
        """Return the commit that a branch points to, None when there is no such branch."""
        ...

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit that no branch has yet, and return its id."""
        ...

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Let a branch point to a commit: a new one without a ``tip``, or one that moves forward from it.

        Raise Conflict for a new branch of a name that there is, and for a commit that does not come after
        what the branch points to.
        """
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


# The host, and what it may lack.


class Capability(StrEnum):
    """What a host, or the credential for it, may lack: its methods then raise Unauthorized.

    Whoever has another way asks before calling. The value says what a fleet loses.
    """

    CHECKS = "checks: a stage with githubChecks waits"
    WRITTEN_CHECKS = "check runs of our own: a pull request has a commit status and a comment, no annotations"
    REVIEWS = "reviews: none approves a delete, and people approve it with the command"
    PROPOSALS = "branches of our own: no pull request proposes drift, a promotion or a rollback"
    ISSUES = "issues: a route of the type github delivers nothing"


class Addressee(StrEnum):
    """Whose an address in a commit is."""

    PERSON = "person"
    HIDDEN = "hidden"
    """A person's, which the host shows instead of the real one."""
    NOBODY = "nobody"
    """That of the host, or of an app: nobody who approves."""


class GitHost(Repository, PullRequests, Proposing, Issues, Protocol):
    """The host of the fleet repository."""

    @property
    def name(self) -> str:
        """What people call it: GitHub."""
        ...

    @property
    def credential(self) -> str:
        """The setting with the credential whose end the host states."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do with the credential that it has."""
        ...

    def addressee(self, address: str) -> Addressee:
        """Return whose an address in lower case is, as far as the host's own rules say it; no call."""
        ...
