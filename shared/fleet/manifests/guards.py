"""What a commit may not do without an approval."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt

from shared.fleet.manifests.base import Manifest


class DeleteBudget(Manifest):
    """How many clusters one plan may delete; more than that holds all its deletes.

    The smaller of both counts; ``percent`` is of the recorded clusters, and at least one unless it is 0.
    """

    count: Annotated[StrictInt, Field(ge=0, le=10_000)] = 1
    """How many clusters one commit may delete."""
    percent: Annotated[StrictInt, Field(ge=0, le=100)] = 100
    """The same as a part of the recorded clusters, rounded down, at least one; 0 is none."""

    def of(self, recorded: int) -> int:
        """Return how many of the recorded clusters one plan may delete."""
        share = max(1, recorded * self.percent // 100) if self.percent else 0
        return min(self.count, share)


class Guards(Manifest):
    """What a commit may not do without an approval."""

    delete_budget: DeleteBudget = DeleteBudget()
