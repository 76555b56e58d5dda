"""The commit of the rollout that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.errors import CommandError
from shared.app.api import schema

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


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
