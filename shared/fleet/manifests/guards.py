"""What a commit may not do without an approval."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictInt

from shared.fleet.manifests.base import Manifest


class DeleteBudget(Manifest):
    """How many clusters one plan may delete; a plan with more deletes needs an approval for all of them.

    The smaller of both limits counts; ``percent`` is at least one cluster unless it is 0.
    """

    count: Annotated[StrictInt, Field(ge=0, le=10_000)] = 1
    """How many clusters one commit may delete."""
    percent: Annotated[StrictInt, Field(ge=0, le=100)] = 100
    """The same as a percentage of the recorded clusters, rounded down but at least one; 0 allows none."""

    def of(self, recorded: int) -> int:
        """Return how many of the recorded clusters one plan may delete."""
        share = max(1, recorded * self.percent // 100) if self.percent else 0
        return min(self.count, share)


class Guards(Manifest):
    """What a commit may not do without an approval."""

    delete_budget: DeleteBudget = DeleteBudget()
    namespace_budget: Annotated[StrictInt, Field(ge=0, le=100_000)] = 0
    """How many namespaces of systems one commit may take from clusters, on every cluster; a commit
    that takes more needs an approval for all of them."""
