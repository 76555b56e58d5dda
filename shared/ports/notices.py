"""What is stored of facts that are to be announced, and the channels that announce them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from shared.notices.announced import Announced
from shared.notices.digest import Outgoing
from shared.notices.notice import Notice
from shared.notices.routes import Route


class Notices(Protocol):
    """The facts that the notifier has not taken yet, and what it remembers."""

    def add_notice(self, notice: Notice) -> None:
        """Save a fact; one that was saved before is not duplicated."""
        ...

    def notices(self, limit: int) -> Sequence[Notice]:
        """Return the oldest saved facts."""
        ...

    def remove_notices(self, notices: Sequence[Notice]) -> None:
        """Remove facts; one that does not exist is success."""
        ...

    def prune_notices(self, before: datetime) -> int:
        """Remove older facts; return how many were removed."""
        ...

    def announced(self) -> Announced:
        """Return what the notifier remembers; a new one when none was saved."""
        ...

    def save_announced(self, announced: Announced) -> Announced:
        """Write it over the version that was read, and return it as saved; raise Stale or TooLarge."""
        ...


class Channels(Protocol):
    """Slack, Teams, webhooks, e-mail, and what Apprise reaches."""

    def send(self, route: Route, message: Outgoing) -> None:
        """Deliver a message; raise ReconcileError, without the address and without a secret.

        Dependency: the app has no setting with the address.
        """
        ...


class Issues(Protocol):
    """The issues of the fleet repository."""

    def find_issue(self, marker: str) -> int | None:
        """Return the number of our newest open issue whose text begins with the marker, or None."""
        ...

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue, and return its number."""
        ...

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment; raise Dependency for an issue that no longer exists."""
        ...

    def close_issue(self, number: int) -> None:
        """Close an issue; one that is closed is success. Raise Dependency for one that no longer exists."""
        ...
