"""Which review approves the deletes of a plan. Pure.

It is an approving review, by a member of a named team, of exactly the commit of the pull request that was
merged as exactly the planned commit, and that pull request itself removes every cluster whose delete needs
approval: so the reviewer saw each removal, also when the merge brought other changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from shared.cluster.review_check import IgnoredReview
from shared.frozen import dataclass
from shared.language.resolve.repository_layout import cluster_path
from shared.ports import MergedPull, PlanRecord, PullAuthors, Review, ReviewState

PLANNING = timedelta(minutes=5)
"""How long after a merge a plan of the commit before it may be saved, which was read before."""
_DECISIVE = (ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED, ReviewState.DISMISSED)
"""A comment leaves what its author said before; a dismissed review takes it back."""


def pull_of(commit: str, branch: str, repository: int, pulls: Sequence[MergedPull]) -> MergedPull | None:
    """Return the pull request that was merged as a commit into a branch of a repository, None for none."""
    merged = (commit, branch, repository)
    return next((p for p in pulls if (p.merge_commit, p.base, p.repository) == merged), None)


def standing(reviews: Sequence[Review]) -> Sequence[Review]:
    """Return what each reviewer said last, newest first, of reviews from the oldest to the newest."""
    last: dict[int, Review] = {}
    for review in reviews:
        if review.state in _DECISIVE:
            last.pop(review.reviewer, None)
            last[review.reviewer] = review
    return list(reversed(last.values()))


def not_removed(clusters: Collection[str], removed_files: Collection[str]) -> Sequence[str]:
    """Return the clusters whose manifests a pull request does not remove, by name."""
    return sorted(name for name in clusters if cluster_path(name) not in removed_files)


def left_at(commit: str, pull: MergedPull, plans: Sequence[PlanRecord]) -> datetime | None:
    """Return when another commit was planned last after the merge, None if the branch never left it.

    Whoever set the branch back has undone the merge, and an earlier review is no approval of it any more. A
    plan of the commit before the merge may end shortly after it.
    """
    others = [record.at for record in plans if record.plan.commit != commit]
    return max((at for at in others if at > pull.at + PLANNING), default=None)


@dataclass(frozen=True)
class Approvals:
    """The approving reviews that count so far, newest first, and why each other one does not, by login."""

    counting: tuple[Review, ...]
    ignored: Mapping[str, IgnoredReview]

    def without(self, why: Mapping[int, IgnoredReview]) -> Approvals:
        """Return the approvals without those of some reviewers."""
        left = tuple(review for review in self.counting if review.reviewer not in why)
        refused = {r.login: why[r.reviewer] for r in self.counting if r.reviewer in why}
        return Approvals(left, {**self.ignored, **refused})

    def of_commit(self, head: str) -> Approvals:
        """Return those of a commit."""
        return self.without(
            {r.reviewer: IgnoredReview.EARLIER_COMMIT for r in self.counting if r.commit != head}
        )

    def after(self, moment: datetime | None, otherwise: IgnoredReview) -> Approvals:
        """Return those that were given after a moment; None is before all of them."""
        if moment is None:
            return self
        return self.without({r.reviewer: otherwise for r in self.counting if r.at <= moment})

    def of_members(self, members: Collection[int]) -> Approvals:
        """Return those of members."""
        return self.without(
            {r.reviewer: IgnoredReview.NO_MEMBER for r in self.counting if r.reviewer not in members}
        )

    def of_others(self, opened_by: int, authors: PullAuthors) -> Approvals:
        """Return those of reviewers who surely wrote nothing of the pull request."""
        unknown = (
            {} if authors.complete else {r.reviewer: IgnoredReview.UNKNOWN_AUTHORS for r in self.counting}
        )
        own = dict.fromkeys((opened_by, *authors.accounts), IgnoredReview.AUTHOR)
        return self.without({**unknown, **own})


def approvals_among(reviews: Sequence[Review]) -> Approvals:
    """Return the approvals among what each reviewer said last."""
    return Approvals(tuple(r for r in reviews if r.state is ReviewState.APPROVED), {})


def objection(reviews: Sequence[Review], members: Collection[int]) -> Review | None:
    """Return a member's request for changes, None where there is none."""
    requested = (r for r in reviews if r.state is ReviewState.CHANGES_REQUESTED)
    return next((r for r in requested if r.reviewer in members), None)
