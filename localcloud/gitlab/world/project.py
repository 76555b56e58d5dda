"""A project: its repository, its merge requests, its statuses and its issues.

Sources: docs.gitlab.com/api/merge_requests, /api/issues (1,048,576 characters of a description), /api/notes
(1,000,000 of a note); app/models/concerns/issuable.rb of gitlab-org/gitlab (255 of a title);
docs.gitlab.com/api/merge_requests, "Retrieve merge request diff versions". Issues and merge requests have
numbers of their own. A branch without commits may have a merge request.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from pathlib import Path

from localcloud.common.clock import system_clock
from localcloud.git.world.branches import Branches
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.issues import IssueStore
from localcloud.git.world.pull_requests import PullRecord, Pulls
from localcloud.git.world.reviews import ReviewRecord
from localcloud.gitlab.world.job_statuses import JobStatuses
from shared.cluster.failures.errors import InvalidManifest
from shared.ports import Clock

MAX_TITLE = 255
MAX_DESCRIPTION = 1_048_576
MAX_NOTE = 1_000_000


def _check_text(title: str, body: str) -> None:
    if not 1 <= len(title) <= MAX_TITLE:
        raise InvalidManifest(f"title is too long (maximum is {MAX_TITLE} characters)")
    if len(body) > MAX_DESCRIPTION:
        raise InvalidManifest(f"description is too long (maximum is {MAX_DESCRIPTION} characters)")


def _check_note(body: str) -> None:
    if not body.strip():
        raise InvalidManifest("note can't be blank")
    if len(body) > MAX_NOTE:
        raise InvalidManifest(f"note is too long (maximum is {MAX_NOTE} characters)")


class MergeRequests(Pulls):
    """The merge requests of a project, with the versions that each one had."""

    check_text, check_comment = staticmethod(_check_text), staticmethod(_check_note)
    takes_empty = True

    def __init__(self, branches: Branches, clock: Clock) -> None:
        super().__init__(branches, clock)
        self.issues = IssueStore(count(1), clock, MAX_TITLE, MAX_DESCRIPTION, MAX_NOTE)
        self._versions: dict[int, list[tuple[datetime, str]]] = {}

    def waits(self, record: PullRecord) -> bool:
        """Return whether GitLab merges it only after its pipeline, and that has not succeeded."""
        return bool(self.required_checks) and not self._passed(record)

    def _passed(self, pull: PullRecord) -> bool:
        """Return whether the pipeline of the newest commit has succeeded: its jobs here are statuses."""
        jobs = self._branches.statuses.latest(pull.sha)
        return bool(jobs) and all(job.status.state == "success" for job in jobs)

    def get(self, number: int) -> PullRecord | None:
        """Return a merge request with its newest commit, or None; a new commit is a new version."""
        found = super().get(number)
        if found is not None:
            known = self._versions.setdefault(number, [(found.created_at, found.sha)])
            if known[-1][1] != found.sha:
                known.append((self._clock(), found.sha))
                found = self.change(number, auto_merge="")  # a push ends auto-merge
        return found

    def versions(self, number: int) -> Sequence[tuple[datetime, str]]:
        """Return when each version came, and its newest commit, newest first."""
        self.get(number)
        return list(reversed(self._versions.get(number, [])))

    def said(self, number: int, state: str) -> Sequence[ReviewRecord]:
        """Return the reviews of people whose last decision is in a state: GitLab shows no former ones."""
        last: dict[str, ReviewRecord] = {}
        for review in self.reviews.of(number):
            if review.state != "COMMENTED":
                last[review.author.login] = review
        return [review for review in last.values() if review.state == state]


class Project(GitRepository):
    """A project on disk."""

    def __init__(self, path: Path, *, clock: Clock = system_clock) -> None:
        super().__init__(path, clock=clock)
        self.statuses: JobStatuses = JobStatuses(clock)
        self.pulls: MergeRequests = MergeRequests(self, clock)
