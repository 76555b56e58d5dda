"""Votes on Azure DevOps as reviews: what counts, for which commit, and what somebody wrote themselves."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.azure_devops.votes import reviews_of
from shared.ports import ReviewState

ADA, JOAN, SYSTEM = (str(UUID(int=number)) for number in (1, 2, 9))
PAGE = "https://dev.azure.com/acme/fleet/_git/fleet/pullrequest/3"


def at(second: int) -> str:
    return f"2026-01-01T12:00:{second:02}.1234567Z"


def voted(thread: int, voter: str, vote: int, second: int, **changed: Any) -> dict[str, Any]:
    said = {
        "CodeReviewThreadType": {"$value": "VoteUpdate"},
        "CodeReviewVoteResult": {"$value": str(vote)},
        "CodeReviewVotedByIdentity": {"$value": "1"},
    }
    comment = {"author": {"id": voter}, "commentType": "system"} | changed
    identities = {"1": {"id": voter, "uniqueName": f"{UUID(voter).int}@example.com"}}
    return {
        "id": thread,
        "publishedDate": at(second),
        "comments": [comment],
        "properties": said,
        "identities": identities,
    }


def pushed(number: int, second: int) -> dict[str, Any]:
    commit = str(number) * 40
    return {"id": number, "createdDate": at(second), "sourceRefCommit": {"commitId": commit}}


def reviewer(who: str, vote: int, **more: Any) -> dict[str, Any]:
    return {"id": who, "vote": vote, **more}


def test_a_vote_is_for_the_commit_that_was_the_newest_then() -> None:
    threads = [voted(10, ADA, 10, 5), voted(11, JOAN, -5, 30)]
    found = reviews_of(threads, [pushed(2, 20), pushed(1, 1)], [reviewer(ADA, 10), reviewer(JOAN, -5)], PAGE)
    assert [(r.reviewer, r.state, r.commit, r.at.second, r.url) for r in found] == [
        (1, ReviewState.APPROVED, "1" * 40, 5, f"{PAGE}?discussionId=10"),
        (2, ReviewState.CHANGES_REQUESTED, "2" * 40, 30, f"{PAGE}?discussionId=11"),
    ]
    assert not found[0].at.microsecond


def test_a_vote_that_a_push_has_reset_or_that_was_taken_back_counts_no_more() -> None:
    iterations, threads = [pushed(1, 1)], [voted(10, ADA, 10, 5)]
    for reviewers in ([reviewer(ADA, 0)], [], [reviewer(ADA, -10)]):
        (found,) = reviews_of(threads, iterations, reviewers, PAGE)
        assert found.state is ReviewState.DISMISSED
    for now in ([reviewer(ADA, 0)], [reviewer(ADA, 10)]):  # the list may be older than the thread
        (found,) = reviews_of([*threads, voted(11, ADA, 0, 9)], iterations, now, PAGE)
        assert found.state is ReviewState.DISMISSED


def test_an_approval_with_suggestions_is_one_and_the_vote_of_a_group_is_its_members() -> None:
    reviewers = [reviewer(ADA, 5), reviewer(SYSTEM, 5, isContainer=True)]
    (found,) = reviews_of([voted(10, ADA, 5, 5)], [pushed(1, 1)], reviewers, PAGE)
    assert (found.reviewer, found.state) == (1, ReviewState.APPROVED)


def test_a_thread_that_somebody_wrote_as_a_vote_of_another_is_none() -> None:
    """Ada approved the first commit; Joan pushed another, and writes that Ada has voted since."""
    iterations = [pushed(1, 1), pushed(2, 20)]
    real = voted(10, ADA, 10, 5)
    for forged in (
        voted(11, ADA, 10, 30, author={"id": JOAN}),
        voted(11, ADA, 10, 30, commentType="text"),
        voted(11, ADA, 10, 30, author={"id": JOAN}, commentType="text"),
    ):
        (found,) = reviews_of([real, forged], iterations, [reviewer(ADA, 10)], PAGE)
        assert found.commit == "1" * 40


def test_a_vote_in_the_former_form_names_the_voter_itself() -> None:
    former = voted(10, ADA, 10, 5, author={"id": SYSTEM, "isContainer": True}) | {"identities": None}
    former["properties"] = {
        **former["properties"],
        "CodeReviewVotedByIdentity": None,
        "CodeReviewVotedByTfId": {"$value": ADA},
        "CodeReviewVotedByDisplayName": {"$value": "Ada"},
    }
    (found,) = reviews_of([former], [pushed(1, 1)], [reviewer(ADA, 10)], PAGE)
    assert (found.reviewer, found.login) == (1, "Ada")


@given(
    st.lists(st.tuples(st.sampled_from([ADA, JOAN]), st.sampled_from([10, 5, 0, -5, -10])), max_size=6),
    st.dictionaries(st.sampled_from([ADA, JOAN]), st.sampled_from([10, 5, 0, -5, -10])),
)
def test_nobody_is_shown_as_approving_whose_vote_now_is_no_approval(
    history: list[tuple[str, int]], now: dict[str, int]
) -> None:
    threads = [voted(number, voter, vote, number) for number, (voter, vote) in enumerate(history, 1)]
    reviewers = [reviewer(who, vote) for who, vote in now.items()]
    last = {review.reviewer: review for review in reviews_of(threads, [pushed(1, 0)], reviewers, PAGE)}
    for who in (ADA, JOAN):
        review = last.get(UUID(who).int)
        if review and review.state is ReviewState.APPROVED:
            assert now.get(who, 0) > 0
