"""The moments of a cron expression by the clock of a time zone. Pure.

An hour that the clock skips counts as the one after it, and of an hour that comes twice the first one counts,
as for change windows.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

_SHIFT = timedelta(hours=3)
"""More than a clock is ever put forward or back; around that, moments are not in the order of the clock."""


def next_moment(cron: str, time_zone: str, after: datetime) -> datetime:
    """Return the first moment of an expression after a time; raise LookupError for none in 50 years."""
    return _next(cron, time_zone, after.replace(second=0, microsecond=0))


@lru_cache(maxsize=4096)
def _next(cron: str, time_zone: str, after: datetime) -> datetime:
    zone, found = ZoneInfo(time_zone), None
    for wall in CronSim(cron, _wall(after, zone) - _SHIFT):
        if found is not None and wall > _wall(found, zone) + _SHIFT:
            return found
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment > after:
            found = min(moment, found or moment)
    raise LookupError(cron)


def last_moment(cron: str, time_zone: str, until: datetime) -> datetime:
    """Return the last moment of an expression at or before a time; raise LookupError for none in 50 years."""
    return _last(cron, time_zone, until.replace(second=0, microsecond=0))


@lru_cache(maxsize=4096)
def _last(cron: str, time_zone: str, until: datetime) -> datetime:
    zone, found = ZoneInfo(time_zone), None
    for wall in CronSim(cron, _wall(until, zone) + _SHIFT, reverse=True):
        if found is not None and wall < _wall(found, zone) - _SHIFT:
            return found
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment <= until:
            found = max(moment, found or moment)
    raise LookupError(cron)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)
