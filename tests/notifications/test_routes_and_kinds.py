"""Which route gets which notification; the table of kinds is what manifests may name."""

from __future__ import annotations

from typing import get_args

import pytest

from shared.language.model.fleet_rules import EventName
from shared.notifications.kinds import KINDS, NotificationKind, Severity
from shared.notifications.routes import LIMITS, Route, RouteType
from tests.support.notifications import notified


def test_manifests_may_name_every_kind_and_no_other() -> None:
    assert set(get_args(EventName)) == set(NotificationKind)


def test_every_kind_has_a_line_in_the_table() -> None:
    assert set(KINDS) == set(NotificationKind)
    assert set(LIMITS) == set(RouteType)


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
