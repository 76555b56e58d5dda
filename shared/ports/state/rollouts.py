"""What is stored of rollouts: the record of each, by its commit."""

from __future__ import annotations

from typing import Protocol

from shared.cluster.forms import Listed
from shared.rollouts.rollout import Rollout


class Rollouts(Protocol):
    """The rollouts of the fleet; only the planner writes them."""

    def rollout(self, commit: str) -> Rollout | None:
        """Return the rollout of a commit, or None; raise Unreadable."""
        ...

    def rollouts(self) -> Listed[Rollout]:
        """Return the rollouts that are stored, newest first."""
        ...

    def save_rollout(self, rollout: Rollout) -> Rollout:
        """Write a rollout over the version that was read, and return it as saved; raise Stale or TooLarge."""
        ...

    def prune_rollouts(self, keep: int) -> int:
        """Remove all but the newest rollouts; return how many were removed. An active one stays."""
        ...
