"""When a timer counts as late."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.health import GRACE, timer_state
from shared.app.recovery.housekeeping import record_changed_settings
from shared.app.runs import record_run
from shared.cluster.failures.errors import Unavailable
from shared.ports import FleetConfig, State
from shared.ports.state import TimerRun
from tests.support.replaced_ports import around

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERY_FIVE = "0 */5 * * * *"


def problem(run: TimerRun, now: datetime, schedule: str = EVERY_FIVE) -> str:
    return timer_state("plan", schedule, run, now).problem


@pytest.mark.parametrize(
    ("schedule", "ran", "due"),
    [
        (EVERY_FIVE, NOON, NOON + timedelta(minutes=5)),
        (EVERY_FIVE, NOON + timedelta(seconds=1), NOON + timedelta(minutes=5)),
        ("30 * * * * *", NOON, NOON + timedelta(seconds=30)),
        ("0 30 3 * * *", NOON, datetime(2026, 1, 2, 3, 30, tzinfo=UTC)),
        ("0 10 */4 * * *", NOON, NOON + timedelta(minutes=10)),
    ],
)
def test_a_timer_is_late_when_the_run_after_its_last_one_has_not_ended_in_time(
    schedule: str, ran: datetime, due: datetime
) -> None:
    state = timer_state("plan", schedule, TimerRun(ran), due + GRACE)
    assert (state.last_run, state.due, state.problem) == (ran, due, "")
    late = problem(TimerRun(ran), due + GRACE + timedelta(seconds=1), schedule)
    assert late == f"its run of {due:%Y-%m-%d %H:%M:%S} UTC did not come to its end"


def test_a_timer_that_has_never_run_is_late_from_when_it_was_expected() -> None:
    expected = TimerRun(NOON, ran=False)
    state = timer_state("plan", EVERY_FIVE, expected, NOON + timedelta(minutes=9))
    assert (state.last_run, state.problem) == (None, "")
    assert problem(expected, NOON + timedelta(minutes=11))


def test_a_timer_whose_schedule_has_a_date_and_a_weekday_is_due_where_both_are() -> None:
    """The host needs both: CrontabSchedule.GetNextOccurrence of github.com/atifaziz/NCrontab."""
    first_monday, ran = "0 0 3 1-7 * Mon", datetime(2026, 1, 5, 3, tzinfo=UTC)
    state = timer_state("sweep", first_monday, TimerRun(ran), datetime(2026, 1, 31, tzinfo=UTC))
    assert (state.due, state.problem) == (datetime(2026, 2, 2, 3, tzinfo=UTC), "")


def test_the_run_of_a_timer_is_one_write_and_no_read() -> None:
    cloud, calls = MemoryCloud(), list[str]()

    class Watched:
        def __getattr__(self, name: str) -> object:
            calls.append(name)
            return getattr(cloud.state, name)

    cloud.with_ports(lambda ports: replace(ports, state=cast(State, Watched())))
    record_run("sweep", cloud.ports)
    assert calls == ["save_timer_run"]
    assert cloud.state.timer_runs() == {"sweep": TimerRun(cloud.clock())}


def test_a_timer_whose_run_cannot_be_recorded_does_not_fail() -> None:
    cloud = MemoryCloud()

    def away(*_: object) -> None:
        raise Unavailable("the tables are away")

    around(cloud, "state", save_timer_run=away)
    record_run("sweep", cloud.ports)


def test_every_timer_is_expected_from_the_first_settings_on() -> None:
    timers = {"sweep": EVERY_FIVE, "plan_missed_head": EVERY_FIVE}
    config = FleetConfig("example", "example/fleet", timers=timers, settings={"A": "1"})
    cloud = MemoryCloud(config=config)
    cloud.state.save_timer_run("sweep", NOON)
    assert record_changed_settings(cloud.ports)
    now = cloud.clock()
    missing = TimerRun(now, ran=False)
    expected = {"sweep": TimerRun(NOON), "plan_missed_head": missing}
    expected |= dict.fromkeys(("sweep-end", "plan-end"), missing)
    assert cloud.state.timer_runs() == expected
    cloud.clock.advance(100)
    assert not record_changed_settings(cloud.ports)
    assert cloud.state.timer_runs() == expected
