"""Mutations of approvals by reviews: each lets a review approve that does not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from shared.app.planner import approvals as team_reviews
from shared.app.planner.approvals import Approvals
from shared.app.planner.approvals import standing as standing_reviews
from shared.cluster.review_check import IgnoredReview
from shared.ports import Review, ReviewState
from tests.simulation.mutations import mutation


def counts_in_spite_of(patch: pytest.MonkeyPatch, reason: IgnoredReview) -> None:
    only = Approvals.only

    def without(
        approvals: Approvals, counts: Callable[[Review], bool], otherwise: IgnoredReview
    ) -> Approvals:
        return approvals if otherwise is reason else only(approvals, counts, otherwise)

    patch.setattr(Approvals, "only", without)


def a_review_by_anybody_counts(patch: pytest.MonkeyPatch) -> None:
    counts_in_spite_of(patch, IgnoredReview.NO_MEMBER)


def a_review_of_an_older_commit_counts(patch: pytest.MonkeyPatch) -> None:
    counts_in_spite_of(patch, IgnoredReview.EARLIER_COMMIT)


def a_dismissed_review_counts(patch: pytest.MonkeyPatch) -> None:
    def standing(reviews: Sequence[Review]) -> Sequence[Review]:
        approved = ReviewState.APPROVED
        kept = [r if r.state is not ReviewState.DISMISSED else replace(r, state=approved) for r in reviews]
        return standing_reviews(kept)

    patch.setattr(team_reviews, "standing", standing)


def an_approval_counts_after_a_request_for_changes(patch: pytest.MonkeyPatch) -> None:
    def standing(reviews: Sequence[Review]) -> Sequence[Review]:
        return [review for review in reviews if review.state is ReviewState.APPROVED]

    patch.setattr(team_reviews, "standing", standing)


def a_review_approves_what_its_pull_request_does_not_remove(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(team_reviews, "not_removed", lambda *_: ())


REVIEW_MUTATIONS = tuple(
    mutation(remove, "team-reviews", "unrequested delete")
    for remove in (
        a_review_by_anybody_counts,
        a_review_of_an_older_commit_counts,
        a_dismissed_review_counts,
        an_approval_counts_after_a_request_for_changes,
        a_review_approves_what_its_pull_request_does_not_remove,
    )
)
