"""When a cluster is to be awake: daylight saving, holidays, several schedules, and orders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.sleep import SleepOrder, next_turn, should_be_awake, time_text
from shared.language.model.cluster.schedules import LONGEST, Sleep, last_moment, next_moment

pytestmark = pytest.mark.lives

NIGHTS = {"stop": "0 19 * * 1-5", "start": "0 7 * * 1-5", "timeZone": "Europe/Helsinki"}
MINUTE = timedelta(minutes=1)


def sleep(*schedules: dict[str, str], **fields: Any) -> Sleep:
    return Sleep.model_validate({"schedules": list(schedules or (NIGHTS,)), **fields})


def at(text: str, zone: str = "Europe/Helsinki") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def awake(manifest: Sleep, text: str, order: SleepOrder | None = None) -> bool:
    return should_be_awake(manifest, order, {}, at(text)).awake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-12T06:59", False),
        ("2026-01-12T07:00", True),
        ("2026-01-12T18:59", True),
        ("2026-01-12T19:00", False),
        ("2026-01-17T12:00", False),  # a Saturday
        ("2026-03-30T06:59", False),  # the clock was put forward the night before
        ("2026-03-30T07:00", True),
        ("2026-10-26T07:00", True),  # and back
    ],
)
def test_a_schedule_follows_the_clock_of_its_time_zone(text: str, expected: bool) -> None:
    assert awake(sleep(), text) is expected


def test_an_hour_that_is_skipped_counts_as_the_one_after_it_and_one_that_comes_twice_counts_once() -> None:
    skipped, twice = at("2026-03-29T00:00"), at("2026-10-25T00:00")
    assert next_moment("30 3 * * *", "Europe/Helsinki", skipped) == at("2026-03-29T04:30")
    first = next_moment("30 3 * * *", "Europe/Helsinki", twice)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert next_moment("30 3 * * *", "Europe/Helsinki", first) == at("2026-10-26T03:30")


def test_a_holiday_is_a_day_asleep_and_the_schedule_goes_on_after_it() -> None:
    manifest = sleep(holidays=["2026-01-14"])
    assert not awake(manifest, "2026-01-14T12:00")
    decision = should_be_awake(manifest, None, {}, at("2026-01-13T20:00"))
    assert (decision.since, decision.until) == (at("2026-01-13T19:00"), at("2026-01-15T07:00"))


def test_what_was_last_of_several_schedules_counts() -> None:
    saturday = {"stop": "0 14 * * 6", "start": "0 10 * * 6", "timeZone": "Europe/Helsinki"}
    manifest = sleep(NIGHTS, saturday)
    assert [awake(manifest, f"2026-01-17T{hour}:30") for hour in ("09", "12", "15")] == [False, True, False]


def test_labels_keep_a_cluster_awake() -> None:
    manifest = sleep(keepAwake={"oncall": "yes"})
    night = at("2026-01-12T23:00")
    assert not should_be_awake(manifest, None, {}, night).awake
    decision = should_be_awake(manifest, None, {"oncall": "yes", "a": "b"}, night)
    assert (decision.awake, decision.until) == (True, None)


def test_an_order_counts_until_its_end_and_no_longer() -> None:
    order = SleepOrder(True, at("2026-01-12T18:00"), at("2026-01-12T22:00"), "ann")
    assert [awake(sleep(), f"2026-01-12T{hour}:00", order) for hour in ("17", "21", "22")] == [
        True,
        True,
        False,
    ]
    found = should_be_awake(sleep(), order, {}, at("2026-01-12T20:00"))
    assert (found.until, found.order) == (order.until, order)


def test_no_cluster_sleeps_for_longer_than_azure_keeps_its_state() -> None:
    order = SleepOrder(False, at("2026-01-01T00:00"), at("2027-06-01T00:00"), "ann")
    found = should_be_awake(sleep(), order, {}, at("2026-06-01T00:00"))
    assert found.until == order.at + LONGEST
    assert should_be_awake(sleep(), order, {}, order.at + LONGEST).awake


def test_an_order_without_an_end_ends_with_the_schedule() -> None:
    noon, night = at("2026-01-12T12:00"), at("2026-01-12T23:00")
    starts = {next_turn(sleep(), {}, now, awake=False) for now in (noon, night)}
    assert starts == {at("2026-01-13T07:00")}
    assert next_turn(sleep(), {}, noon, awake=True) == at("2026-01-12T19:00")
    assert next_turn(sleep(), {}, night, awake=True) == at("2026-01-13T19:00")
    assert next_turn(Sleep(), {}, noon, awake=False) is None


def test_a_time_is_shown_as_people_of_the_schedule_read_it() -> None:
    now = at("2026-01-12T23:00")
    assert time_text(sleep(), at("2026-01-13T07:00"), now) == "Tue 07:00 (Europe/Helsinki)"
    assert time_text(sleep(), at("2026-02-02T07:00"), now) == "Mon 2026-02-02 07:00 (Europe/Helsinki)"


ZONES = st.sampled_from(["Europe/Helsinki", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata"])
TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2028, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
CRONS = st.builds(
    "{} {} * * {}".format,
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(["*", "1-5", "0", "6", "MON,WED"]),
)


@given(CRONS, ZONES, TIMES)
def test_the_next_moment_after_the_last_one_is_the_next_one(cron: str, zone: str, now: datetime) -> None:
    last, following = last_moment(cron, zone, now), next_moment(cron, zone, now)
    assert last <= now < following
    assert next_moment(cron, zone, last) == following
    assert last_moment(cron, zone, following) == following


@given(CRONS, CRONS, ZONES, TIMES, st.lists(st.integers(0, 40), max_size=4))
def test_what_is_decided_lasts_until_its_end_and_changes_there(
    stop: str, start: str, zone: str, now: datetime, days: list[int]
) -> None:
    holidays = sorted({(now + timedelta(days=day)).date().isoformat() for day in days})
    schedule = {"stop": stop, "start": start, "timeZone": zone}
    try:
        manifest = sleep(schedule, holidays=holidays)
    except ValueError:
        return  # they are closer together than AKS allows
    found = should_be_awake(manifest, None, {}, now)
    assert found.until is not None
    assert found.until > now
    if found.until - MINUTE > now:
        assert should_be_awake(manifest, None, {}, found.until - MINUTE).awake is found.awake
    assert should_be_awake(manifest, None, {}, found.until).awake is not found.awake
    if not found.awake:
        assert found.since is not None
        assert found.since <= now
        assert not should_be_awake(manifest, None, {}, found.since).awake


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stop": "0 19 * *"}, "must be five fields of cron"),
        ({"stop": "@daily"}, "must be five fields of cron"),
        ({"stop": "0 25 * * *"}, "must be five fields of cron"),
        ({"stop": "0 0 31 2 *"}, "must be five fields of cron"),
        ({"start": "*/20 7-9 * * *"}, "twice an hour at most"),
        ({"start": "0 19 * * *"}, "at one moment"),
        ({"timeZone": "Europe/Helsink"}, "did you mean Europe/Helsinki?"),
        ({"start": "10 19 * * 1-5"}, "less than 30 minutes later"),
        ({"stop": "10 7 * * 1-5"}, "less than 30 minutes later"),
        ({"start": "0 7 1 1 *", "stop": "0 7 3 1 *"}, "more than 330 days"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sleep(NIGHTS | fields)


def test_stops_that_starts_of_other_schedules_undo_are_not_all_looked_at() -> None:
    first = [f"{minute},{minute + 30} 0-10 * * *" for minute in range(5)]
    second = [f"{minute},{minute + 30} 12-22 * * *" for minute in range(5)]
    pairs = [*zip(first, second, strict=True), *zip(second, first, strict=True)]
    manifest = sleep(*({"stop": stop, "start": start, "timeZone": "UTC"} for stop, start in pairs))
    noon = at("2026-01-12T12:00", "UTC")
    found = should_be_awake(manifest, None, {}, noon)
    assert found.awake
    assert found.until is not None
    assert found.until - noon < timedelta(hours=6)  # where it is decided again


def test_holidays_in_a_row_are_one_sleep() -> None:
    first = datetime(2026, 1, 13, tzinfo=UTC).date()
    days = [(first + timedelta(days=day)).isoformat() for day in range(200)]
    found = should_be_awake(sleep(holidays=days), None, {}, at("2026-03-01T12:00"))
    assert (found.awake, found.since) == (False, at("2026-01-12T19:00"))
    assert found.until == at("2026-08-03T07:00")  # the holidays end on a Friday night


def test_an_early_start_is_after_the_stop() -> None:
    with pytest.raises(ValueError, match="4h at most"):
        sleep(startEarly="5h")
    with pytest.raises(ValueError, match="less than 30 minutes later"):
        sleep(NIGHTS | {"start": "0 22 * * 1-5"}, startEarly="3h")
