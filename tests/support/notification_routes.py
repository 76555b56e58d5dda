"""What the tests of routes send."""

from __future__ import annotations

from datetime import UTC, datetime

from shared.adapters.notification_routes import NotificationRoutes
from shared.language.model.notification_kinds import RouteType
from shared.notifications.digest import Links, OutgoingMessage, messages
from shared.notifications.routes import LIMITS, Route
from tests.support.notifications import notified
from tests.support.receivers import Mailbox

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The example of the Standard Webhooks specification."""
LINKS = Links("https://github.com/example/fleet", "https://app.example.com")


def now() -> datetime:
    return datetime.now(UTC)


def message(*names: str, type_: RouteType = RouteType.SLACK) -> OutgoingMessage:
    notifications = [notified(name) for name in names or ("one", "two")]
    return messages(notifications, fleet="example", limit=LIMITS[type_], links=LINKS)[0]


def routes(address: str, **more: str) -> NotificationRoutes:
    return NotificationRoutes({"OPS": address, **more}, clock=now)


def send(kind: RouteType, address: str, sent: OutgoingMessage | None = None, **more: str) -> None:
    routes(address, **more).send(Route("ops", kind, "OPS"), sent or message(type_=kind))


def login(box: Mailbox, password: str) -> str:
    """Return the address of a mail server that asks for TLS and a password."""
    options = "mode=starttls&from=fleet@example.com&to=ops@example.com"
    return f"mailtos://mailer:{password}@127.0.0.1:{box.port}/?{options}"
