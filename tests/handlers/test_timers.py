"""The timers as the Functions host calls them."""

from __future__ import annotations

from typing import Any

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unavailable
from tests.support import fleet_files
from tests.support.function_calls import functions
from tests.support.pipeline_runs import ready, without_timers
from tests.support.replaced_ports import around


class Timer(func.TimerRequest):
    """A call of the host at the time of a timer."""

    @property
    def past_due(self) -> bool:
        return False


def tick(cloud: MemoryCloud) -> None:
    """Call the timer for missed heads."""
    functions(cloud.ports)["plan_missed_head"].get_user_function()(Timer())


def fails(*_: Any, **__: Any) -> Any:
    raise Unavailable("no answer")


def test_a_missed_head_is_planned_also_where_the_settings_cannot_be_compared() -> None:
    cloud = ready("one")
    commit = cloud.repository.push(fleet_files.fleet("one", "two"))
    around(cloud, "state", settings_seen=fails)
    ran = cloud.state.timer_runs().get("plan_missed_head")
    with pytest.raises(Unavailable):
        tick(cloud)
    assert cloud.state.timer_runs().get("plan_missed_head") == ran, "it did not come to its end"
    without_timers(cloud, 120)
    assert cloud.state.fleet().commit == commit


def test_a_run_shows_every_error_of_its_parts(caplog: pytest.LogCaptureFixture) -> None:
    cloud = ready("one")
    around(cloud, "state", settings_seen=fails)
    around(cloud, "telemetry", record=fails)
    with pytest.raises(Unavailable):
        tick(cloud)
    failed = [line.getMessage() for line in caplog.records if line.exc_info]
    assert failed == [
        "record_changed_settings failed; the other parts of the run go on",
        "measure_fleet failed; the other parts of the run go on",
    ]
