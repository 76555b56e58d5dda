"""What the API says of costs: list prices, and what Azure has billed."""

from __future__ import annotations

from typing import TypedDict, final


class ListedCost(TypedDict):
    """The list price of a cluster for a month, by its schedule, and what is left of that asleep.

    ``low`` has each autoscaled pool at its minimum, ``high`` at its maximum. ``unpriced`` counts what has no
    price, ``pricesOf`` is the day of the prices as ISO 8601, and ``foundAt`` when they were multiplied.
    """

    low: float
    high: float
    idleLow: float
    idleHigh: float
    unpriced: int
    currency: str
    pricesOf: str
    foundAt: str | None


class BilledCost(TypedDict):
    """What a cluster has cost from ``since`` to ``until``, days as ISO 8601, with its nodes and its tier."""

    cost: float
    currency: str
    since: str
    until: str
    readAt: str | None


class ClusterCost(TypedDict):
    """What is known of the cost of a cluster; ``listed`` and ``billed`` are None where that is not known."""

    name: str
    environment: str
    owner: str
    systems: list[str]
    asleep: bool
    listed: ListedCost | None
    billed: BilledCost | None


class CostGroupView(TypedDict):
    """Clusters together; the sums are of the ``listedClusters`` and ``billedClusters`` of them.

    ``idleLow`` to ``idleHigh`` is the list price of a month of those that sleep now. ``unpriced`` clusters
    have something without a price. ``billed`` is None where none is known, or in several currencies.
    """

    name: str
    clusters: int
    listedClusters: int
    low: float
    high: float
    asleep: int
    idleLow: float
    idleHigh: float
    unpriced: int
    billedClusters: int
    billed: float | None


class OwnCost(TypedDict):
    """What the resources of a type in the app's own resource group have cost, as ``BilledCost`` has it."""

    type: str
    billed: BilledCost


class UsedOperation(TypedDict):
    """An operation of Roadstead itself: how often, or how much, and what that is listed at."""

    kind: str
    operation: str
    count: float
    listed: float


class OwnUse(TypedDict):
    """What the apps have counted since a day, at list prices in US dollars of a region.

    Each count is at least so large: what a process had not written when it ended is lost. ``listed`` is the
    sum, and ``month`` what that makes in 730 hours, None for less than a day. The dearest operation is first.
    """

    since: str
    hours: float
    listed: float
    month: float | None
    currency: str
    region: str
    operations: list[UsedOperation]


class CostProblem(TypedDict):
    """Why the costs of a subscription were not read at a time."""

    subscription: str
    problem: str
    at: str | None


@final
class CostsView(TypedDict):
    """``GET cost``: what clusters are listed at and what Azure has billed, as it was found once a day.

    ``currency`` is that of the list prices, "" for several: groups then have no sums. ``billedCurrency`` is
    alike. ``missing`` names some of what has no price, and ``listProblem`` says why there are no list prices,
    "" for nothing. A cluster counts as a whole for each of its systems. ``ownUse`` is None for nothing yet.
    """

    clusters: list[ClusterCost]
    environments: list[CostGroupView]
    owners: list[CostGroupView]
    systems: list[CostGroupView]
    currency: str
    billedCurrency: str
    missing: list[str]
    listProblem: str
    own: list[OwnCost]
    ownUse: OwnUse | None
    problems: list[CostProblem]
