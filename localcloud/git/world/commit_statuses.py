"""Commit statuses in GitHub: a history for each commit and context, whose newest entry counts.

GitHub's rules hold (docs.github.com/rest/commits/statuses): four states, a description of at most 140
characters, an http(s) target, and at most 1,000 statuses for one commit and context, whatever its case.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from shared.cluster.failures.errors import InvalidManifest
from shared.ports import Clock, CommitStatus

STATES = ("error", "failure", "pending", "success")
MAX_DESCRIPTION = 140
MAX_PER_CONTEXT = 1000


@dataclass(frozen=True)
class StatusRecord:
    """A status that was written: its number, its content, its time, and the branch that it is shown with."""

    id: int
    status: CommitStatus
    created_at: datetime
    ref: str = "main"


def _context(status: CommitStatus) -> str:
    return status.context.casefold()


class Statuses:
    """The statuses of one repository, by commit."""

    key = staticmethod(_context)
    """What makes two statuses of a commit the same one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._by_commit: dict[str, list[StatusRecord]] = {}

    def add(self, commit: str, status: CommitStatus) -> StatusRecord:
        """Record a status; raise InvalidManifest when GitHub would answer 422."""
        _check(status)
        with self._lock:
            records = self._by_commit.setdefault(commit, [])
            if sum(_context(r.status) == _context(status) for r in records) >= MAX_PER_CONTEXT:
                raise InvalidManifest("This SHA and context has reached the maximum number of statuses.")
            record = StatusRecord(next(self._numbers), status, self._clock())
            records.append(record)
            return record

    def history(self, commit: str) -> Sequence[StatusRecord]:
        """Return every status of a commit, newest first."""
        with self._lock:
            return list(reversed(self._by_commit.get(commit, [])))

    def latest(self, commit: str) -> Sequence[StatusRecord]:
        """Return the newest status of each context, newest first."""
        seen: dict[str, StatusRecord] = {}
        for record in self.history(commit):
            seen.setdefault(self.key(record.status), record)
        return list(seen.values())


def combined(records: Sequence[StatusRecord]) -> str:
    """Return GitHub's combined state of the latest statuses: failure, pending or success."""
    states = {record.status.state for record in records}
    if states & {"error", "failure"}:
        return "failure"
    return "success" if states == {"success"} else "pending"


def _check(status: CommitStatus) -> None:
    if status.state not in STATES:
        raise InvalidManifest("state is not included in the list")
    if len(status.description) > MAX_DESCRIPTION:
        raise InvalidManifest(f"description is too long (maximum is {MAX_DESCRIPTION} characters)")
    if status.target_url and not status.target_url.startswith(("http://", "https://")):
        raise InvalidManifest("target_url must use http(s) scheme")
