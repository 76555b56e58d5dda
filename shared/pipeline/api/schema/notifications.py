"""The routes of notifications."""

from __future__ import annotations

from typing import TypedDict, final


class Route(TypedDict):
    """A route, and how its channel is. ``severity`` is "" for a route that names its ``events``.

    ``sent`` counts its messages, ``pending`` the facts that it has not received, until ``nextAt`` at least.
    ``problem`` is why it does not deliver, "" for nothing.
    """

    name: str
    type: str
    severity: str
    events: list[str]
    environments: list[str]
    labels: dict[str, str]
    sent: int
    pending: int
    problem: str
    failingSince: str | None
    nextAt: str | None


@final
class Routes(TypedDict):
    """``GET notifications``: the routes of the newest plan."""

    routes: list[Route]


@final
class RouteReceipt(TypedDict):
    """``POST notifications/test``: the test message was delivered."""

    route: str
    delivered: bool
    by: str
