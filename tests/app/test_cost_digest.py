"""Once a week the routes get a digest of the costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.costs.known_costs import AGAIN, digest_costs, read_costs
from shared.app.recovery.missed_work import wake_notifier
from shared.language.model.notification_kinds import NotificationKind
from tests.support.notifications import notifying
from tests.support.notified import ALL, OPS
from tests.support.pipeline_runs import cloud_with, push
from tests.support.priced_fleets import priced_files

COSTS = "{name: costs, type: slack, address: COSTS, events: [cost]}"


def notified(**clusters: str) -> MemoryCloud:
    return cloud_with(notifying(priced_files(**clusters), OPS, COSTS, ALL))


def daily(cloud: MemoryCloud, days: int = 1) -> None:
    """Run the timer once a day, and let the notifier send."""
    for _ in range(days):
        cloud.clock.advance(AGAIN.total_seconds() + 4 * 3600)
        read_costs(cloud.ports)
        digest_costs(cloud.ports)
        wake_notifier(cloud.ports)
        cloud.run(700)


def texts(cloud: MemoryCloud, route: str = "costs") -> list[str]:
    return [message.text for message in cloud.routes.delivered.get(route, [])]


@pytest.fixture
def cloud() -> MemoryCloud:
    return notified(one="  environment: production\n", two="  environment: development\n")


def test_a_route_that_names_it_gets_one_digest_a_week(cloud: MemoryCloud) -> None:
    daily(cloud, 15)

    found = texts(cloud)

    assert len(found) == 3  # fifteen days are in three weeks
    assert "List price: $400 a month, prices of 2026-09-23; no earlier week is known" in found[0]
    assert "By environment: production $237, development $164" in found[0]
    assert "By owner: (none) $400" in found[0]
    assert "Billed by Azure in 30 days: $1,512, for 2 of 2 clusters" in found[0]
    assert "; as in 2026-W" in found[1]
    assert not any("By owner" in text for text in texts(cloud, "ops"))
    assert any("By owner" in text for text in texts(cloud, "all"))


def test_a_change_is_against_the_week_before(cloud: MemoryCloud) -> None:
    daily(cloud)
    push(cloud, notifying(priced_files(one="  environment: production\n"), COSTS))
    cloud.run()
    daily(cloud, 7)

    (_, second) = texts(cloud)

    assert "-$164 against 2026-W" in second
    assert "development no longer" in second


def test_a_crash_before_the_week_is_saved_repeats_the_same_notification(cloud: MemoryCloud) -> None:
    read_costs(cloud.ports)
    digest_costs(cloud.ports)
    (first,) = [
        notification
        for notification in cloud.state.notifications(10)
        if notification.kind is NotificationKind.COST
    ]
    week = cloud.state.week_of_costs()
    assert week is not None
    cloud.state.save_week_of_costs(replace(week, week="2025-W01"))  # as if it had not been saved
    digest_costs(cloud.ports)

    (again,) = [
        notification
        for notification in cloud.state.notifications(10)
        if notification.kind is NotificationKind.COST
    ]

    assert again.id == first.id


def test_a_fleet_without_clusters_has_no_digest() -> None:
    cloud = notified()
    daily(cloud)
    assert texts(cloud) == []
