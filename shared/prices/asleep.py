"""What is left of a list price while a cluster sleeps, and for how much of the time it is awake. Pure.

A stopped cluster accrues no charges itself: no tier and no nodes (learn.microsoft.com/rest/api/aks/
managed-clusters/stop). What is around it stays: its load balancer with the public addresses
(github.com/Azure/AKS/issues/3749), and volumes. A stop deletes the nodes
(github.com/MicrosoftDocs/azure-docs/issues/80093), and what becomes of the disks and addresses of nodes Azure
does not say, so these count from none to all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from shared.language.model.cluster.sleep import Sleep, SleepSchedule, last_moment, next_moment

WEEK_HOURS = 168
_SPAN = timedelta(days=28)
_MOST = 500
"""Moments of a schedule that are looked at: one that turns more often is listed as always awake."""


def awake_share(sleep: Sleep | None, labels: Mapping[str, str], day: date) -> Decimal:
    """Return for which part of four weeks from a day the schedules have a cluster awake; 1 is always.

    Holidays and what operators order are left out.
    """
    if sleep is None or not sleep.schedules:
        return Decimal(1)
    if sleep.keep_awake and sleep.keep_awake.items() <= labels.items():
        return Decimal(1)
    return _share(sleep.schedules, sleep.early, day)


@lru_cache(maxsize=256)
def _share(schedules: tuple[SleepSchedule, ...], early: timedelta, day: date) -> Decimal:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    turns = [(begin, _awake(schedules, early, begin))]
    for schedule in schedules:
        stops = [(at, False) for at in _moments(schedule.stop, schedule.time_zone, begin, begin + _SPAN)]
        starts = _moments(schedule.start, schedule.time_zone, begin + early, begin + early + _SPAN)
        turns += [*stops, *((at - early, True) for at in starts)]
        if len(stops) >= _MOST:
            return Decimal(1)
    turns = [*sorted(turns), (begin + _SPAN, True)]
    awake = sum(
        ((until - at) for (at, is_awake), (until, _) in pairwise(turns) if is_awake),
        timedelta(),
    )
    return Decimal(int(awake.total_seconds())) / Decimal(int(_SPAN.total_seconds()))


def _awake(schedules: tuple[SleepSchedule, ...], early: timedelta, at: datetime) -> bool:
    stopped = max(last_moment(schedule.stop, schedule.time_zone, at) for schedule in schedules)
    started = max(
        last_moment(schedule.start, schedule.time_zone, at + early) - early for schedule in schedules
    )
    return started >= stopped


def _moments(cron: str, zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    at = after
    for _ in range(_MOST):
        at = next_moment(cron, zone, at)
        if at >= until:
            return
        yield at


def hours_text(share: Decimal) -> str:
    """Return how many hours of a week a share is: 60 of 168."""
    return f"{share * WEEK_HOURS:.0f} of {WEEK_HOURS}"
