"""When a cluster is to be awake: by its schedules, its holidays, and what an operator ordered. Pure.

The engine compares: should it be awake now, and is it? So no time that was missed stays missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from shared.frozen import dataclass
from shared.language.model.cluster.schedules import LONGEST, Sleep, last_moment, next_moment

CHANGES_WAIT = timedelta(days=3)
"""A change wakes a cluster that sleeps on for longer: no rollout stays open for weeks because of it."""
_STEPS = 40
"""After so many stops that starts of other schedules undo nobody looks further ahead: it is decided again
then, and no manifest keeps a plan busy."""
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class SleepOrder:
    """What an operator ordered for once: the cluster is ``awake``, or sleeps, from ``at`` until a time."""

    awake: bool
    at: datetime
    until: datetime
    by: str
    reason: str = ""


@dataclass(frozen=True)
class SleepDecision:
    """Whether a cluster is to be awake, and until when; None for no end.

    ``since`` is when its sleep began, None for one that is awake. ``order`` is what decides it, None where
    the schedules do.
    """

    awake: bool
    until: datetime | None
    since: datetime | None = None
    order: SleepOrder | None = None


def should_be_awake(
    sleep: Sleep, order: SleepOrder | None, labels: Mapping[str, str], now: datetime
) -> SleepDecision:
    """Return whether a cluster with these labels is to be awake at a time."""
    times = _Times(sleep, order, labels)
    awake, until = times.awake(now), times.turns(now)
    ordered = order if order and order.at <= now < order.until else None
    if awake:
        return SleepDecision(True, until, order=ordered)
    since = ordered.at if ordered else times.asleep_since(now)
    if now - since >= LONGEST:  # Azure would lose its state
        return SleepDecision(True, until)
    until = min(until, since + LONGEST) if until else since + LONGEST
    return SleepDecision(False, until, since, ordered)


def keeps_change(sleep: Sleep, until: datetime, now: datetime) -> bool:
    """Return whether a change that comes now waits for the end of a sleep."""
    return sleep.changes == "wait" and until - now <= CHANGES_WAIT


def next_turn(sleep: Sleep, labels: Mapping[str, str], now: datetime, *, awake: bool) -> datetime | None:
    """Return when the schedules next end it that a cluster is ``awake`` or not, None where they never do."""
    times = _Times(sleep, None, labels)
    begins = now if times.awake(now) is awake else times.turns(now)
    return times.turns(begins) if begins else None


def time_text(sleep: Sleep, at: datetime, now: datetime) -> str:
    """Return a time as people of the first schedule read it, such as "Mon 07:00 (Europe/Helsinki)"."""
    name = sleep.schedules[0].time_zone if sleep.schedules else "UTC"
    local = at.astimezone(ZoneInfo(name))
    day = f"{local:%a}" if abs(at - now) < timedelta(days=6) else f"{local:%a %Y-%m-%d}"
    return f"{day} {local:%H:%M} ({name})"


class _Times:
    """The moments of a cluster: those of its schedules, its holidays, and its order."""

    def __init__(self, sleep: Sleep, order: SleepOrder | None, labels: Mapping[str, str]) -> None:
        self._sleep, self._order = sleep, order
        kept = bool(sleep.keep_awake) and sleep.keep_awake.items() <= labels.items()
        self._schedules = () if kept else sleep.schedules

    def awake(self, at: datetime) -> bool:
        """Return whether it is to be awake at a time, without regard to how long it has slept."""
        if self._order and self._order.at <= at < self._order.until:
            return self._order.awake
        if not self._schedules:
            return True
        if self._is_holiday(at):
            return False
        stopped = max(last_moment(schedule.stop, schedule.time_zone, at) for schedule in self._schedules)
        return self._last_start(at) >= stopped

    def turns(self, at: datetime) -> datetime | None:
        """Return when that changes after a time, None for never."""
        awake, following = self.awake(at), self._next(at)
        for _ in range(_STEPS):
            if following is None or self.awake(following) is not awake:
                break
            following = self._next(following)
        return following

    def asleep_since(self, at: datetime) -> datetime:
        """Return when the sleep began that the schedules have it in at a time."""
        start = self._last_start(at)
        while self._is_holiday(start):
            start = self._last_start(self._midnight(self._day(start)) - timedelta(seconds=1))
        return self.turns(start) or start

    def _next(self, at: datetime) -> datetime | None:
        """Return the next moment after a time at which it may turn, None for none."""
        order = self._order
        if order and order.at <= at < order.until:
            return order.until
        moments = [order.at] if order and at < order.at else []
        if self._schedules:
            moments += [*self._next_scheduled(at)]
        return min(moments, default=None)

    def _next_scheduled(self, at: datetime) -> Iterator[datetime]:
        day, early = self._day(at), self._sleep.early
        if self._is_holiday(at):
            while day.isoformat() in self._sleep.holidays:
                day += _DAY
            yield self._midnight(day)
        elif self.awake(at):
            holidays = map(date.fromisoformat, self._sleep.holidays)
            yield from (self._midnight(holiday) for holiday in holidays if holiday > day)
            for schedule in self._schedules:
                yield next_moment(schedule.stop, schedule.time_zone, at)
        else:
            for schedule in self._schedules:
                yield next_moment(schedule.start, schedule.time_zone, at + early) - early

    def _last_start(self, at: datetime) -> datetime:
        early = self._sleep.early
        return max(
            last_moment(schedule.start, schedule.time_zone, at + early) - early
            for schedule in self._schedules
        )

    def _is_holiday(self, at: datetime) -> bool:
        return self._day(at).isoformat() in self._sleep.holidays

    def _day(self, at: datetime) -> date:
        return at.astimezone(self._zone).date()

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self._zone).astimezone(UTC)

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self._schedules[0].time_zone)
