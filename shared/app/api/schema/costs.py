"""What the API says of what Azure has billed."""

from __future__ import annotations

from typing import TypedDict, final


class ClusterCost(TypedDict):
    """What a cluster has cost from ``since`` to ``until``, days as ISO 8601, with its nodes and its tier."""

    name: str
    cost: float
    currency: str
    since: str
    until: str
    readAt: str | None


class CostProblem(TypedDict):
    """Why the costs of a subscription were not read at a time."""

    subscription: str
    problem: str
    at: str | None


@final
class CostsView(TypedDict):
    """``GET cost``: what Azure has billed for clusters, as it was read last, once a day."""

    clusters: list[ClusterCost]
    problems: list[CostProblem]
