"""The routes of notifications in memory: what was delivered, and routes that fail."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.cluster.failures.errors import ReconcileError
from shared.notifications.digest import OutgoingMessage
from shared.notifications.routes import Route


@dataclass
class MemoryRoutes:
    """Remembers every delivered message by route; a route in ``failing`` raises its error.

    One in ``unanswered`` takes the message, and raises its error then.
    """

    delivered: dict[str, list[OutgoingMessage]] = field(default_factory=dict)
    failing: dict[str, ReconcileError] = field(default_factory=dict)
    unanswered: dict[str, ReconcileError] = field(default_factory=dict)
    tried: int = 0

    def send(self, route: Route, message: OutgoingMessage) -> None:
        """Deliver a message."""
        self.tried += 1
        if route.name in self.failing:
            raise self.failing[route.name]
        self.delivered.setdefault(route.name, []).append(message)
        if route.name in self.unanswered:
            raise self.unanswered[route.name]

    def notifications(self, route: str) -> list[str]:
        """Return the ids of the notifications that a route got, in order."""
        return [
            notification
            for message in self.delivered.get(route, [])
            for notification in message.notifications
        ]
