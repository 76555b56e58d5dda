"""The schedules of the timers: NCRONTAB with seconds, in UTC, as the host of Azure Functions reads it.

learn.microsoft.com/azure/azure-functions/functions-bindings-timer, "NCRONTAB expressions". The host reads
them with github.com/atifaziz/NCrontab: a name may be shortened, the ends of a range may change places, and a
day is one of the schedule where both its date and its weekday are.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from cronsim import CronSim

from shared.frozen import dataclass

EXAMPLE = "0 */5 * * * *"
CLOCK_SKEW = timedelta(seconds=2.5)
"""By how much the clock of an instance may be off, unless a setting says otherwise."""


@dataclass(frozen=True)
class _CronField:
    what: str
    first: int
    last: int
    names: tuple[str, ...] = ()

    def values(self, text: str) -> list[int]:
        """Return the values of which the schedule consists; raise ValueError for another text."""
        try:
            return sorted({value for part in text.split(",") for value in self._part(part)})
        except ValueError:
            names = f", or {self.names[0][:3]} to {self.names[-1][:3]}" if self.names else ""
            expected = f"{self.first} to {self.last}{names}"
            raise ValueError(f'"{text}" is no {self.what}: use {expected} with * , - and /') from None

    def _part(self, text: str) -> Iterator[int]:
        span, slash, step = text.partition("/")
        low, dash, high = span.partition("-")
        if span == "*":
            start, end = self.first, self.last
        else:
            start = self._value(low)
            end = self._value(high) if dash else self.last if slash else start
        start, end = sorted((start, end))
        return iter(range(start, end + 1, max(1, _number(step)) if slash else 1))

    def _value(self, text: str) -> int:
        named = (number for number, name in enumerate(self.names) if text and name.startswith(text.lower()))
        number = next(named, None)
        value = _number(text) if number is None else self.first + number
        if not self.first <= value <= self.last:
            raise ValueError
        return value


_MONTHS = "january february march april may june july august september october november december"
_DAYS = "sunday monday tuesday wednesday thursday friday saturday"
_FIELDS = (
    _CronField("second", 0, 59),
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day", 1, 31),
    _CronField("month", 1, 12, tuple(_MONTHS.split())),
    _CronField("day of the week", 0, 6, tuple(_DAYS.split())),
)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def next_time(schedule: str, after: datetime) -> datetime:
    """Return the first time of a schedule after a time; raise ValueError, which says what is wrong."""
    texts = [text for text in schedule.split(" ") if text]
    if len(texts) != len(_FIELDS):
        fields = ", ".join(field.what for field in _FIELDS)
        raise ValueError(f'must be NCRONTAB with six fields ({fields}), such as "{EXAMPLE}"')
    try:
        values = [field.values(text) for field, text in zip(_FIELDS, texts, strict=True)]
    except ValueError as error:
        raise ValueError(f'must be NCRONTAB such as "{EXAMPLE}", and in "{schedule}" {error}') from None
    times = CronSim(" ".join(",".join(map(str, numbers)) for numbers in values), after)
    times.day_and = True
    try:
        return next(times)
    except StopIteration:
        raise ValueError(f'must be NCRONTAB such as "{EXAMPLE}", and "{schedule}" never comes') from None
