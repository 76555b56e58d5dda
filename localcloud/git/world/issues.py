"""The issues of one repository in GitHub (docs.github.com/rest/issues/issues and .../comments).

A title has 1 to 256 characters, a body and a comment at most 65,536. Issues and pull requests share their
numbers. An issue that was deleted is answered with 410.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.ports import Clock

MAX_TITLE = 256
MAX_BODY = 65_536


DELETED = "IssueDeleted"
"""The code of the error about an issue that an administrator deleted."""


@dataclass(frozen=True)
class IssueRecord:
    """An issue; ``comments`` are the bodies of its comments, oldest first, ``commenters`` by whom each is."""

    number: int
    title: str
    body: str
    author: str
    created_at: datetime
    state: str = "open"
    state_reason: str | None = None
    comments: tuple[str, ...] = ()
    commenters: tuple[str, ...] = field(default=(), compare=False)
    edited_at: datetime | None = None


@dataclass
class IssueStore:
    """The issues of a repository; ``numbers`` are those of its pull requests, too."""

    numbers: Iterator[int]
    clock: Clock
    most_title: int = MAX_TITLE
    most_text: int = MAX_BODY
    most_comment: int = MAX_BODY
    _issues: dict[int, IssueRecord] = field(default_factory=dict)
    _deleted: set[int] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def create(self, title: str, body: str, author: str) -> IssueRecord:
        """Create an issue; raise InvalidManifest for what GitHub answers 422."""
        if not 1 <= len(title) <= self.most_title or len(body) > self.most_text:
            most = f"{self.most_title} and {self.most_text}"
            raise InvalidManifest(f"title or body is too long (maximum is {most} characters)")
        with self._lock:
            record = IssueRecord(next(self.numbers), title, body, author, self.clock())
            self._issues[record.number] = record
            return record

    def get(self, number: int) -> IssueRecord | None:
        """Return an issue, or None."""
        with self._lock:
            return self._issues.get(number)

    def listed(self, *, state: str = "open") -> Sequence[IssueRecord]:
        """Return the issues in a state, newest first."""
        with self._lock:
            found = [issue for issue in self._issues.values() if state in ("all", issue.state)]
        return sorted(found, key=lambda issue: issue.number, reverse=True)

    def comment(self, number: int, body: str, author: str) -> None:
        """Write a comment; raise Dependency for an issue that does not exist."""
        if not body.strip() or len(body) > self.most_comment:
            raise InvalidManifest(f"Body is blank, or too long (maximum is {self.most_comment} characters)")
        with self._lock:
            found = self._known(number)
            self._issues[number] = replace(
                found, comments=(*found.comments, body), commenters=(*found.commenters, author)
            )

    def change(self, number: int, *, state: str, state_reason: str | None) -> IssueRecord:
        """Open or close an issue."""
        with self._lock:
            self._issues[number] = replace(self._known(number), state=state, state_reason=state_reason)
            return self._issues[number]

    def edit(self, number: int, body: str) -> None:
        """Replace the text of an issue, as its author does, and everybody who may write."""
        with self._lock:
            self._issues[number] = replace(self._known(number), body=body, edited_at=self.clock())

    def delete(self, number: int) -> None:
        """Delete an issue, as an administrator does."""
        with self._lock:
            del self._issues[number]
            self._deleted.add(number)

    def _known(self, number: int) -> IssueRecord:
        if number in self._deleted:
            raise Dependency("This issue was deleted", code=DELETED)
        if number not in self._issues:
            raise Dependency("Not Found")
        return self._issues[number]
