"""When change windows open, by the clock of their time zone, and what freezes do to them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from shared.rollouts.calendar import SPREAD, Freeze, Window, closed, opened

HOUR = timedelta(hours=1)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def window(
    recurrence: str = "FREQ=DAILY",
    start: str = "22:00",
    *,
    zone: str = "Europe/Berlin",
    duration: timedelta = 4 * HOUR,
) -> Window:
    """Return a window of Berlin's nights, unless it is said otherwise."""
    return Window("nights", zone, recurrence, start, duration)


def utc(text: str) -> datetime:
    """Return a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def freeze(starts: str, ends: str, name: str = "holidays") -> Freeze:
    """Return a freeze from one time to another."""
    return Freeze(name, utc(starts), utc(ends), "platform", "nobody is here")


def test_a_window_opens_by_the_clock_of_its_time_zone_in_winter_and_in_summer() -> None:
    assert opened(window(), utc("2026-01-15 21:00")) == utc("2026-01-15 21:00")
    assert opened(window(), utc("2026-01-15 20:59")) is None
    assert opened(window(), utc("2026-07-15 20:00")) == utc("2026-07-15 20:00")
    assert opened(window(), utc("2026-07-15 19:59")) is None


def test_an_hour_that_the_clock_skips_counts_as_the_one_after_it() -> None:
    night = window(start="02:30", duration=HOUR)  # 29 March 2026: 02:00 is followed by 03:00
    assert opened(night, utc("2026-03-29 01:29")) is None
    assert opened(night, utc("2026-03-29 01:30")) == utc("2026-03-29 01:30")
    assert datetime(2026, 3, 29, 3, 30, tzinfo=ZoneInfo("Europe/Berlin")) == utc("2026-03-29 01:30")


def test_of_an_hour_that_comes_twice_the_first_one_counts_and_the_window_is_open_once() -> None:
    night = window(start="02:30", duration=HOUR)  # 25 October 2026: 03:00 is followed by 02:00
    assert opened(night, utc("2026-10-25 00:30")) == utc("2026-10-25 00:30")
    assert opened(night, utc("2026-10-25 01:29")) == utc("2026-10-25 00:30")
    assert opened(night, utc("2026-10-25 01:30")) is None


def test_a_window_lasts_as_long_as_written_in_the_night_in_which_the_clock_changes() -> None:
    night = window(start="23:00", duration=6 * HOUR)
    assert opened(night, utc("2026-03-29 03:59")) == utc("2026-03-28 22:00")
    assert opened(night, utc("2026-03-29 04:00")) is None


def test_a_window_of_sunday_is_open_in_the_first_hours_of_monday() -> None:
    sunday = window("FREQ=WEEKLY;BYDAY=SU")
    assert opened(sunday, utc("2026-06-14 23:30")) == utc("2026-06-14 20:00")
    assert opened(sunday, utc("2026-06-16 00:30")) is None


def test_the_second_tuesday_and_the_last_day_of_a_month() -> None:
    second = window("FREQ=MONTHLY;BYDAY=2TU", zone="UTC")
    assert closed([second], [], "u", utc("2026-06-01 00:00")) is not None
    assert opened(second, utc("2026-06-09 22:00")) == utc("2026-06-09 22:00")
    last = window("FREQ=MONTHLY;BYMONTHDAY=-1", zone="UTC")
    assert opened(last, utc("2026-02-28 23:00")) == utc("2026-02-28 22:00")


def test_a_window_on_a_leap_day_is_found_years_ahead() -> None:
    leap = window("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=29", zone="UTC", duration=timedelta(minutes=1))
    found = closed([leap], [], "u", utc("2025-03-01 00:00"))
    assert found is not None
    assert found.until is not None
    assert found.until.date() == date(2028, 2, 29)


def test_a_freeze_counts_more_than_an_open_window_and_the_next_opening_after_it_is_named() -> None:
    found = closed([window()], [freeze("2026-12-20 00:00", "2027-01-03 06:00")], "u", utc("2026-12-24 22:00"))
    assert found is not None
    assert found.owner == "platform"
    assert found.until is not None
    assert timedelta(0) <= found.until - utc("2027-01-03 21:00") <= SPREAD
    assert not found.staggered


def test_freezes_that_follow_each_other_are_one_wait() -> None:
    one, two = freeze("2026-12-20 00:00", "2026-12-27 00:00"), freeze("2026-12-26 00:00", "2027-01-02 00:00")
    found = closed([], [one, two], "u", utc("2026-12-21 00:00"))
    assert found is not None
    assert (found.until, found.since) == (utc("2027-01-02 00:00"), one.starts)
    assert closed([], [one, two], "u", utc("2027-01-02 00:00")) is None


def test_starts_at_an_opening_are_spread_and_each_cluster_has_its_time() -> None:
    opening, names = utc("2026-01-15 21:00"), [f"uid-{number}" for number in range(40)]
    waits = [closed([window()], [], name, opening) for name in names]
    times = [wait.until for wait in waits if wait is not None and wait.until is not None]
    assert all(wait.staggered for wait in waits if wait is not None)
    assert all(opening < at <= opening + SPREAD for at in times)
    assert len(set(times)) > 30
    assert waits == [closed([window()], [], name, opening) for name in names]
    assert not any(closed([window()], [], name, opening + SPREAD) for name in names)


def test_one_of_several_windows_is_enough() -> None:
    morning = window(start="06:00", zone="UTC")
    assert closed([window(), morning], [], "u", utc("2026-01-15 07:00")) is None


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC, second=0, microsecond=0)
)


@st.composite
def weekly(draw: st.DrawFn) -> tuple[Window, set[int]]:
    days = draw(st.sets(st.integers(0, 6), min_size=1))
    start = draw(st.times()).strftime("%H:%M")
    rule = f"FREQ=WEEKLY;BYDAY={','.join(DAYS[day] for day in sorted(days))}"
    hours = draw(st.integers(1, 30))
    return window(rule, start, zone=draw(st.sampled_from(ZONES)), duration=hours * HOUR), days


def is_open(of: Window, days: set[int], at: datetime) -> bool:
    """Return whether a window of some weekdays is open, found by going through the days before."""
    zone = ZoneInfo(of.time_zone)
    today = at.astimezone(zone).date()
    for back in range(4):
        day = today - timedelta(days=back)
        opening = datetime.combine(day, time.fromisoformat(of.start), zone).astimezone(UTC)
        if day.weekday() in days and opening <= at < opening + of.duration:
            return True
    return False


@given(weekly(), MOMENTS)
def test_a_window_is_open_exactly_when_a_walk_through_the_days_says_so(
    drawn: tuple[Window, set[int]], now: datetime
) -> None:
    of, days = drawn
    assert (opened(of, now) is not None) == is_open(of, days, now)


@given(weekly(), MOMENTS, st.integers(0, 200), st.integers(1, 400))
def test_the_named_time_is_the_first_at_which_a_cluster_may_start(
    drawn: tuple[Window, set[int]], now: datetime, before: int, hours: int
) -> None:
    of, days = drawn
    stop = Freeze("f", now - before * HOUR, now + (hours - before) * HOUR, "o", "r")
    found = closed([of], [stop], "uid", now)
    if found is None:
        assert is_open(of, days, now)
        assert not stop.starts <= now < stop.ends
        return
    assert found.until is not None
    assert found.until > now
    assert closed([of], [stop], "uid", found.until) is None
    between = [now + (found.until - now) * part / 7 for part in range(7)]
    assert all(closed([of], [stop], "uid", at) is not None for at in between)
