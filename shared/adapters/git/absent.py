"""What git alone does not have: reads find nothing, and writes are refused, as the port says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from shared.cluster.failures.errors import Unauthorized
from shared.ports.git_host import Capability, HookDelivery
from shared.ports.pull_requests import Comment, MergedPull, Pull, PullAuthors


def _refused(capability: Capability) -> Any:
    """Return a method that raises Unauthorized, whatever it is given."""

    def refuse(*_given: object, **_named: object) -> NoReturn:
        raise Unauthorized(f"a git server has no {capability.value}")

    return refuse


class AbsentMethods:
    """The methods of a host that git alone does not have."""

    set_status = _refused(Capability.STATUSES)
    write_comment = _refused(Capability.PULLS)
    conclusions = _refused(Capability.CHECKS)
    """A stage that waits for a check must not take none for passed ones."""
    write_check = _refused(Capability.WRITTEN_CHECKS)
    reviews = team_members = _refused(Capability.REVIEWS)
    tip = branches = is_guarded = _refused(Capability.PROPOSALS)
    add_commit = move_branch = delete_branch = _refused(Capability.PROPOSALS)
    open_pull = edit_pull = close_pull = _refused(Capability.PROPOSALS)
    enable_auto_merge = _refused(Capability.AUTO_MERGE)
    newest_issues = _refused(Capability.FORMS)
    find_issue = open_issue = comment_issue = close_issue = _refused(Capability.ISSUES)

    def permissions(self) -> Mapping[str, str] | None:
        """Return None: git does not say what a credential may."""
        return None

    def deliveries(self) -> Sequence[HookDelivery] | None:
        """Return None: nothing is delivered."""
        return None

    def pushed_at(self, branch: str, commit: str) -> datetime | None:
        """Return None: git has no log of pushes that a client reads.

        GitLab's has the times of jobs in the background: app/workers/post_receive.rb of gitlab-org/gitlab.
        """
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

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return none."""
        return ()

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return None: unknown."""
        return None

    def pull_authors(self, number: int) -> PullAuthors:
        """Return that nobody is known."""
        return PullAuthors(frozenset(), complete=False)
