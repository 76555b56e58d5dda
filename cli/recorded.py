"""What a plan is made against: the fleet as the API has it recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli.client import Api, ApiError
from cli.errors import CommandFailed
from cli.output import line
from cli.worktree import Worktree


@dataclass(frozen=True)
class Recorded:
    """A cluster as the API has it."""

    document: Mapping[str, Any]
    digest: str
    generation: int
    uid: str
    deleting: bool
    retryable_failure: bool


@dataclass(frozen=True)
class Held:
    """The deletes that the newest planned commit holds, or that ``by`` released ``at`` a time."""

    deletes: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    by: str = ""
    at: str = ""


@dataclass(frozen=True)
class Against:
    """What a plan is made against; ``commit`` is what was planned last, "" for nothing."""

    words: str
    commit: str = ""
    clusters: Mapping[str, Recorded] | None = None
    held: Held = Held()


def recorded(tree: Worktree, url: str, key: str) -> Against:
    """Ask the API for the state of the fleet; raise ApiError, or CommandFailed when it has another fleet."""
    with Api(url, key) as api:
        view = api.whole("recorded", "clusters")
    try:
        clusters = {found["name"]: _cluster(found) for found in view["clusters"]}
        fleet, commit, held = view["fleet"], view["commit"] or "", _held(view)
    except (KeyError, TypeError) as error:
        raise ApiError(f"{url} answered with something else than a fleet's state") from error
    if tree.fleet and tree.fleet != fleet:
        raise CommandFailed(
            f"{url} serves the fleet {fleet}, this repository is {line(tree.fleet)}; give the other's --url"
        )
    return Against(f"{fleet} at {commit[:8] or 'no commit'}", commit, clusters, held)


def _held(view: Mapping[str, Any]) -> Held:
    found, given = view["clusters"], view["approval"] or {}
    held, approved = (
        tuple(each["name"] for each in found if each[key]) for key in ("heldDelete", "approved")
    )
    return Held(held, approved, given.get("by", ""), given.get("at", ""))


def _cluster(found: Mapping[str, Any]) -> Recorded:
    return Recorded(
        found["document"],
        found["digest"],
        found["generation"],
        found["uid"],
        found["deleting"],
        found["givenUp"],
    )
