"""Why the newest commit of a fleet could not be planned, and what an operator can do about it."""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.remedies import suggested_action

_NEXT_TRY = "The timer plans again at the latest; until then no newer commit is carried out."
_LOGS = "If the problem stays, find the error in the logs of the functions."


@dataclass(frozen=True)
class FleetProblem:
    """What prevents the planner from planning the newest commit.

    ``kind`` is the class of the error of a failed read of the repository; "" when the queue dead-lettered the
    plan request. ``approve_again`` is the commit whose approval was lost with the request, "" for none.
    """

    message: str
    kind: str = ""
    approve_again: str = ""

    def __str__(self) -> str:
        what = f"the repository could not be read: {self.kind}" if self.kind else "a plan request failed"
        approve = f"; approve {self.approve_again[:8]} again" if self.approve_again else ""
        return f"{what}: {self.message}{approve}"

    @property
    def suggested_action(self) -> str:
        """What an operator can do about it."""
        return f"{_NEXT_TRY} {suggested_action(self.kind, failed=False) or _LOGS}"
