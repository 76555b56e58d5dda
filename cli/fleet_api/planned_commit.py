"""The plan of a commit: the one with its id, or the newest one, once that contains the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.errors import ApiError
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

SURELY_AFTER = 2
"""Plans since the first reading. The head of the first one may have been read before, of the second not."""


def whole_commit(api: Api, commit: str) -> str:
    """Return the planned commit that begins with these characters; raise ApiError for none or several."""
    found = [plan["commit"] for plan in api.plans()["plans"] if plan["commit"].startswith(commit)]
    if not found:
        raise ApiError(f"no commit in roadstead plans begins with {commit[:40]}")
    if len(found) > 1:
        raise ApiError(f"several plans begin with {commit[:40]}; give more of the commit")
    return found[0]


class PlannedCommit:
    """Reads the newest plan until it contains a commit that was pushed before the first reading.

    The newest plan contains the commit when the commit has a plan itself, or when two commits were planned
    since: the planner skips a commit that is no longer the head of the branch.
    """

    def __init__(self, api: Api, commit: str) -> None:
        self._api, self._commit = api, commit
        self._first: str | None = None
        self._read: tuple[tuple[str, str | None], schema.PlanView] | None = None
        self.waiting = ""
        """Why there is no plan that contains the commit yet."""

    def plan(self) -> schema.PlanView | None:
        """Return the newest plan that was handed over, None if it may lack the commit; raise ApiError."""
        fleet, plans = self._api.planned(), self._api.plans()["plans"]
        if self._first is None:
            self._first = fleet["commit"]
        self.waiting = ": ".join(
            filter(
                None,
                (
                    f"commit {self._commit[:8]} is not planned yet",
                    fleet["problem"] or fleet["paused"] or fleet["waiting"],
                ),
            )
        )
        places = {plan["commit"]: place for place, plan in enumerate(plans)}
        newest = places.get(fleet["commit"])
        if newest is None:
            return None
        own = [place for commit, place in places.items() if commit.startswith(self._commit)]
        since = places.get(self._first, len(plans)) - newest
        if since >= SURELY_AFTER or any(place >= newest for place in own):
            return self._whole(plans[newest])
        return None

    def _whole(self, found: schema.PlanSummary) -> schema.PlanView:
        """Return a plan with its items, read again only when the commit was planned again."""
        version = (found["commit"], found["plannedAt"])
        if self._read is None or self._read[0] != version:
            self._read = version, self._api.plan(found["commit"])
        return self._read[1]
