"""A cluster that sleeps is listed for the hours in which it is awake, and for what is billed all the time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.cluster.sleep import should_be_awake
from shared.language.model.cluster.schedules import Sleep
from shared.prices.monthly import awake_share, hours_text, idle, monthly
from shared.prices.price_file import Kind
from tests.support.desired_clusters import desired, with_field
from tests.support.recorded_prices import prices_of
from tests.support.sample import examples

DAY = date(2026, 9, 23)
NIGHTS = {"stop": "0 19 * * 1-5", "start": "0 7 * * 1-5", "timeZone": "Europe/Helsinki"}


def sleep(*schedules: dict[str, Any], **more: Any) -> Sleep:
    return Sleep.model_validate({"schedules": schedules or (NIGHTS,), **more})


def test_twelve_hours_of_five_days_are_sixty_of_a_week() -> None:
    assert hours_text(awake_share(sleep(), {}, DAY)) == "60 of 168"


def test_a_start_before_its_time_is_paid() -> None:
    assert hours_text(awake_share(sleep(startEarly="1h"), {}, DAY)) == "65 of 168"


@pytest.mark.parametrize(
    ("found", "labels"),
    [(None, {}), (Sleep(), {}), (sleep(keepAwake={"team": "shop"}), {"team": "shop", "owner": "one"})],
)
def test_what_no_schedule_stops_is_always_awake(found: Sleep | None, labels: dict[str, str]) -> None:
    assert awake_share(found, labels, DAY) == 1


def test_a_schedule_that_turns_very_often_is_listed_as_always_awake() -> None:
    busy = {"stop": "0 * * * *", "start": "30 * * * *", "timeZone": "UTC"}
    assert awake_share(sleep(busy), {}, DAY) == 1


@settings(max_examples=examples(32))
@given(
    st.lists(
        st.tuples(st.integers(0, 23), st.integers(0, 22), st.sampled_from(["*", "1-5", "0,6"])),
        min_size=1,
        max_size=3,
    ),
    st.dates(date(2026, 1, 1), date(2027, 1, 1)),
)
def test_the_share_is_that_of_the_hours_in_which_the_engine_has_it_awake(
    drawn: list[tuple[int, int, str]], day: date
) -> None:
    found = sleep(
        *(
            {
                "stop": f"0 {stop} * * {days}",
                "start": f"0 {start if start < stop else start + 1} * * {days}",
                "timeZone": "Europe/Helsinki",
            }
            for stop, start, days in drawn
        )
    )
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    hours = [begin + timedelta(hours=hour) for hour in range(28 * 24)]
    awake = sum(should_be_awake(found, None, {}, hour).awake for hour in hours)
    assert awake_share(found, {}, day) == Decimal(awake) / len(hours)


def test_tier_and_nodes_are_listed_for_the_hours_awake_and_disks_for_all() -> None:
    always = desired("one", location="eastus").spec
    nights = with_field(desired("one", location="eastus"), "sleep", {"schedules": [NIGHTS]}).spec
    prices = prices_of([always])
    before, after = monthly(always, prices), monthly(nights, prices)
    share = awake_share(nights.sleep, {}, prices.day)

    for old, new in zip(before.lines, after.lines, strict=True):
        stays = old.kind in (Kind.DISK, Kind.ADDRESS)
        assert new.month == (old.month if stays else old.month * share)
    assert "listed as awake 60 of 168 hours of a week" in " ".join(after.left_out)


def test_idle_is_the_addresses_of_the_cluster_and_at_most_the_disks_of_its_nodes() -> None:
    spec = desired("one", location="eastus").spec
    found = idle(spec, prices_of([spec]))

    assert {line.kind for line in found.lines} == {Kind.DISK, Kind.ADDRESS}
    assert found.low == Decimal("3.65")
    assert found.high > found.low
