"""Which route gets which fact."""

from __future__ import annotations

import pytest

from shared.language.model.notification_kinds import KINDS, NotificationKind, Severity
from shared.notifications.routes import LIMITS, Route, RouteType
from tests.support.notifications import fact


def test_every_kind_has_a_line_in_the_table() -> None:
    missing = sorted(set(NotificationKind) - set(KINDS))
    assert missing == [], "add them to KINDS in shared/language/model/notification_kinds.py"
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
    facts = [
        fact("one", NotificationKind.FAILED, environment="prod"),
        fact("two", NotificationKind.STALLED),
        fact("three", NotificationKind.READY, environment="dev"),
    ]
    assert {each.kind for each in facts if route.takes(each)} == taken
