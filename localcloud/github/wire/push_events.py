"""The payload of GitHub's push event."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from localcloud.git.world import repository_history as history
from localcloud.git.world.ref_changes import ZERO, RefChange, Refs
from localcloud.github.wire.github_json import OPERATOR, Place, pushed_commit_json, repository_json

MAX_COMMITS = 2048
"""docs.github.com/webhooks/webhook-events-and-payloads, "push"."""


def push_event(place: Place, change: RefChange, before: Refs, now: datetime) -> dict[str, Any]:
    """Return the payload of the push event for one changed ref; ``before`` are all refs before the push.

    ``pushed_at`` of the repository is in seconds since 1970, in this event only.
    """
    deleted, created = change.after == ZERO, change.before == ZERO
    commits = [] if deleted else _commits(place, change, before)
    head = None if deleted else _head(place, change, commits)
    return {
        "ref": change.ref,
        "before": change.before,
        "after": change.after,
        "base_ref": _base_ref(change, before) if created else None,
        "created": created,
        "deleted": deleted,
        "forced": not created and not deleted and not _fast_forward(place, change),
        "compare": _compare(place, change),
        "commits": commits,
        "head_commit": head,
        "repository": {
            **repository_json(place),
            "master_branch": place.repository.default_branch,
            "pushed_at": int(now.timestamp()),
        },
        "pusher": {"name": OPERATOR["login"], "email": "operator@example.invalid"},
        "sender": OPERATOR,
    }


def _commits(place: Place, change: RefChange, before: Refs) -> list[dict[str, Any]]:
    """Return the pushed commits, oldest first: of a new ref, those that no branch had."""
    path = place.repository.path
    branches = sorted({f"^{sha}" for ref, sha in before.items() if ref.startswith("refs/heads/")})
    excluded = branches if change.before == ZERO else [f"^{change.before}"]
    listed = history.log(path, change.after, *excluded, limit=MAX_COMMITS)
    fresh = set(history.rev_list(path, change.after, *branches, limit=MAX_COMMITS))
    return [
        pushed_commit_json(place, _commit(place, sha), touched, distinct=sha in fresh)
        for sha, touched in listed.items()
    ]


def _head(place: Place, change: RefChange, commits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    commit = _commit(place, change.after)
    if commits and commits[-1]["id"] == commit.sha:
        return commits[-1]
    touched = history.log(place.repository.path, commit.sha, limit=1)[commit.sha]
    return pushed_commit_json(place, commit, touched, distinct=not commits)


def _commit(place: Place, sha: str) -> history.CommitInfo:
    """Return a commit, or the commit that an annotated tag points to."""
    stored = place.repository.read(f"{sha}^{{commit}}")
    if stored is None:
        raise LookupError(f"no commit {sha}")
    return history.parse_commit(stored)


def _fast_forward(place: Place, change: RefChange) -> bool:
    base = history.merge_base(place.repository.path, change.before, change.after)
    return base == change.before


def _base_ref(change: RefChange, before: Refs) -> str | None:
    same = (ref for ref, sha in before.items() if sha == change.after and ref.startswith("refs/heads/"))
    return next(same, None)


def _compare(place: Place, change: RefChange) -> str:
    if change.before == ZERO:
        return f"{place.html}/compare/{change.ref.split('/', 2)[2]}"
    return f"{place.html}/compare/{change.before[:12]}...{change.after[:12]}"
