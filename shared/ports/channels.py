"""The channels that announce what happens to the fleet."""

from __future__ import annotations

from typing import Protocol

from shared.notifications.digest import Outgoing
from shared.notifications.routes import Route


class Channels(Protocol):
    """Slack, Teams, webhooks, e-mail, and what Apprise reaches."""

    def send(self, route: Route, message: Outgoing) -> None:
        """Deliver a message; raise ReconcileError, without the address and without a secret.

        Dependency: the app has no setting with the address.
        """
        ...
