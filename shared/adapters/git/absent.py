"""What git alone does not have: reads find nothing, and writes are refused, as the port says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from shared.cluster.failures.errors import Unauthorized
from shared.ports.git_host import Capability, CommitStatus, HookDelivery, Issue
from shared.ports.pull_requests import (
    AutoMerge,
    Check,
    Comment,
    MergedPull,
    NewCommit,
    Pull,
    PullAuthors,
    PullText,
    Review,
)


def _refuse(capability: Capability) -> NoReturn:
    raise Unauthorized(f"a git server has no {capability.value}")


class Absent:
    """The methods of a host that git alone does not have."""

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Refuse: git has no statuses."""
        _refuse(Capability.STATUSES)

    def permissions(self) -> Mapping[str, str] | None:
        """Return None: git does not say what a credential may."""
        return None

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return None: nothing is delivered."""
        return None

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return none."""
        return ()

    def pull(self, number: int) -> Pull | None:
        """Return None."""
        return None

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return None."""
        return None

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Refuse."""
        _refuse(Capability.PULLS)

    def conclusions(self, commit: str, check: str) -> Sequence[str]:
        """Refuse: a stage that waits for a check must not take none for passed ones."""
        _refuse(Capability.CHECKS)

    def write_check(self, commit: str, check: Check) -> None:
        """Refuse."""
        _refuse(Capability.WRITTEN_CHECKS)

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return none."""
        return ()

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Refuse."""
        _refuse(Capability.REVIEWS)

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return None: unknown."""
        return None

    def pull_authors(self, number: int) -> PullAuthors:
        """Return that nobody is known."""
        return PullAuthors(frozenset(), complete=False)

    def team_members(self, team: str) -> frozenset[int] | None:
        """Refuse."""
        _refuse(Capability.REVIEWS)

    def tip(self, branch: str) -> str | None:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def branches(self, prefix: str) -> Mapping[str, str]:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def is_guarded(self, branch: str) -> bool:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def add_commit(self, commit: NewCommit) -> str:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def delete_branch(self, branch: str) -> None:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def enable_auto_merge(self, number: int, head: str) -> AutoMerge:
        """Refuse."""
        _refuse(Capability.AUTO_MERGE)

    def edit_pull(self, number: int, text: PullText) -> None:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def close_pull(self, number: int) -> None:
        """Refuse."""
        _refuse(Capability.PROPOSALS)

    def newest_issues(self) -> Sequence[Issue]:
        """Refuse."""
        _refuse(Capability.FORMS)

    def find_issue(self, marker: str) -> int | None:
        """Refuse."""
        _refuse(Capability.ISSUES)

    def open_issue(self, title: str, body: str) -> int:
        """Refuse."""
        _refuse(Capability.ISSUES)

    def comment_issue(self, number: int, body: str) -> None:
        """Refuse."""
        _refuse(Capability.ISSUES)

    def close_issue(self, number: int) -> None:
        """Refuse."""
        _refuse(Capability.ISSUES)
