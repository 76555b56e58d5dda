"""``GET /api/health`` and ``GET /api/ready``, and the timers that they are about."""

from __future__ import annotations

import json
from typing import Any

import azure.functions as func
import pytest
from azure.functions.timer import TimerRequest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.health import GRACE
from shared.cluster.failures.errors import Unavailable
from shared.configuration.load_settings import load_settings
from shared.ports import FleetConfig
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, started
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around

TIMERS = ("check", "plan_missed_head", "purge_expired", "resend_overdue", "sweep")
EVERY_MINUTE = dict.fromkeys(TIMERS, "0 * * * * *")


def fresh() -> MemoryCloud:
    cloud = MemoryCloud(config=FleetConfig("example", "example/fleet", timers=EVERY_MINUTE))
    push(cloud, fleet_files.fleet("one"))
    return cloud


def ask(cloud: MemoryCloud, function: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    request = func.HttpRequest("GET", f"/api/{function}", body=b"", headers=headers or {})
    reply = started(cloud.ports)[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())


def test_a_new_app_is_ready_until_a_timer_that_never_ran_is_late() -> None:
    cloud = fresh()
    assert ask(cloud, "ready") == (200, {"live": True, "ready": True})
    _, health = ask(cloud, "health", ADMIN)
    assert all(timer["ok"] and timer["dueAt"] and not timer["lastRunAt"] for timer in health["timers"])
    cloud.clock.advance(60 + GRACE.total_seconds() + 1)
    assert ask(cloud, "ready") == (503, {"live": True, "ready": False})
    found = started(cloud.ports)
    for name in TIMERS:
        found[name].get_user_function()(TimerRequest())
    assert ask(cloud, "ready") == (200, {"live": True, "ready": True})
    status, health = ask(cloud, "health", ADMIN)
    assert (status, health["live"], health["ready"]) == (200, True, True)
    assert {timer["name"]: timer["lastRunAt"] for timer in health["timers"]} == dict.fromkeys(
        TIMERS, cloud.clock().isoformat(timespec="seconds")
    )
    assert all(timer["ok"] and timer["dueAt"] and timer["schedule"] for timer in health["timers"])


def test_a_timer_that_fails_has_not_run() -> None:
    cloud = fresh()

    def away(*_: object) -> object:
        raise Unavailable("the tables are away")

    around(cloud, "state", continuations=away)
    timer = started(cloud.ports)["resend_overdue"].get_user_function()
    with pytest.raises(Unavailable):
        timer(TimerRequest())
    assert cloud.state.timer_runs() == {}


def test_nobody_learns_more_than_that_the_app_is_not_ready() -> None:
    cloud = fresh()

    def away(*_: object) -> object:
        raise Unavailable("fleet.table.core.windows.net does not answer")

    around(cloud, "state", timer_runs=away)
    assert ask(cloud, "ready") == (503, {"live": True, "ready": False})
    assert ask(cloud, "health")[0] == 401
    status, health = ask(cloud, "health", ADMIN)
    assert (status, health["services"][1]["ok"]) == (503, False)
    assert "does not answer" in health["services"][1]["problem"]


def test_the_app_of_the_timers_knows_their_schedules_and_no_other_app_does() -> None:
    base = {
        **{"ROADSTEAD_FLEET": "example", "GITHUB_REPOSITORY": "example/fleet", "GITHUB_TOKEN": "t"},
        **{
            "ServiceBus": "Endpoint=sb://x",
            "TABLES_CONNECTION_STRING": "x",
            "PLAN_SCHEDULE": "0 */5 * * * *",
            "RESEND_SCHEDULE": "30 * * * * *",
            "RETENTION_SCHEDULE": "0 30 3 * * *",
        },
    }
    whole = load_settings(base).fleet_config.timers
    assert set(whole) == set(TIMERS)
    assert whole["plan_missed_head"] == "0 */5 * * * *"
    assert load_settings({**base, "ROADSTEAD_APP": "worker"}).fleet_config.timers == {}
    assert set(started(fresh().ports)) >= set(whole)
