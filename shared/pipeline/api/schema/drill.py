"""What a loss of the tables would cost, without one."""

from __future__ import annotations

from typing import Literal, TypedDict, final

DrillOutcome = Literal["rebuilt", "differs", "takeover", "create", "unknown"]
"""What would happen to a cluster: see docs/api.md."""


class DrilledCluster(TypedDict):
    """A cluster of git without its record.

    ``differs`` are the fields for which the job would wait, ``reason`` why it is not just rebuilt, "" for
    one that is. ``unlike`` says what of the live record the rebuilt one would lack.
    """

    name: str
    outcome: DrillOutcome
    reason: str
    differs: list[str]
    unlike: list[str]


class DrilledOrphan(TypedDict):
    """A cluster with the fleet's tags that git does not have: it would be reported, and stay.

    ``deleting``: its record is a tombstone, and the delete would not continue.
    """

    name: str
    resource: str
    deleting: bool


class UnreadSubscription(TypedDict):
    """A subscription whose clusters could not be listed, and why."""

    subscription: str
    problem: str


@final
class Drill(TypedDict):
    """``GET drill``: the records rebuilt from git and Azure next to the live ones; nothing is written."""

    fleet: str
    commit: str
    installation: str
    readAt: str | None
    seconds: float
    clusters: list[DrilledCluster]
    orphans: list[DrilledOrphan]
    invalid: list[str]
    unread: list[UnreadSubscription]
