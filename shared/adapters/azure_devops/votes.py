"""From the votes on a pull request to its reviews. Pure.

Azure DevOps has one vote for each reviewer, and says neither when it was given nor for which commit. Both are
in the threads that it writes itself: one of the type VoteUpdate for each vote (the example of "Pull Request
Threads - List" in github.com/MicrosoftDocs/vsts-rest-api-specs, specification/git/7.1). A vote is for the
commit of the newest iteration then. Whoever may comment can write a thread with such properties: a thread
counts only if the system has written it, and in the name of the voter or of a group of the system. A vote
that is no longer the reviewer's, because a policy has reset it after a push, or a person has changed it, is
dismissed.

Votes: 10 approved, 5 approved with suggestions, 0 none, -5 waiting for the author, -10 rejected
(IdentityRefWithVote there). A group votes through its members, so its own vote is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from shared.adapters.answers import checked, moment
from shared.frozen import dataclass
from shared.ports.pull_requests import Review, ReviewState


@dataclass(frozen=True)
class _Vote:
    thread: int
    voter: UUID
    name: str
    vote: int
    at: datetime


def reviews_of(
    threads: Sequence[Any], iterations: Sequence[Any], reviewers: Sequence[Any], url: str
) -> Sequence[Review]:
    """Return the votes as reviews, oldest first; ``url`` is the page of the pull request.

    Raise ValueError, KeyError or TypeError for answers of another form.
    """
    now = {
        UUID(reviewer["id"]): int(reviewer["vote"])
        for reviewer in reviewers
        if not reviewer.get("isContainer")
    }
    votes = sorted(filter(None, map(_vote, threads)), key=lambda vote: (vote.at, vote.thread))
    last = {vote.voter: vote for vote in votes}
    seen = sorted((moment(item["createdDate"]), item["sourceRefCommit"]["commitId"]) for item in iterations)
    return [
        checked(
            Review(
                id=vote.thread,
                reviewer=vote.voter.int,
                login=vote.name,
                state=_state(vote.vote, now.get(vote.voter, 0) if last[vote.voter] is vote else 0),
                commit=next((commit for at, commit in reversed(seen) if at <= vote.at), ""),
                at=vote.at.replace(microsecond=0),
                url=f"{url}?discussionId={vote.thread}",
            )
        )
        for vote in votes
        if vote.vote
    ]


def _state(vote: int, now: int) -> ReviewState:
    """Return the state of a vote that has become ``now``: 0 for one that another vote has replaced."""
    if vote * now <= 0:
        return ReviewState.DISMISSED
    return ReviewState.APPROVED if vote > 0 else ReviewState.CHANGES_REQUESTED


def _vote(thread: Mapping[str, Any]) -> _Vote | None:
    """Return the vote that a thread is about, None for another thread."""
    said = thread.get("properties") or {}
    if _value(said, "CodeReviewThreadType") != "VoteUpdate":
        return None
    comment, people = thread["comments"][0], thread.get("identities") or {}
    named = people.get(str(_value(said, "CodeReviewVotedByIdentity"))) or {}
    voter = UUID(named.get("id") or _value(said, "CodeReviewVotedByTfId"))
    author = comment["author"]
    of_system = bool(author.get("isContainer")) or UUID(author["id"]) == voter
    if comment.get("commentType") != "system" or not of_system:
        return None
    vote, name = (
        int(_value(said, "CodeReviewVoteResult")),
        named.get("uniqueName") or named.get("displayName"),
    )
    name = name or _value(said, "CodeReviewVotedByDisplayName") or str(voter)
    return _Vote(int(thread["id"]), voter, str(name), vote, moment(thread["publishedDate"]))


def _value(properties: Mapping[str, Any], name: str) -> Any:
    """Return a property; the value of one is in "$value"."""
    found = properties.get(name)
    return found.get("$value") if isinstance(found, Mapping) else found
