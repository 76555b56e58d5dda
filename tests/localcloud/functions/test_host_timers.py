"""The development host's timers."""

from __future__ import annotations

import queue
from datetime import UTC, datetime

import azure.functions as func
import httpx
import pytest

from localcloud.functions.host import Host
from localcloud.functions.host_config import ConfigError, HostConfig
from localcloud.functions.triggers.timer_triggers import next_time
from localcloud.functions.worker.in_process import functions_of

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 */5 * * * *", datetime(2026, 1, 1, 12, 5, tzinfo=UTC)),
        ("*/10 * * * * *", datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)),
        ("0 30 9 * * 1-5", datetime(2026, 1, 2, 9, 30, tzinfo=UTC)),
    ],
)
def test_schedules_have_six_fields_seconds_first(schedule: str, expected: datetime) -> None:
    assert next_time(schedule, NOON) == expected


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "0 0 0 31 2 *", "00:00:10", "x y z a b c"])
def test_an_invalid_schedule_is_refused_at_the_start(schedule: str) -> None:
    with pytest.raises(ConfigError, match="schedule"):
        next_time(schedule, NOON)


def test_a_timer_runs_at_start_on_schedule_and_on_request() -> None:
    app = func.FunctionApp()
    ticks: queue.Queue[func.TimerRequest] = queue.Queue()

    @app.timer_trigger(arg_name="timer", schedule="%EVERY%", run_on_startup=True)
    def resend(timer: func.TimerRequest) -> None:
        ticks.put(timer)

    host = Host(functions_of(app, {"EVERY": "* * * * * *"}), HostConfig())
    host.start()
    try:
        at_start, on_schedule = ticks.get(timeout=60), ticks.get(timeout=60)
        assert httpx.post(f"{host.url}/admin/functions/resend").status_code == 202
        assert ticks.get(timeout=60).past_due is False
    finally:
        host.close()
    assert at_start.past_due is False
    assert on_schedule.past_due is False
