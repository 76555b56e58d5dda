"""What docs/notifications.md promises, whatever happens and fails: by generated notifications."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.model.notification_kinds import NotificationKind, RouteType, Severity
from shared.notifications.digest import MOST_MESSAGES
from shared.notifications.notification import Notification
from shared.notifications.record import COLLECT, LONGEST
from shared.notifications.routes import Route
from tests.support.hypothesis_settings import GENERATED
from tests.support.notifications import ROUTES, after, notified
from tests.support.notifier_driver import Driver

KINDS = (
    NotificationKind.FAILED,
    NotificationKind.STALLED,
    NotificationKind.HELD,
    NotificationKind.LOST,
    NotificationKind.READY,
    NotificationKind.DELETED,
)
ENDLESS = (NotificationKind.READY.value, NotificationKind.DELETED.value)
changes = st.lists(
    st.tuples(
        st.integers(0, 900),
        st.sampled_from("abcdefgh"),
        st.sampled_from(KINDS),
        st.sampled_from(("westeurope", "eastus")),
    ),
    max_size=60,
)


def _facts(drawn: Sequence[tuple[int, str, NotificationKind, str]]) -> list[Notification]:
    """Return notifications in the order of their times, each with an id of its own."""
    ordered = enumerate(sorted(drawn, key=lambda each: each[0]))
    return [
        notified(cluster, kind, seconds, location=place, number=n)
        for n, (seconds, cluster, kind, place) in ordered
    ]


@GENERATED
@given(changes, st.lists(st.booleans(), max_size=12))
def test_every_fact_of_a_route_is_told_exactly_once_whatever_fails(
    drawn: list[tuple[int, str, NotificationKind, str]], down: list[bool]
) -> None:
    notifications = _facts(drawn)
    driver = Driver(down=down)
    driver.run(notifications, after(86_400))
    expected = {notification.id for notification in notifications if ROUTES[0].takes(notification)}
    ends = {identifier for identifier in driver.notifications() if identifier.endswith(":over")}
    assert driver.notifications() == Counter([*expected, *ends])
    assert not driver.known.routes["ops"].missing
    ids: dict[str, set[str]] = {}
    for message in driver.tried:
        for identifier in message.notifications:
            ids.setdefault(identifier, set()).add(message.id)
    assert all(len(some) == 1 for some in ids.values()), "a message that is sent again has its id"


@GENERATED
@given(changes)
def test_every_problem_that_ends_is_told_to_have_ended(
    drawn: list[tuple[int, str, NotificationKind, str]],
) -> None:
    notifications = _facts(drawn)
    driver = Driver()
    driver.run(notifications, after(86_400))
    open_problems: dict[str, Notification] = {}
    ended = set()
    for notification in notifications:
        before = open_problems.pop(notification.key, None)
        if before is not None and not (notification.lasting and notification.group == before.group):
            ended.add(f"{before.id}:over")
        if notification.lasting:
            open_problems[notification.key] = notification
    assert {identifier for identifier in driver.notifications() if identifier.endswith(":over")} == ended
    assert set(driver.known.open.values()) == {notification.id for notification in open_problems.values()}


@GENERATED
@given(changes, st.lists(st.booleans(), max_size=12))
def test_whoever_reads_a_route_knows_the_problems_that_are_open_and_no_other(
    drawn: list[tuple[int, str, NotificationKind, str]], down: list[bool]
) -> None:
    routes = (
        *ROUTES,
        Route("stalls", RouteType.TEAMS, "A", events=(NotificationKind.STALLED,)),
        Route("worst", RouteType.WEBHOOK, "B", Severity.CRITICAL),
        Route("places", RouteType.SLACK, "C", events=(NotificationKind.HELD, NotificationKind.LOST)),
    )
    driver = Driver(routes, down)
    driver.run(_facts(drawn), after(86_400))
    for route in routes:
        told: dict[tuple[str, tuple[str, str, str]], int] = {}
        for _, name, message in driver.sent:
            groups = message.groups if name == route.name else ()
            for notification in (shown for group in groups for shown in group.notifications):
                place = (notification.key, notification.group)
                if not notification.over:
                    told[place] = notification.sequence
                elif told.get(place, notification.sequence + 1) <= notification.sequence:
                    del told[place]
        now_open = (driver.known.notifications[identifier] for identifier in driver.known.open.values())
        wanted = {
            (problem.key, problem.group): problem.sequence for problem in now_open if route.takes(problem)
        }
        lasting = {place: sequence for place, sequence in told.items() if place[1][0] not in ENDLESS}
        assert lasting == wanted


@pytest.mark.lives
@GENERATED
@given(st.integers(1, 400), st.integers(1, 7200))
def test_the_number_of_messages_grows_with_the_time_and_not_with_the_facts(count: int, seconds: int) -> None:
    driver = Driver()
    driver.run(
        [notified(f"c{n}", seconds=n * seconds // count, number=n) for n in range(count)], after(seconds)
    )
    doublings = math.ceil(math.log2(LONGEST / COLLECT)) + 1
    most = doublings + 1 + seconds / LONGEST.total_seconds()
    assert len(driver.sent) <= most * MOST_MESSAGES
    assert len({at for at, _, _ in driver.sent}) <= most
