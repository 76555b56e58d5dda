"""What GitHub knows of the reviews of merged pull requests, and of the teams whose members wrote them.

People are GitHub's ids of their accounts: no rename changes one, and nobody else gets it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from shared.frozen import dataclass

_HIDDEN = re.compile(r"(\d+)\+[^@]+@users\.noreply\.github\.com", re.IGNORECASE)
"""docs.github.com, "Setting your commit email address"."""


def account_behind(address: str) -> int | None:
    """Return the id of the account that hides behind an address of GitHub; None for any other address."""
    found = _HIDDEN.fullmatch(address)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class MergedPull:
    """A merged pull request; ``head`` is its newest commit, ``merge_commit`` what ``base`` was then.

    The merge commit is that of a merge or a squash, or the last commit of a rebase. ``repository`` is the id
    of the repository that ``base`` is a branch of, ``author`` who opened it, 0 for a deleted account, ``at``
    when it was merged, by GitHub's clock, ``labels`` what it has now.
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
    """The state of a review, as in GitHub's REST API."""

    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    COMMENTED = "COMMENTED"
    DISMISSED = "DISMISSED"


@dataclass(frozen=True)
class Review:
    """A submitted review: ``commit`` is what the reviewer saw, ``at`` is by GitHub's clock."""

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


class Reviews(Protocol):
    """The reviews of the fleet repository's pull requests. Each list is read to its end, or is None."""

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
        read members; both messages say which permission that is.
        """
        ...
