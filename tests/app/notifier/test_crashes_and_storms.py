"""Crashes, lost messages and storms of notifications: none is lost, and few messages are sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.crashes import Counter, Crash
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.app.notifier import handle
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import NotifyRequest
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification
from tests.support import fleet_files
from tests.support.notifications import notifying, storm
from tests.support.pipeline_runs import cloud_with, push, record_of
from tests.support.sample import sample

pytestmark = pytest.mark.lives

NOTIFY = NotifyRequest()
OPS = "{name: ops, type: slack, address: OPS}"


def fleet(*names: str) -> dict[str, bytes]:
    return notifying(fleet_files.fleet(*names), OPS)


def _known_failure(cloud: MemoryCloud) -> None:
    push(cloud, fleet("one"))
    cloud.run()
    record = record_of(cloud, "one")
    lost = replace(record, phase=Phase.FAILED)
    cloud.state.save(lost)
    cloud.state.add_notification(
        Notification(
            "failed:one:x", NotificationKind.FAILED, "cluster:one", "one", cloud.clock(), location="eastus"
        )
    )


def _calls(cloud: MemoryCloud) -> int:
    counter = Counter()
    handle(NOTIFY, tripwired(cloud.ports, counter))
    cloud.clock.advance(15)
    handle(NOTIFY, tripwired(cloud.ports, counter))
    return counter.calls


def _points() -> list[int]:
    """Return the calls at which a notifier crashes, of this run and of the one that comes after it."""
    cloud = MemoryCloud()
    _known_failure(cloud)
    return sample("notifier", range(2 * _calls(cloud)), 8)


def test_a_crash_at_any_call_loses_no_fact_and_repeats_at_most_the_last_message() -> None:
    for point in _points():
        cloud = MemoryCloud()
        _known_failure(cloud)
        counter = Counter(point)
        for _ in range(4):
            try:
                handle(NOTIFY, tripwired(cloud.ports, counter))
            except Crash:
                continue
            cloud.clock.advance(15)
        ids = [message.id for message in cloud.routes.delivered["ops"]]
        assert len(set(ids)) == 1, point
        assert len(ids) <= 2, point
        assert cloud.state.notifications(10) == [], point


def _ids_of_facts(cloud: MemoryCloud) -> dict[str, set[str]]:
    """Return the ids of the messages in which each notification was delivered."""
    found: dict[str, set[str]] = {}
    for message in cloud.routes.delivered.get("ops", []):
        for notification in message.notifications:
            found.setdefault(notification, set()).add(message.id)
    return found


def _another_failure(cloud: MemoryCloud, number: int) -> None:
    key = f"cluster:other-{number}"
    cloud.state.add_notification(
        Notification(
            f"failed:{number}",
            NotificationKind.FAILED,
            key,
            f"other-{number}",
            cloud.clock(),
            location="eastus",
        )
    )


def test_a_message_that_a_crash_repeats_has_its_id_also_when_more_has_happened_since() -> None:
    for point in _points():
        cloud = MemoryCloud()
        _known_failure(cloud)
        counter = Counter(point)
        for n in range(8):
            try:
                handle(NOTIFY, tripwired(cloud.ports, counter))
            except Crash:
                _another_failure(cloud, n)
            cloud.clock.advance(15)
        found = _ids_of_facts(cloud)
        assert len(found) >= 2, point
        assert [notification for notification, ids in found.items() if len(ids) > 1] == [], point


def test_a_message_whose_answer_was_lost_is_sent_again_as_it_was() -> None:
    cloud = MemoryCloud()
    _known_failure(cloud)
    cloud.routes.unanswered["ops"] = Unavailable("the answer was lost")
    wake_notifier(cloud.ports)
    cloud.run(300, until=lambda: bool(cloud.routes.delivered))
    del cloud.routes.unanswered["ops"]
    _another_failure(cloud, 1)
    cloud.run(300)
    found = _ids_of_facts(cloud)
    assert [len(message.notifications) for message in cloud.routes.delivered["ops"]] == [1, 1, 1]
    assert {notification: len(ids) for notification, ids in found.items()} == {
        "failed:one:x": 1,
        "failed:1": 1,
    }


def test_a_storm_of_facts_is_a_bounded_number_of_messages_and_none_is_missing() -> None:
    cloud = cloud_with(fleet("one"))
    for notification in storm(500, cloud.clock()):
        cloud.state.add_notification(notification)
    wake_notifier(cloud.ports)
    cloud.run(110)
    delivered = cloud.routes.delivered["ops"]
    named = [
        notification.subject
        for message in delivered
        for group in message.groups
        for notification in group.notifications
    ]
    assert len(delivered) <= 3
    assert len(named) == len(set(named)) == 500
    text = "\n".join(message.text for message in delivered)
    assert [name for name in named if f"{name} " not in text] == []
