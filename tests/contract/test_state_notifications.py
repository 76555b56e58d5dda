"""What is stored of notifications: notifications until they are taken, and what the notifier remembers."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.cluster.failures.errors import Stale
from shared.language.model.notification_kinds import NotificationKind, RouteType, Severity
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord, confirm, failed, take
from shared.notifications.routes import Route
from shared.ports import FleetRecord, State
from shared.ports.state import FleetRules
from shared.ports.state.app import NOTIFICATION
from shared.ports.state.clusters import FLEETS
from tests.support.notifications import ROUTES, T0, after, notified


def test_facts_are_read_oldest_first_and_removed_alone(state: State) -> None:
    notifications = [notified(name, seconds=seconds) for name, seconds in (("c", 3), ("a", 1), ("b", 2))]
    for notification in notifications:
        state.add_notification(notification)
    assert [notification.subject for notification in state.notifications(10)] == ["a", "b", "c"]
    assert [notification.subject for notification in state.notifications(2)] == ["a", "b"]
    state.remove_notifications(state.notifications(2))
    assert state.notifications(10) == [notifications[0]]
    state.remove_notifications(notifications)
    assert state.notifications(10) == []


def test_a_fact_that_is_stored_twice_is_there_once_and_as_it_was(state: State) -> None:
    whole = replace(
        notified("one"),
        labels={"team": "payments"},
        names=("one", "two"),
        since=after(-5),
        diff="-a\n+ü",
        over=True,
    )
    state.add_notification(whole)
    state.add_notification(whole)
    assert state.notifications(10) == [whole]


def test_a_fact_whose_id_no_key_can_have_is_stored(state: State) -> None:
    odd = Notification(
        "dead-letter:jobs:1:a/b\\c#d?e", NotificationKind.DEAD_LETTER, "dead-letters:jobs", "jobs", T0
    )
    state.add_notification(odd)
    assert state.notifications(10) == [odd]
    state.remove_notifications([odd])
    assert state.notifications(10) == []


def test_old_facts_are_pruned(state: State) -> None:
    for seconds in (0, 100):
        state.add_notification(notified("one", seconds=seconds, number=seconds))
    assert state.prune(NOTIFICATION, T0 + timedelta(seconds=50)) == 1
    assert [notification.at for notification in state.notifications(10)] == [after(100)]


def test_what_the_notifier_remembers_is_written_only_over_the_version_that_was_read(state: State) -> None:
    assert state.notifier_record() == NotifierRecord()
    known = take(state.notifier_record(), [notified("one"), notified("two")], ROUTES, T0)
    known = failed(known, "ops", ("Throttled", "slow down"), T0, wait=9, jitter=0)
    saved = state.save_notifier_record(known)
    assert state.notifier_record() == saved == known
    with pytest.raises(Stale):
        state.save_notifier_record(known)
    state.save_notifier_record(replace(saved, plan_at=after(1)))
    assert state.notifier_record().plan_at == after(1)


@pytest.mark.lives
def test_a_fleet_of_which_every_cluster_has_failed_is_remembered(state: State) -> None:
    notifications = [notified(f"aks-production-{n:05d}", seconds=n / 10, number=n) for n in range(5000)]
    known = take(NotifierRecord(), notifications, ROUTES, after(600))
    state.save_notifier_record(known)
    assert len(state.notifier_record().open) == 5000


@pytest.mark.lives
def test_an_outage_of_a_large_fleet_is_remembered_as_a_whole_and_leaves_nothing_behind(state: State) -> None:
    chance = random.Random(1)
    notifications = [
        replace(notified(f"aks-production-{n:05d}", number=n), detail=f"{chance.getrandbits(1200):x}")
        for n in range(10_000)
    ]
    known = take(NotifierRecord(), notifications, ROUTES, T0)
    known = confirm(known, dict.fromkeys(known.open.values(), True), ROUTES, after(120))
    saved = state.save_notifier_record(known)
    assert state.notifier_record() == saved == known
    assert len(saved.open) == len(saved.confirmed) == 10_000
    later = state.save_notifier_record(replace(saved, plan_at=after(121)))
    with pytest.raises(Stale):
        state.save_notifier_record(saved)
    assert state.notifier_record() == later
    last = state.save_notifier_record(NotifierRecord(etag=later.etag))
    assert state.notifier_record() == last == NotifierRecord()
    assert list(state._tables[FLEETS].query(f"parts|notifier|{state._fleet}")) == []


def test_the_routes_of_a_fleet_are_read_back_as_they_were(state: State) -> None:
    routes = (
        Route("a", RouteType.ISSUES),
        Route("b", RouteType.EMAIL, "B", Severity.INFO, (NotificationKind.READY,), ("prod",), {"team": "x"}),
    )
    state.save_fleet(FleetRecord("c" * 40, rules=FleetRules(routes)))
    assert state.fleet().rules.routes == routes
