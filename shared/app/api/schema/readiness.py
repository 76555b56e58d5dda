"""Whether clusters are ready for an upgrade, as the API shows it."""

from __future__ import annotations

from typing import TypedDict, final


class BlockerView(TypedDict):
    """What blocks the upgrade of a cluster.

    ``object`` names it, ``why`` is the rest of the sentence, ``act`` what to do, ``who`` who can, and
    ``source`` the address of the rule.
    """

    kind: str
    object: str
    why: str
    act: str
    who: str
    source: str


class ClusterReadiness(TypedDict):
    """A cluster: ``state`` is ready, blocked or unknown, for an upgrade ``to`` a version.

    ``unknown`` says what is not known of it, ``notes`` what blocks nothing. ``readAt`` is when it was read,
    None for never, with so many ``reads`` of its API server.
    """

    name: str
    to: str
    state: str
    blockers: list[BlockerView]
    unknown: list[str]
    notes: list[str]
    readAt: str | None
    reads: int


@final
class ReadinessView(TypedDict):
    """``GET readiness``; ``count`` counts the clusters on all pages, ``note`` says what no reading proves."""

    clusters: list[ClusterReadiness]
    count: int
    note: str
    next: str | None
