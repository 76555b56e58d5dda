"""Commit statuses in GitLab: one for each name, which changes with its state alone until it has ended.

Sources: docs.gitlab.com/api/commits, "Set commit pipeline status" (states, a description of at most 255
characters); app/services/ci/create_commit_status_service.rb and app/models/concerns/ci/has_status.rb of
gitlab-org/gitlab (which status a write changes, and what is refused).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from localcloud.git.world.commit_statuses import Statuses, StatusRecord
from shared.cluster.failures.errors import InvalidManifest
from shared.ports import CommitStatus

STATES = ("pending", "running", "success", "failed", "canceled", "skipped")
MAX_DESCRIPTION = 255
MAX_TARGET = 255
"""app/models/generic_commit_status.rb of gitlab-org/gitlab."""
_RUNS = ("pending", "running")
_EVENTS = {"pending": "enqueue", "running": "run"}


def _name(status: CommitStatus) -> str:
    return status.context


class JobStatuses(Statuses):
    """The statuses of one project; GitLab itself keeps one for each number."""

    key = staticmethod(_name)

    def add(self, commit: str, status: CommitStatus, ref: str = "main") -> StatusRecord:
        """Write a status; raise InvalidManifest for what GitLab answers 400."""
        _check(status)
        with self._lock:
            written = self._by_commit.setdefault(commit, [])
            own = [job for job in written if job.status.context == status.context]
            if own and own[-1].status.state in _RUNS:
                _check_transition(own[-1].status.state, status.state)
                number, at = own[-1].id, own[-1].created_at
            else:
                number, at = next(self._numbers), self._clock()
            written.append(StatusRecord(number, status, at, ref))
            return written[-1]


def _check_transition(before: str, after: str) -> None:
    if after in _EVENTS and (after == before or after == "pending"):
        event = _EVENTS[after]
        raise InvalidManifest(
            f"Cannot transition status via :{event} from :{before} (Reason(s): Status cannot transition via "
            f'"{event}")'
        )


def _check(status: CommitStatus) -> None:
    if status.state not in STATES:
        raise InvalidManifest("state does not have a valid value")
    if len(status.description) > MAX_DESCRIPTION:
        raise InvalidManifest(f"description is too long (maximum is {MAX_DESCRIPTION} characters)")
    if status.target_url and urlsplit(status.target_url).scheme not in ("http", "https"):
        raise InvalidManifest("target_url is blocked: Only allowed schemes are http, https")
    if len(status.target_url) > MAX_TARGET:
        raise InvalidManifest(f"target_url is too long (maximum is {MAX_TARGET} characters)")
