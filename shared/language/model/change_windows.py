"""When changes may start: windows that recur, and freezes; and how long a cluster may last.

AKS has maintenance windows of its own.
"""

import difflib
import re
import zoneinfo
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from dateutil.rrule import rrulestr
from pydantic import AfterValidator, Field, StrictStr, model_validator

from shared.language.model.arm_types import UtcMoment
from shared.language.model.base import Manifest, ObjectName, Selector, rule, shown, stated_rule, twice

_DAY = r"(MO|TU|WE|TH|FR|SA|SU)"
_NUMBER = r"-?([1-9]|[12][0-9]|3[01])"
_PARTS = {
    "FREQ": r"DAILY|WEEKLY|MONTHLY",
    "BYDAY": rf"([+-]?[1-5])?{_DAY}(,([+-]?[1-5])?{_DAY})*",
    "BYMONTHDAY": rf"{_NUMBER}(,{_NUMBER})*",
    "BYMONTH": r"([1-9]|1[0-2])(,([1-9]|1[0-2]))*",
}
_RULE = (
    "a rule of RFC 5545 with FREQ=DAILY, WEEKLY or MONTHLY first, and then BYDAY, BYMONTHDAY and BYMONTH, "
    "such as FREQ=WEEKLY;BYDAY=MO,TU"
)
_FIVE_YEARS = datetime(2024, 1, 1), datetime(2028, 12, 31)  # noqa: DTZ001 - days, with a leap day
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@lru_cache(maxsize=256)
def _recurrence(value: str) -> str:
    parts = dict(part.partition("=")[::2] for part in value.split(";"))
    known = all(re.fullmatch(_PARTS.get(name, "(?!)"), text) for name, text in parts.items())
    if not known or not value.startswith("FREQ=") or len(parts) != value.count(";") + 1:
        raise ValueError(f"must be {_RULE}, got {shown(value)}")
    days, often = parts.get("BYDAY", ""), parts["FREQ"]
    if often != "MONTHLY" and re.search("[0-9]", days):
        raise ValueError(f"only FREQ=MONTHLY has a number before a day, got {shown(value)}")
    if often == "WEEKLY" and not days:
        raise ValueError("FREQ=WEEKLY needs BYDAY: on which days of the week it opens")
    if often == "MONTHLY" and not (days or "BYMONTHDAY" in parts):
        raise ValueError("FREQ=MONTHLY needs BYDAY or BYMONTHDAY: on which days of the month it opens")
    first, last = _FIVE_YEARS
    if not rrulestr(value, dtstart=first).between(first, last, inc=True):
        raise ValueError(f"no day of five years matches {shown(value)}")
    return value


@lru_cache(maxsize=256)
def _time_zone(value: str) -> str:
    known = zoneinfo.available_timezones()
    if value not in known:
        near = difflib.get_close_matches(value, known, 1)
        hint = f"did you mean {near[0]}?" if near else "such as Europe/Berlin"
        raise ValueError(f"must be a time zone of the IANA database, got {shown(value)}; {hint}")
    return value


def span_of(written: str) -> timedelta:
    """Return a number with a unit as a time."""
    return timedelta(seconds=int(written[:-1]) * UNITS[written[-1]])


def span(least: str, most: str, text: str, *, units: str = "smhd") -> tuple[Any, Any]:
    """Return the rule of a number with one unit, with bounds that the text states."""

    @lru_cache(maxsize=256)
    def check(value: str) -> str:
        written = re.fullmatch(rf"[1-9][0-9]{{0,5}}[{units}]", value)
        if not written or not span_of(least) <= span_of(value) <= span_of(most):
            raise ValueError(f"must be {text}, got {shown(value)}")
        return value

    return AfterValidator(check), stated_rule(text)


Recurrence = Annotated[StrictStr, AfterValidator(_recurrence), stated_rule(_RULE)]
TimeZone = Annotated[
    StrictStr,
    AfterValidator(_time_zone),
    stated_rule("a time zone of the IANA database, such as Europe/Berlin"),
]
Duration = Annotated[
    StrictStr, *span("1m", "7d", 'a number with one unit, such as "4h", and 7d at most', units="mhd")
]
TimeOfDay = Annotated[
    StrictStr, rule(r"([01][0-9]|2[0-3]):[0-5][0-9]", 'a time of day in quotes, such as "22:00"')
]
Who = Annotated[StrictStr, Field(min_length=1, max_length=200)]


Start = Literal["changes", "creations", "deletes", "corrections"]
USUAL: tuple[Start, ...] = ("changes", "deletes", "corrections")
"""What windows and freezes bind where they do not say it: whatever changes a cluster that runs."""


def _once(value: tuple[Start, ...]) -> tuple[Start, ...]:
    again = twice(value)
    if again is not None:
        raise ValueError(f"{again} is named more than once")
    return value


Starts = Annotated[tuple[Start, ...], Field(min_length=1), AfterValidator(_once)]


class ChangeWindow(Manifest):
    """A time that recurs, in which Roadstead may start on some clusters what it is for."""

    name: ObjectName
    """The window's name."""
    select: Selector = Selector.model_construct()
    """The clusters that it is for; by default all."""
    time_zone: TimeZone
    """The time zone of ``start``; the window follows its daylight saving time."""
    recurrence: Recurrence
    """On which days it opens, as a recurrence rule."""
    start: TimeOfDay
    """When it opens on these days, in the time zone."""
    duration: Duration
    """How long it is open."""
    applies_to: Starts = USUAL
    """What waits for it: ``changes`` of a commit, ``creations`` and adoptions, ``deletes`` and rebuilds, and
    ``corrections`` of drift. A retry is what its job does."""


class FreezeSpec(Manifest):
    """A time in which Roadstead starts on some clusters nothing that it is for, whatever window is open."""

    name: ObjectName
    """The freeze's name."""
    select: Selector = Selector.model_construct()
    """The clusters that it is for; by default all."""
    starts: UtcMoment
    """When the freeze begins."""
    ends: UtcMoment
    """When the freeze ends."""
    owner: Who
    """Who is responsible for the freeze."""
    reason: Who
    """Why nothing changes."""
    applies_to: Starts = USUAL
    """What it holds: ``changes`` of a commit, ``creations`` and adoptions, ``deletes`` and rebuilds, and
    ``corrections`` of drift. A retry is what its job does."""

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Self:
        if datetime.fromisoformat(self.ends) <= datetime.fromisoformat(self.starts):
            raise ValueError("ends must be after starts")
        return self


Lifetime = Annotated[
    StrictStr,
    *span("10m", "3650d", 'a number with one unit, such as "8h" or "14d", from 10m to 3650d', units="mhd"),
]
