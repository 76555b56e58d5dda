"""When a change may start: windows that recur in a time zone, and freezes, which count more than windows.

A window opens by the clock of its time zone: an hour that the clock skips counts as the one after it, and of
an hour that comes twice the first one counts. It is open for its whole duration, whatever the clock does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from shared.frozen import dataclass
from shared.plan.holds import Closure

SPREAD = timedelta(minutes=10)
"""Over how much time the starts at the opening of a window are spread, or over a tenth of the window."""
_HORIZONS = (timedelta(days=8), timedelta(days=70), timedelta(days=366 * 9))
"""How far ahead the next opening is looked for; only one on a leap day is further away than the second."""
_DAY = timedelta(days=1)
_STEPS = 100
"""So many freezes and openings may follow each other before the next start."""


class Start(StrEnum):
    """What Roadstead starts, as windows and freezes name it. The retry of a job is what the job does."""

    CHANGE = "changes"
    CREATION = "creations"
    """Also an adoption, and that of a cluster that somebody deleted."""
    DELETE = "deletes"
    """Also a rebuild, which begins with one."""
    CORRECTION = "corrections"


USUAL = (Start.CHANGE, Start.DELETE, Start.CORRECTION)
"""What is bound where nothing is written: whatever changes a cluster that runs. A creation changes none."""


@dataclass(frozen=True)
class Window:
    """A window as written: ``start`` is a time of day in its time zone. It is for what it ``applies_to``."""

    name: str
    time_zone: str
    recurrence: str
    start: str
    duration: timedelta
    applies_to: tuple[Start, ...] = USUAL


@dataclass(frozen=True)
class Freeze:
    """A freeze as written; it holds what it ``applies_to``."""

    name: str
    starts: datetime
    ends: datetime
    owner: str
    reason: str
    applies_to: tuple[Start, ...] = USUAL


def closed(windows: Sequence[Window], freezes: Sequence[Freeze], uid: str, now: datetime) -> Closure | None:
    """Return why a cluster with these windows and freezes may not start now, None if it may."""
    at: datetime | None = now
    name, frozen = "", _active(freezes, now)
    for _ in range(_STEPS):
        freeze = _active(freezes, at) if at else None
        if freeze is not None:
            at = freeze.ends
            continue
        found = _first(windows, uid, at) if at and windows else None
        if found is None:
            at = at if not windows else None
            break
        if found[0] == at:
            break
        at, name = found
    if at == now:
        return None
    if frozen is not None:
        return Closure(frozen.name, at, frozen.starts, frozen.owner, frozen.reason)
    open_since = min((since for window in windows if (since := opened(window, now))), default=None)
    return Closure(name, at, open_since or _closed_since(windows, now), staggered=open_since is not None)


def _closed_since(windows: Sequence[Window], now: datetime) -> datetime | None:
    """Return when the last of the windows closed, None for one that was not open for two months."""
    ends = (_last_end(window, now) for window in windows)
    return max((at for at in ends if at is not None), default=None)


def opened(window: Window, now: datetime) -> datetime | None:
    """Return since when a window is open, None for one that is not."""
    found = [at for at in _openings(window, now - window.duration, now) if now < at + window.duration]
    return min(found, default=None)


def _active(freezes: Sequence[Freeze], now: datetime) -> Freeze | None:
    """Return the freeze that is in force, the one that ends last of several."""
    found = (freeze for freeze in freezes if freeze.starts <= now < freeze.ends)
    return max(found, key=lambda freeze: freeze.ends, default=None)


def _first(windows: Sequence[Window], uid: str, now: datetime) -> tuple[datetime, str] | None:
    """Return when the first of the windows lets a cluster start, and its name; None for never."""
    return min(_moments(windows, uid, now), default=None)


def _moments(windows: Sequence[Window], uid: str, now: datetime) -> Iterator[tuple[datetime, str]]:
    for window in windows:
        since = opened(window, now)
        opens = since or _next(window, now)
        if opens is not None:
            yield max(now, opens + _offset(window, uid)), window.name


def _offset(window: Window, uid: str) -> timedelta:
    """Return how long after the opening a cluster may start: another time for each, and always the same."""
    share = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big") / 2**32
    seconds = min(SPREAD, window.duration / 10).total_seconds() * share
    return timedelta(seconds=int(seconds))


@lru_cache(maxsize=256)
def _next(window: Window, now: datetime) -> datetime | None:
    for horizon in _HORIZONS:
        found = [at for at in _openings(window, now, now + horizon) if at > now]
        if found:
            return min(found)
    return None


@lru_cache(maxsize=256)
def _last_end(window: Window, now: datetime) -> datetime | None:
    for horizon in _HORIZONS[:2]:
        found = [at + window.duration for at in _openings(window, now - horizon, now)]
        ended = [at for at in found if at <= now]
        if ended:
            return max(ended)
    return None


@lru_cache(maxsize=256)
def _openings(window: Window, first: datetime, last: datetime) -> tuple[datetime, ...]:
    """Return the openings from one time to another, in UTC."""
    zone = ZoneInfo(window.time_zone)
    hour, minute = map(int, window.start.split(":"))
    low = first.astimezone(zone).replace(tzinfo=None) - _DAY
    begin = low.replace(hour=hour, minute=minute, second=0, microsecond=0)
    end = last.astimezone(zone).replace(tzinfo=None) + _DAY
    found = rrulestr(window.recurrence, dtstart=begin).between(begin, end, inc=True)
    times = (at.replace(tzinfo=zone).astimezone(UTC) for at in found)
    return tuple(at for at in times if first <= at <= last)
