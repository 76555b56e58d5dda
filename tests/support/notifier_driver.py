"""The notifier without its ports, for tests of what it decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.notifications.digest import Links, OutgoingMessage, messages
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord, begin, delivered, due, failed, next_moment, take
from shared.notifications.routes import LIMITS, Route
from tests.support.notifications import ROUTES, T0


class Driver:
    """The notifier without its ports: it looks at each moment at which something may be due."""

    def __init__(self, routes: Sequence[Route] = ROUTES, down: Sequence[bool] = ()) -> None:
        self.routes, self.known = routes, NotifierRecord()
        self.sent: list[tuple[datetime, str, OutgoingMessage]] = []
        self.tried: list[OutgoingMessage] = []
        self._down = iter(down)

    def run(self, notifications: Sequence[Notification], until: datetime) -> None:
        moments = sorted({notification.at for notification in notifications})
        now = T0
        while now <= until:
            new = [notification for notification in notifications if notification.at == now]
            self.known = take(self.known, new, self.routes, now)
            for route in self.routes:
                self._tell(route, now)
            nexts = [moment for moment in moments if moment > now]
            waiting = next_moment(self.known, now)
            nexts += [max(waiting, now + timedelta(seconds=1))] if waiting else []
            if not nexts:
                return
            now = min(nexts)

    def _tell(self, route: Route, now: datetime) -> None:
        notifications = due(self.known, route.name, now)
        some = messages(notifications, fleet="f", limit=LIMITS[route.type], links=Links())
        for n, message in enumerate(some):
            self.known = begin(self.known, route.name, message.notifications)
            self.tried.append(message)
            if next(self._down, False):
                self.known = failed(
                    self.known, route.name, ("Unavailable", "no answer"), now, wait=None, jitter=0.5
                )
                return
            self.sent.append((now, route.name, message))
            self.known = delivered(self.known, route.name, message.notifications, now, first=n == 0)

    def notifications(self) -> Counter[str]:
        return Counter(notification for _, _, message in self.sent for notification in message.notifications)
