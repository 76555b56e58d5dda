"""Who is notified of which notifications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.frozen import dataclass, field
from shared.language.model.fleet_rules import RouteSpec as RouteManifest
from shared.language.model.notification_kinds import NotificationKind, RouteType, Severity
from shared.notifications.notification import Notification


@dataclass(frozen=True)
class Route:
    """Where notifications go, and which; empty ``events``, ``environments`` and ``labels`` are all.

    ``address`` is the name of the setting with the address, "" for issues of the fleet repository.
    """

    name: str
    type: RouteType
    address: str = ""
    severity: Severity = Severity.WARNING
    events: tuple[NotificationKind, ...] = ()
    environments: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def takes(self, notification: Notification) -> bool:
        """Return whether the route gets a notification; one of the fleet has no environment and no labels."""
        wanted = (
            notification.kind in self.events
            if self.events
            else notification.severity.rank >= self.severity.rank
        )
        return (
            wanted
            and (not self.environments or notification.environment in self.environments)
            and all(notification.labels.get(key) == value for key, value in self.labels.items())
        )


def routes_of(manifests: Sequence[RouteManifest]) -> tuple[Route, ...]:
    """Return the routes of ``spec.notifications``."""
    return tuple(
        Route(
            name=manifest.name,
            type=manifest.type,
            address=manifest.address,
            severity=manifest.severity,
            events=manifest.events,
            environments=manifest.environments,
            labels=dict(manifest.labels),
        )
        for manifest in manifests
    )


LIMITS: Mapping[RouteType, int] = {
    RouteType.SLACK: 12_000,
    RouteType.TEAMS: 4_500,
    RouteType.WEBHOOK: 60_000,
    RouteType.EMAIL: 30_000,
    RouteType.APPRISE: 30_000,
    RouteType.ISSUES: 60_000,
}
"""The most bytes of a message's text; docs/notifications.md names each vendor's limit and its source.

Slack truncates a text of more than 40,000 characters. A Teams message may have 28 KB with its JSON, in which
a character may count as two bytes. GitHub takes 65,536 characters.
"""
