"""What the reviews mean for the deletes of a plan, as a value; only this module describes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from shared.frozen import dataclass, field


class Verdict(StrEnum):
    """What was found when the reviews were read, as stored."""

    APPROVED = "approved"
    NO_PULL = "no-pull"
    NO_REVIEW = "no-review"
    NOT_IN_PULL = "not-in-pull"
    CHANGES_REQUESTED = "changes-requested"
    TOO_MANY = "too-many"
    UNREADABLE = "unreadable"


class IgnoredReview(StrEnum):
    """Why an approving review does not count, as stored."""

    EARLIER_COMMIT = "earlier-commit"
    EARLIER_CLUSTER = "earlier-cluster"
    EARLIER_PLAN = "earlier-plan"
    NO_MEMBER = "no-member"
    AUTHOR = "author"
    UNKNOWN_AUTHORS = "unknown-authors"


_SENTENCES: Mapping[Verdict, str] = {
    Verdict.APPROVED: "{login} approved pull request #{pull}",
    Verdict.NO_PULL: "no review counts: no pull request into {branch} was merged as this commit",
    Verdict.NO_REVIEW: "pull request #{pull} has no approving review by {teams} of the merged commit {head}",
    Verdict.NOT_IN_PULL: "no review of pull request #{pull} counts: it does not itself remove {clusters}",
    Verdict.CHANGES_REQUESTED: "{login} of {teams} requests changes of pull request #{pull}",
    Verdict.TOO_MANY: "no review of pull request #{pull} counts: there are too many {what} to read",
    Verdict.UNREADABLE: "the reviews could not be read: {error}",
}

_IGNORED: Mapping[IgnoredReview, str] = {
    IgnoredReview.EARLIER_COMMIT: "that of {login} is of an earlier commit",
    IgnoredReview.EARLIER_CLUSTER: "that of {login} is older than a cluster that it would delete",
    IgnoredReview.EARLIER_PLAN: "that of {login} is older than the plan of another commit",
    IgnoredReview.NO_MEMBER: "{login} is no member",
    IgnoredReview.AUTHOR: "{login} wrote a part of it",
    IgnoredReview.UNKNOWN_AUTHORS: "{login} may have written a part of it: a commit of it has no account",
}
_SHOWN = 5


@dataclass(frozen=True)
class ReviewCheck:
    """The result of reading the reviews; ``ignored`` has the logins whose approval does not count, and why.

    ``details`` has the values for its sentence, ``at`` is when they were read.
    """

    verdict: Verdict
    at: datetime
    details: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, IgnoredReview] = field(default_factory=dict)

    def unread_since(self, before: datetime) -> bool:
        """Return whether the reviews could not be read, and were not tried again after a time."""
        return self.verdict is Verdict.UNREADABLE and self.at <= before

    def __str__(self) -> str:
        shown = list(self.ignored.items())[:_SHOWN]
        why = [_IGNORED[kind].format(login=login) for login, kind in shown]
        if len(self.ignored) > _SHOWN:
            why.append(f"and {len(self.ignored) - _SHOWN} more")
        details = "; ".join(why)
        sentence = _SENTENCES[self.verdict].format_map(self.details)
        return f"{sentence} ({details})" if details else sentence
