"""Maintenance windows: what is written is what AKS takes, whatever the cluster had before."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from localcloud.azure.world.clusters.maintenance import maintenance_document
from shared.azure.companions.maintenance_windows import WindowCompanion
from shared.language.desired import Desired
from tests.support.arm_bodies import desired

NAME = "aksManagedAutoUpgradeSchedule"
AT = f"maintenanceWindows[{NAME}].maintenanceWindow"
WEEKLY = {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Sunday"}}
KINDS: list[dict[str, Any]] = [
    {"daily": {"intervalDays": 2}},
    WEEKLY,
    {"absoluteMonthly": {"intervalMonths": 1, "dayOfMonth": 15}},
    {"relativeMonthly": {"intervalMonths": 1, "weekIndex": "First", "dayOfWeek": "Monday"}},
]


def cluster(schedule: dict[str, Any], hours: int = 4, start: str | None = None) -> Desired:
    """Return a cluster whose manifest has one window with this schedule."""
    window = {"schedule": schedule, "durationHours": hours, "startTime": "01:00"}
    window |= {"startDate": start} if start else {}
    return desired(maintenanceWindows=[{"name": NAME, "maintenanceWindow": window}])


def shown(of: Desired) -> dict[str, Any]:
    """Return the window as Azure shows it; AKS refuses one of which this is not the whole document."""
    return written(of, {})


def written(of: Desired, live: dict[str, Any]) -> dict[str, Any]:
    """Return what Azure shows after the write that a cluster needs, which it may refuse."""
    (window,) = WindowCompanion.of(of)
    body = window.written(live.get(window.key), of.left)
    assert body is not None
    return {window.key: maintenance_document(of.id, NAME, body, date(2026, 1, 1))}


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_another_kind_of_schedule_replaces_the_one_before(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    wanted = cluster(after, hours=8)
    found = written(wanted, shown(cluster(before)))
    (companion,) = WindowCompanion.of(wanted)
    window = found[companion.key]["properties"]["maintenanceWindow"]
    assert (window["schedule"], window["startDate"]) == (after, "2026-01-01")
    assert not list(companion.differences(found[companion.key]))
    assert companion.written(found[companion.key], ()) is None


def test_a_schedule_that_the_job_leaves_stays_the_only_one() -> None:
    live = shown(cluster({"daily": {"intervalDays": 2}}))
    fields = (f"{AT}.schedule.weekly.{field}" for field in ("intervalWeeks", "dayOfWeek"))
    found = written(replace(cluster(WEEKLY, hours=8), left=frozenset(fields)), live)
    (document,) = found.values()
    window = document["properties"]["maintenanceWindow"]
    assert (window["schedule"], window["durationHours"]) == ({"daily": {"intervalDays": 2}}, 8)


@pytest.mark.parametrize(
    ("in_git", "in_azure", "sent"),
    [
        (None, "2026-01-05", None),
        ("2026-01-05", "2026-01-05", None),
        ("2026-01-05", "2026-03-01", None),
        (None, "2026-06-01", "2026-06-01"),
        ("2026-06-01", "2026-06-01", "2026-06-01"),
        ("2026-05-01", "2026-06-01", "2026-05-01"),
        ("2026-05-01", "2026-01-05", "2026-05-01"),
    ],
)
def test_a_change_sends_no_start_of_the_past_back_and_every_other_one(
    in_git: str | None, in_azure: str, sent: str | None
) -> None:
    (before,) = WindowCompanion.of(cluster(WEEKLY))
    body = before.written(None, ())
    assert body is not None
    live = maintenance_document(before.cluster, NAME, body, date.fromisoformat(in_azure))
    (window,) = WindowCompanion.of(cluster(WEEKLY, hours=6, start=in_git))
    today = date(2026, 3, 2)
    changed = window.as_of(today).written(live, ())
    assert changed is not None
    assert changed["properties"]["maintenanceWindow"].get("startDate") == sent
    after = maintenance_document(before.cluster, NAME, changed, today)
    assert not list(window.as_of(today).differences(after))
    assert window.as_of(date(2026, 12, 1)).written(after, ()) is None
