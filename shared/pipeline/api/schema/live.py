"""Clusters as Azure shows them now."""

from __future__ import annotations

from typing import Any, TypedDict, final

LIVE_CLUSTERS = 10
"""So many clusters are read in one request: each is a call to Azure, and takes up to a second."""


class LiveCluster(TypedDict):
    """A cluster: ``existing`` is ARM's document, None where Azure has none, or with a ``problem``.

    ``unmanaged`` names what it had beyond git when it was verified, None where nobody looked then.
    """

    name: str
    resource: str
    phase: str
    existing: dict[str, Any] | None
    unmanaged: list[str] | None
    problem: str


@final
class Live(TypedDict):
    """``GET live``; the names of the fleet and of its repository are those in the tags of its clusters."""

    fleet: str
    repository: str
    previousRepository: str
    readAt: str | None
    clusters: list[LiveCluster]
