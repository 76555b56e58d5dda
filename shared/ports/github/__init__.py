"""What Roadstead reads and writes on GitHub."""

from __future__ import annotations

from shared.ports.github.pull_requests import (
    Annotation,
    Check,
    CheckRun,
    Comment,
    Issues,
    NewCommit,
    Proposing,
    Pull,
    PullRequests,
    PullText,
)
from shared.ports.github.repository import (
    DESCRIPTION_LIMIT,
    BranchHead,
    Change,
    CommitStatus,
    Repository,
    TreeEntry,
    co_authors,
    status_line,
)
from shared.ports.github.reviews import (
    MergedPull,
    PullAuthors,
    Review,
    Reviews,
    ReviewState,
    account_behind,
)

__all__ = [
    "DESCRIPTION_LIMIT",
    "Annotation",
    "BranchHead",
    "Change",
    "Check",
    "CheckRun",
    "Comment",
    "CommitStatus",
    "Issues",
    "MergedPull",
    "NewCommit",
    "Proposing",
    "Pull",
    "PullAuthors",
    "PullRequests",
    "PullText",
    "Repository",
    "Review",
    "ReviewState",
    "Reviews",
    "TreeEntry",
    "account_behind",
    "co_authors",
    "status_line",
]
