"""What notifications say of dead letters: each begins or renews a problem, and none is announced again."""

from __future__ import annotations

from datetime import timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.fleet import dismiss
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.app.recovery.missed_work import wake_notifier
from shared.language.model.notification_kinds import NotificationKind
from tests.support import fleet_files
from tests.support.notifications import notifying
from tests.support.pipeline_runs import cloud_with


def _fleet() -> MemoryCloud:
    return cloud_with(notifying(fleet_files.fleet("one"), "{name: ops, type: slack, address: OPS}"))


def _dead_letter(cloud: MemoryCloud, name: str, *, queued: timedelta = timedelta(0)) -> None:
    at = cloud.clock() - queued
    handle_dead_letter(
        ReceivedDeadLetter("jobs", name, at, b"not a message", "not a message", "TooOften"), cloud.ports
    )
    _look(cloud)


def _look(cloud: MemoryCloud) -> None:
    for _ in range(2):
        wake_notifier(cloud.ports)
        cloud.run(400)


def _told(cloud: MemoryCloud) -> list[tuple[str, bool]]:
    """Return the id of each notification that was delivered, and whether it is an end."""
    sent = cloud.routes.delivered.get("ops", [])
    notifications = [
        notification for message in sent for group in message.groups for notification in group.notifications
    ]
    assert {notification.kind for notification in notifications} <= {NotificationKind.DEAD_LETTER}
    return [(notification.id.removesuffix(":over"), notification.over) for notification in notifications]


def test_dismissing_the_newest_dead_letter_announces_no_older_one_and_the_last_ends_it() -> None:
    cloud = _fleet()
    for name in ("1:a", "2:b", "3:c"):
        _dead_letter(cloud, name)
    told = [(f"dead-letter:jobs:{name}", False) for name in ("1:a", "2:b", "3:c")]
    assert _told(cloud) == told
    for name in ("3:c", "2:b"):
        assert dismiss([("jobs", name)], "ann", cloud.ports) == {"dismissed": 1}
        _look(cloud)
        assert _told(cloud) == told
    dismiss([("jobs", "1:a")], "ann", cloud.ports)
    _look(cloud)
    assert _told(cloud) == [*told, ("dead-letter:jobs:3:c", True)]


def test_a_dead_letter_that_waited_longer_than_another_one_is_announced() -> None:
    cloud = _fleet()
    _dead_letter(cloud, "2:b")
    _dead_letter(cloud, "1:a", queued=timedelta(hours=3))
    assert [name for name, _ in _told(cloud)] == ["dead-letter:jobs:2:b", "dead-letter:jobs:1:a"]


def test_a_dead_letter_from_before_the_fact_of_it_was_stored_is_announced() -> None:
    cloud = _fleet()
    _dead_letter(cloud, "1:a")
    cloud.state.save_notifier_record(
        type(cloud.state.notifier_record())(etag=cloud.state.notifier_record().etag)
    )
    _look(cloud)
    assert [name for name, _ in _told(cloud)] == ["dead-letter:jobs:1:a"] * 2
