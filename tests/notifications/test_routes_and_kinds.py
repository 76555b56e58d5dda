"""Which route gets which fact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.language.model.notification_kinds import KINDS, NotificationKind, RouteType, Severity
from shared.notifications.notification import Topic
from shared.notifications.of_clusters import NEWS
from shared.notifications.routes import LIMITS, Route
from tests.support.notifications import notified

SHARED = Path(__file__).parents[2] / "shared"


def test_every_kind_has_a_line_in_the_table() -> None:
    missing = sorted(set(NotificationKind) - set(KINDS))
    assert missing == [], "add them to KINDS in shared/language/model/notification_kinds.py"
    assert set(LIMITS) == set(RouteType)


def test_every_kind_is_notified_by_some_module() -> None:
    modules = (path for path in SHARED.rglob("*.py") if path.name != "notification_kinds.py")
    used = set(re.findall(r"NotificationKind\.(\w+)", "".join(path.read_text() for path in modules)))
    unused = [kind for kind in NotificationKind if kind.name not in used]
    assert unused == [], (
        "a problem of the fleet is what `present` in shared/app/notifications.py yields; a notification of a "
        "cluster follows from an entry of NEWS in shared/notifications/of_clusters.py"
    )


def test_what_ends_with_its_cluster_is_a_problem_and_a_topic_without_an_entry_is_told_elsewhere() -> None:
    assert set(Topic) - set(NEWS) == {Topic.LIFETIME}, "add it to NEWS in shared/notifications/of_clusters.py"
    assert [news.problem for news in NEWS.values() if news.problem and not KINDS[news.problem].over] == []


@pytest.mark.parametrize(
    ("route", "taken"),
    [
        (Route("r", RouteType.SLACK), {NotificationKind.FAILED, NotificationKind.STALLED}),
        (Route("r", RouteType.SLACK, severity=Severity.CRITICAL), {NotificationKind.FAILED}),
        (
            Route("r", RouteType.SLACK, severity=Severity.INFO),
            {NotificationKind.FAILED, NotificationKind.STALLED, NotificationKind.READY},
        ),
        (Route("r", RouteType.SLACK, events=(NotificationKind.READY,)), {NotificationKind.READY}),
        (Route("r", RouteType.SLACK, environments=("prod",)), {NotificationKind.FAILED}),
        (
            Route("r", RouteType.SLACK, environments=("dev",), severity=Severity.INFO),
            {NotificationKind.READY},
        ),
        (Route("r", RouteType.SLACK, labels={"team": "a"}), set()),
    ],
)
def test_a_route_gets_what_it_asks_for(route: Route, taken: set[NotificationKind]) -> None:
    notifications = [
        notified("one", NotificationKind.FAILED, environment="prod"),
        notified("two", NotificationKind.STALLED),
        notified("three", NotificationKind.READY, environment="dev"),
    ]
    assert {notification.kind for notification in notifications if route.takes(notification)} == taken
