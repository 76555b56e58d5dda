"""Reviews of pull requests, by GitHub's rules.

Source: docs.github.com/rest/pulls/reviews. A review has a body unless it approves; nobody approves, or
requests changes of, a pull request of their own; only an approval and a request for changes can be dismissed.
A merged pull request takes reviews as well (github.com/cli/cli/issues/5038).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Protocol

from localcloud.git.world.people import Person
from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports import Clock

EVENTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_DISMISSIBLE = ("APPROVED", "CHANGES_REQUESTED")


class Reviewable(Protocol):
    """What a review needs of a pull request."""

    @property
    def number(self) -> int:
        """Its number."""
        ...

    @property
    def sha(self) -> str:
        """Its newest commit."""
        ...

    @property
    def author(self) -> str:
        """The login of who opened it."""
        ...


@dataclass(frozen=True)
class ReviewRecord:
    """A submitted review."""

    id: int
    pull: int
    author: Person
    state: str
    body: str
    commit: str
    at: datetime
    given: str = ""
    """The state that it had before it was dismissed."""


class ReviewList:
    """The reviews of one repository."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._ids = clock, count(1)
        self._reviews: dict[int, ReviewRecord] = {}

    def submit(self, pull: Reviewable, author: Person, event: str, body: str = "") -> ReviewRecord:
        """Write a review of the newest commit; raise InvalidManifest for what GitHub answers 422."""
        state = EVENTS.get(event)
        if state is None:
            raise InvalidManifest(f"event must be one of {', '.join(EVENTS)}")
        if author.login == pull.author and event != "COMMENT":
            what = "approve" if event == "APPROVE" else "request changes on"
            raise InvalidManifest(f"Can not {what} your own pull request")
        if event != "APPROVE" and not body.strip():
            raise InvalidManifest("body cannot be blank")
        record = ReviewRecord(
            next(self._ids), pull.number, author, state, body, pull.sha, self._clock(), state
        )
        self._reviews[record.id] = record
        return record

    def dismiss(self, number: int) -> ReviewRecord:
        """Dismiss a review; raise Dependency or InvalidManifest."""
        found = self._reviews.get(number)
        if found is None:
            raise Dependency(f"no review {number}")
        if found.state not in _DISMISSIBLE:
            raise InvalidManifest(f"Can not dismiss a {found.state.lower()} pull request review")
        self._reviews[number] = replace(found, state="DISMISSED")
        return self._reviews[number]

    def of(self, pull: int) -> Sequence[ReviewRecord]:
        """Return the reviews of a pull request, oldest first."""
        return [review for review in self._reviews.values() if review.pull == pull]
