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
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from shared.frozen import dataclass, field
from shared.masking import cut, without_secrets
from shared.ports.pull_requests import OwnBranches, PullRequests

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
class BranchCommit:
    """A commit that changed something, the addresses of its author and its committer, and its message.

    Git takes an address as its author states it, here in lower case; "" for none. Of its ``parents``, the
    first is what it changes.
    """

    commit: str
    author: str
    committer: str
    message: str = field(default="", compare=False)
    parents: tuple[str, ...] = field(default=(), compare=False)

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

    The description is as ``status_line`` makes it. Of each context the newest status counts. ``pull`` is the
    number of the pull request that it is about, 0 for none: some hosts show a status there only if it has it.
    """

    state: str
    description: str
    context: str
    target_url: str = ""
    pull: int = field(default=0, compare=False)


@dataclass(frozen=True)
class HookDelivery:
    """An attempt to deliver an event to the app; attempts of one event have one ``event_id``.

    ``status`` is that of the app's answer, 0 for none.
    """

    event_id: str
    kind: str
    at: datetime
    status: int

    @property
    def arrived(self) -> bool:
        """Whether the app took it."""
        return 200 <= self.status < 300


class Repository(Protocol):
    """The fleet repository."""

    def read_head(self, branch: str) -> BranchHead:
        """Return the commit that the branch points to; raise Dependency when there is no such branch."""

    def pushed_at(self, branch: str, commit: str) -> datetime | None:
        """Return when the newest push of a branch brought it to a commit; None where the host's log has none.

        Nobody who pushes can write that log.
        """

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit is a descendant of another, or equal to it; False when either is unknown.

        Unlike the head of a branch, the result is never stale once both commits are known.
        """

    def changes(self, commit: str, path: str, most: int) -> Sequence[BranchCommit]:
        """Return the newest commits, up to this one, that changed something at or below a path, newest first.

        "" is the path of everything: every commit counts then. ``most`` is at most 100. Raise Dependency for
        an unknown commit.
        """

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[BranchCommit] | None:
        """Return the commits up to this one that an earlier one does not have; None for more than ``most``.

        Raise Dependency for an unknown commit, or two without a common ancestor.
        """

    def files_between(self, commit: str, earlier: str) -> Sequence[str]:
        """Return the paths of the files that differ between a commit and an ancestor, 300 at most.

        Raise Dependency for an unknown commit.
        """

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit; raise Unavailable when the response is truncated or partial."""

    def blob(self, sha: str) -> bytes:
        """Return a file's content by its blob id; raise Dependency when there is none."""

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return the plain files at these paths of a commit, however many, from one download.

        A file may be missing, or differ from the tree (git's export attributes can do that): compare each
        with its blob id. Raise Unavailable when the download is truncated, malformed or too large.
        """

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status."""


@dataclass(frozen=True)
class Issue:
    """An open issue: by which person, its text of now, and when it was opened.

    ``edited``: somebody has changed the text since, and nobody says what it was.
    """

    number: int
    login: str
    account: int
    body: str
    at: datetime
    edited: bool = False


class Issues(Protocol):
    """The issues of the fleet repository."""

    def newest_issues(self) -> Sequence[Issue]:
        """Return what people have opened, of the newest hundred open issues, newest first."""

    def find_issue(self, marker: str) -> int | None:
        """Return the number of our newest open issue whose text begins with the marker, or None."""

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue, and return its number."""

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment; raise Dependency for an issue that no longer exists."""

    def close_issue(self, number: int) -> None:
        """Close an issue; one that is closed is success. Raise Dependency for one that no longer exists."""


# The host, and what it may lack.


class Capability(StrEnum):
    """What a host, or the credential for it, may lack: its methods then raise Unauthorized.

    Whoever has another way asks before calling. The value says what a fleet loses.
    """

    STATUSES = "commit statuses: the state of a commit is in the command, the console and the API alone"
    PULLS = "pull requests: a change has its plan once it is on the branch, and nobody sees one before"
    CHECKS = "checks: a stage with commitChecks waits"
    WRITTEN_CHECKS = "check runs of our own: a pull request has a commit status and a comment, no annotations"
    REVIEWS = "reviews: none approves a delete, and people approve it with the command"
    PROPOSALS = (
        "branches of our own: a pin is a commit, no pull request proposes drift, a promotion or a rollback"
    )
    AUTO_MERGE = "auto-merge: a person merges every cluster by request, and every end of a lifetime"
    ISSUES = "issues: a route of the type issues delivers nothing"
    FORMS = "issue forms: nobody asks for a cluster by an issue"
    WEBHOOKS = "webhooks: a timer looks for commits, and `roadstead sync` looks at once"


class Addressee(StrEnum):
    """Whose an address in a commit is."""

    PERSON = "person"
    HIDDEN = "hidden"
    """A person's, which the host shows instead of the real one."""
    NOBODY = "nobody"
    """That of the host, or of an app: nobody who approves."""


class GitHost(Repository, PullRequests, OwnBranches, Issues, Protocol):
    """The host of the fleet repository."""

    @property
    def name(self) -> str:
        """What people call it: GitHub. With hyphens, in lower case, that is its ``GIT_HOST``."""

    @property
    def credential(self) -> str:
        """The setting with the credential whose end the host states."""

    @property
    def to_read_another(self) -> str:
        """What a person does so that the app may read another repository, as a remedy says it."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do with the credential that it has."""

    def permissions(self) -> Mapping[str, str] | None:
        """Return what the credential may: "read" or "write", by the host's names; None for unknown.

        Raise Unauthorized for one of which the host says that it may write nothing.
        """

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return the newest attempts to deliver events to the app, at most 100, newest first.

        None for a credential that may not see them. Raise Dependency where the host has stopped to deliver.
        """

    def other(self, repository: str) -> GitHost:
        """Return another repository of the host, "owner/name", with the same credential; no call."""

    def addressee(self, address: str) -> Addressee:
        """Return whose an address in lower case is, as far as the host's own rules say it; no call."""
