"""What is sent, and when; test_promises.py here has the promises by generated notifications."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.app.notifications import OF_PLANS, OTHERS
from shared.language.model.notification_kinds import KINDS, NotificationKind, RouteType, Severity
from shared.notifications.digest import MOST_MESSAGES, Links, messages
from shared.notifications.notification import Notification
from shared.notifications.record import (
    COLLECT,
    CONFIRM,
    CONFIRM_AGAIN,
    MESSAGES,
    MOST_PENDING,
    OVER,
    PASSING,
    RETRIES,
    NotifierRecord,
    SentMessage,
    begin,
    compare,
    confirm,
    delivered,
    due,
    failed,
    next_moment,
    take,
    unconfirmed,
    with_message,
)
from shared.notifications.routes import Route
from tests.support.notifications import ROUTES, T0, after, notified
from tests.support.notifier_driver import Driver


def test_facts_of_the_same_seconds_are_one_message() -> None:
    driver = Driver()
    driver.run([notified(f"c{n}", seconds=n % 10) for n in range(200)], after(600))
    ((at, _, message),) = driver.sent
    assert at == after(10)
    assert message.title == "f: 200 clusters failed in westeurope: QuotaExceeded"


def test_the_end_of_an_outage_is_one_message_when_all_of_it_is_over() -> None:
    names = [f"c{n}" for n in range(200)]
    begins = [notified(name) for name in names]
    ends = [notified(name, NotificationKind.READY, 60 + n) for n, name in enumerate(names)]
    driver = Driver()
    driver.run([*begins, *ends], after(3600))
    assert [message.title for _, _, message in driver.sent] == [
        "f: 200 clusters failed in westeurope: QuotaExceeded",
        "f: 200 clusters no longer failed in westeurope",
    ]


def test_the_end_of_a_problem_waits_for_its_group_no_longer_than_some_minutes() -> None:
    driver = Driver()
    driver.run([notified("one"), notified("two"), notified("one", NotificationKind.READY, 60)], after(3600))
    assert [at for at, _, _ in driver.sent] == [after(10), after(60) + OVER]
    assert set(driver.known.open.values()) == {"failed:two:1"}


def test_a_problem_that_ends_before_it_was_told_is_told_with_its_end() -> None:
    driver = Driver()
    driver.run([notified("one"), notified("one", NotificationKind.READY, 5)], after(3600))
    ((_, _, message),) = driver.sent
    assert set(message.notifications) == {"failed:one:1", "failed:one:1:over"}
    assert message.title == "f: 1 cluster failed in westeurope: QuotaExceeded; now no longer failed"


def test_a_problem_that_becomes_another_one_ends_for_whoever_was_told_of_it() -> None:
    routes = (Route("stalls", RouteType.SLACK, "A", events=(NotificationKind.STALLED,)), *ROUTES)
    driver = Driver(routes)
    notifications = [
        notified("one", NotificationKind.STALLED),
        notified("one", NotificationKind.FAILED, 60),
        notified("one", NotificationKind.READY, 3000),
    ]
    driver.run(notifications, after(7200))
    told = [(route, message.title.removeprefix("f: ")) for _, route, message in driver.sent]
    assert [title for route, title in told if route == "stalls"] == [
        "1 cluster stalled in westeurope: QuotaExceeded",
        "1 cluster: stalled became failed in westeurope",
    ]
    assert [title for route, title in told if route == "ops"] == [
        "1 cluster stalled in westeurope: QuotaExceeded",
        "1 cluster failed in westeurope: QuotaExceeded, and 1 more",
        "1 cluster no longer failed in westeurope",
    ]


def test_a_problem_of_a_cluster_that_leaves_a_route_ends_there_and_one_that_repeats_ends_once() -> None:
    production = Route("production", RouteType.SLACK, "A", environments=("production",))
    begins = notified("one", environment="production")
    known = take(NotifierRecord(), [begins], (production,), T0)
    again = take(known, [notified("one", environment="production", number=2)], (production,), after(1))
    assert again.routes["production"].pending == ("failed:one:1", "failed:one:2")
    moved = take(known, [notified("one", environment="test", number=2)], (production,), after(1))
    assert moved.routes["production"].pending == ("failed:one:1", "failed:one:1:over")


def test_a_stored_fact_that_is_read_again_is_taken_once() -> None:
    routes = (Route("ops", RouteType.SLACK, "OPS", Severity.INFO),)
    stored = [notified("one"), notified("two", NotificationKind.READY)]
    known = take(NotifierRecord(), stored, routes, T0)
    known = delivered(known, "ops", known.routes["ops"].pending, after(10))
    again = take(known, [*stored, notified("three", seconds=11)], routes, after(11))
    assert again.routes["ops"].pending == ("failed:three:1",)


def test_a_fact_that_is_stored_again_after_it_was_taken_is_not_told_while_it_lasts() -> None:
    known = take(NotifierRecord(), [notified("one")], ROUTES, T0)
    known = take(delivered(known, "ops", ["failed:one:1"], after(10)), [], ROUTES, after(20))
    again = take(known, [notified("one")], ROUTES, after(30))
    assert again.routes["ops"].pending == ()


def test_a_problem_that_the_record_does_not_show_is_over() -> None:
    known = take(NotifierRecord(), [notified("one"), notified("two")], ROUTES, T0)
    assert unconfirmed(known, T0 + CONFIRM / 2) == []
    unsure = unconfirmed(known, T0 + CONFIRM)
    assert [notification.subject for notification in unsure] == ["one", "two"]
    checked = confirm(known, {"failed:one:1": True, "failed:two:1": False}, ROUTES, T0 + CONFIRM)
    assert set(checked.open.values()) == {"failed:one:1"}
    assert checked.routes["ops"].pending[-1] == "failed:two:1:over"
    assert unconfirmed(checked, T0 + CONFIRM) == []
    assert [notification.subject for notification in unconfirmed(checked, T0 + CONFIRM + CONFIRM_AGAIN)] == [
        "one"
    ]


def test_a_route_that_fails_is_tried_again_at_growing_intervals_or_when_it_asks_for_it() -> None:
    known = take(NotifierRecord(), [notified("one")], ROUTES, T0)
    error = ("Unavailable", "no answer")
    waits = []
    for _ in range(9):
        known = failed(known, "ops", error, T0, wait=None, jitter=1.0)
        waits.append((known.routes["ops"].next_at or T0) - T0)
    assert waits[:3] == [timedelta(seconds=30), timedelta(seconds=60), timedelta(seconds=120)]
    assert waits[-1] == timedelta(seconds=RETRIES.longest)
    asked = failed(known, "ops", ("Throttled", "slow down"), T0, wait=45, jitter=0.5)
    assert asked.routes["ops"].next_at == after(45)
    outage = asked.routes["ops"].outage
    assert outage is not None
    assert (outage.attempts, outage.since) == (10, T0)


def test_what_a_route_missed_for_days_is_bounded_and_counted() -> None:
    notifications = [notified(f"c{n}", seconds=n, number=n) for n in range(MOST_PENDING + 30)]
    known = take(NotifierRecord(), notifications, ROUTES, after(5000))
    state = known.routes["ops"]
    assert (len(state.pending), state.dropped) == (MOST_PENDING, 30)
    (first, *_) = messages(
        due(known, "ops", after(6000)), fleet="f", limit=12_000, links=Links(), dropped=state.dropped
    )
    assert "30 older notifications were dropped" in first.text


def test_problems_of_the_fleet_begin_and_end_with_what_is_present() -> None:
    problem = Notification(
        "orphan:1", NotificationKind.ORPHAN, "orphan:1", "ghost", T0, detail="nobody knows it"
    )
    known = compare(take(NotifierRecord(), [], ROUTES, T0), [problem], {NotificationKind.ORPHAN}, ROUTES, T0)
    same = compare(known, [problem], {NotificationKind.ORPHAN}, ROUTES, after(5))
    assert same.routes["ops"].pending == ("orphan:1",)
    unread = compare(known, [], {NotificationKind.SWEEP}, ROUTES, after(5))
    assert set(unread.open.values()) == {"orphan:1"}
    over = compare(known, [], {NotificationKind.ORPHAN}, ROUTES, after(5))
    assert over.routes["ops"].pending == ("orphan:1", "orphan:1:over")
    assert not over.open


@pytest.mark.parametrize("kind", sorted(set(KINDS) - OF_PLANS))
def test_a_problem_of_the_fleet_ends_once_it_is_gone_and_that_of_a_cluster_does_not(
    kind: NotificationKind,
) -> None:
    begun = (Notification(f"{kind}:1", kind, key, "one", T0) for key in ("fleet", "cluster:one"))
    of_fleet, of_cluster = (take(NotifierRecord(), [problem], ROUTES, T0) for problem in begun)
    ended, kept = (compare(known, [], OTHERS, ROUTES, after(5)).open for known in (of_fleet, of_cluster))
    assert (ended, kept) == ({}, of_cluster.open)


def test_a_problem_that_may_pass_by_itself_is_taken_when_it_has_lasted() -> None:
    problem = Notification("plan:1", NotificationKind.PLAN, "fleet", "c0ffee", T0, reason="Unavailable")
    lasts = PASSING[NotificationKind.PLAN]
    known = compare(take(NotifierRecord(), [], ROUTES, T0), [problem], {NotificationKind.PLAN}, ROUTES, T0)
    assert not known.open
    assert next_moment(known, T0) == T0 + lasts
    passed = compare(known, [], {NotificationKind.PLAN}, ROUTES, after(30))
    assert (passed.since, passed.notifications) == ({}, {})
    again = compare(passed, [problem], {NotificationKind.PLAN}, ROUTES, T0 + lasts)
    assert not again.open
    lasted = compare(known, [problem], {NotificationKind.PLAN}, ROUTES, T0 + lasts)
    assert lasted.routes["ops"].pending == ("plan:1",)
    assert not lasted.since


def test_a_route_that_git_no_longer_has_is_forgotten_and_a_new_one_begins_empty() -> None:
    known = take(NotifierRecord(), [notified("one")], ROUTES, T0)
    other = (Route("new", RouteType.TEAMS, "NEW"),)
    changed = take(known, [], other, after(1))
    assert {name: state.pending for name, state in changed.routes.items()} == {"new": ()}
    assert set(changed.open.values()) == {"failed:one:1"}


def test_a_digest_of_several_messages_is_one_pause() -> None:
    notifications = [notified(f"aks-production-{n:04d}", number=n) for n in range(MOST_PENDING)]
    driver = Driver()
    driver.run(notifications, after(10))
    state = driver.known.routes["ops"]
    assert len(driver.sent) == MOST_MESSAGES
    assert (state.burst, state.next_at) == (1, after(10) + COLLECT)


def test_a_message_whose_delivery_was_started_comes_first_and_alone_whatever_follows() -> None:
    known = begin(take(NotifierRecord(), [notified("one")], ROUTES, T0), "ops", ["failed:one:1"])
    error = ("Unavailable", "no answer")
    known = failed(known, "ops", error, after(10), wait=None, jitter=1.0)
    known = take(known, [notified("two", seconds=20)], ROUTES, after(20))
    assert [notification.id for notification in due(known, "ops", after(40))] == ["failed:one:1"]
    known = delivered(known, "ops", ["failed:one:1"], after(40))
    assert [notification.id for notification in due(known, "ops", after(60))] == ["failed:two:1"]


def test_a_part_of_a_message_that_was_started_is_not_lost_when_its_route_takes_less() -> None:
    known = take(NotifierRecord(), [notified("one"), notified("two")], ROUTES, T0)
    known = begin(known, "ops", known.routes["ops"].pending)
    less = begin(known, "ops", ["failed:two:1"])
    assert (less.routes["ops"].sending, less.routes["ops"].pending) == (("failed:two:1",), ("failed:one:1",))


def test_the_newest_messages_are_remembered_and_one_that_is_sent_again_once() -> None:
    known = take(NotifierRecord(), [], ROUTES, T0)
    (name, *_) = known.routes
    for number in range(MESSAGES + 5):
        known = with_message(known, name, SentMessage(str(number), "title", after(number)))
    failing = SentMessage("again", "title", after(90), "Unavailable: no answer")
    for message in (failing, SentMessage("again", "title", after(120))):
        known = with_message(known, name, message)
    messages = known.routes[name].messages
    assert [message.id for message in messages] == [*map(str, range(6, MESSAGES + 5)), "again"]
    assert (messages[-1].problem, messages[-1].at) == ("", after(120))
