"""From a repository's refs before and after a push to the branches and tags that it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ZERO = "0" * 40
"""The id that stands for "no commit", before a ref is created and after it is deleted."""

MAX_TAGS = 3
MAX_BRANCHES = 5000
"""docs.github.com/webhooks/webhook-events-and-payloads, "push"."""

Refs = Mapping[str, str]


@dataclass(frozen=True)
class RefChange:
    """A branch or tag that a push created, moved or deleted."""

    ref: str
    before: str
    after: str


def changes(before: Refs, after: Refs) -> Sequence[RefChange]:
    """Return the changed refs that get an event: none when many tags or branches change at once."""
    changed = [
        RefChange(ref, before.get(ref, ZERO), after.get(ref, ZERO))
        for ref in sorted(before.keys() | after.keys())
        if before.get(ref) != after.get(ref)
    ]
    tags = [change for change in changed if change.ref.startswith("refs/tags/")]
    branches = [change for change in changed if change.ref.startswith("refs/heads/")]
    return (branches if len(branches) <= MAX_BRANCHES else []) + (tags if len(tags) <= MAX_TAGS else [])
