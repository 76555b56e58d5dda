"""The fleet repository on GitHub, and the statuses of its commits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from shared.frozen import dataclass, field
from shared.masking import cut, without_secrets


@dataclass(frozen=True)
class TreeEntry:
    """A file in a git tree: path from the root, blob id, size in bytes, and whether it is a plain file."""

    path: str
    sha: str
    size: int
    plain: bool = True


CREDENTIAL_SETTING = "GITHUB_TOKEN"
"""The setting with the credential whose end GitHub states."""
CREDENTIAL_SOON = timedelta(days=30)
"""So long before its end a credential is a problem. It does not make the app less ready."""
DESCRIPTION_LIMIT = 140
"""Characters; docs.github.com/rest/commits/statuses."""


def status_line(text: str) -> str:
    """Return the description of a commit status: one line without control characters, short enough."""
    text = without_secrets(text, DESCRIPTION_LIMIT)
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return cut(line, DESCRIPTION_LIMIT, "...")


@dataclass(frozen=True)
class CommitStatus:
    """What GitHub shows on a commit; ``state`` is pending, success, failure or error.

    GitHub's limits: a description as ``status_line`` makes it; one status per context, the newest counts.
    """

    state: str
    description: str
    context: str
    target_url: str = ""


@dataclass(frozen=True)
class BranchHead:
    """The commit that a branch pointed to, and when GitHub stated it, in whole seconds by GitHub's clock.

    ``repository`` is GitHub's id of the repository, which no rename changes and no other repository gets.
    ``credential_expires`` is when the token ends with which it was read, as GitHub says it; None for one that
    does not end, or that the app renews by itself.
    """

    commit: str
    at: datetime
    repository: int
    credential_expires: datetime | None = field(default=None, compare=False)


_CO_AUTHOR = re.compile(r"(?im)^[ \t]*co-authored-by:[^<>\n]*<([^<>\s]+)>[ \t]*\r?$")
"""docs.github.com, "Creating a commit with multiple authors". A squash has the messages of its commits."""


def co_authors(message: str) -> frozenset[str]:
    """Return the addresses of those who the message of a commit says wrote it too, in lower case."""
    return frozenset(address.lower() for address in _CO_AUTHOR.findall(message))


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
