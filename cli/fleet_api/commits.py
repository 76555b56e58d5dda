"""The commit that a command is about: one that was planned, or one with a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.errors import ApiError, CommandError
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


def commit_of(api: Api, start: str, *, under_way: bool = True) -> str:
    """Return the full id of a commit with a rollout.

    Without its ``start``, that of the rollout that is under way, or of the newest one. Raise CommandError
    when there is none, or several.
    """
    found = api.rollouts()["rollouts"]
    if not start:
        return _newest(found, under_way=under_way)
    names = [rollout["commit"] for rollout in found if rollout["commit"].startswith(start)]
    if len(names) != 1:
        many = "no rollout" if not names else f"{len(names)} rollouts"
        raise CommandError(f"{many} of a commit that begins with {start}; see roadstead rollout list")
    return names[0]


def commit_with_items(api: Api, start: str) -> str:
    """Return the full id of a commit that an override is of: one with a rollout, or the newest plan.

    A commit that only deletes or creates has no rollout, and a rollout may end before what else its commit
    asks for. Raise CommandError for another one.
    """
    newest, rollouts = api.planned()["commit"], api.rollouts()["rollouts"]
    known = any(rollout["commit"] == newest for rollout in rollouts)
    ended = not any(rollout["underWay"] for rollout in rollouts)
    if newest and newest.startswith(start) and (not known or (ended and not start)):
        return newest
    return commit_of(api, start)


def _newest(found: list[schema.RolloutSummary], *, under_way: bool) -> str:
    current = [rollout["commit"] for rollout in found if rollout["underWay"]]
    names = current or [rollout["commit"] for rollout in found if not under_way]
    if not names:
        raise CommandError("no rollout is under way" if under_way else "there is no rollout")
    return names[0]
