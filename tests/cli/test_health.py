"""``roadstead health``: services, timers and credentials, and the exit code of an app that is not ready."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import FleetConfig
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with
from tests.support.roadstead_command import on_terminal, plain, roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives

CONFIG = FleetConfig("example", "example/fleet", timers={"sweep": "0 10 */4 * * *"})


@pytest.fixture
def cloud() -> MemoryCloud:
    cloud = cloud_with(fleet_files.fleet("one"), config=CONFIG)
    cloud.state.save_timer_run("sweep", cloud.clock())
    cloud.repository.token_expires = cloud.clock() + timedelta(days=3, minutes=1)
    return cloud


@pytest.mark.parametrize("columns", [80, 120])
def test_an_app_that_is_ready_shows_what_ends_soon(url: str, cloud: MemoryCloud, columns: int) -> None:
    code, shown = on_terminal("health", columns=columns, ROADSTEAD_URL=url)
    rows = [row.rstrip() for row in plain(shown).splitlines()]
    assert max(map(len, rows)) <= columns
    text = " ".join(" ".join(rows).split())
    assert (code, "The app is ready" in text) == (0, True)
    assert "GitHub answers" in text
    assert "without check runs of our own: a pull request has a commit status" in text
    assert "GITHUB_TOKEN ends in 3 days: create another one" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_a_timer_that_has_not_run_yet_says_when_it_is_due(url: str, cloud: MemoryCloud, columns: int) -> None:
    cloud.with_ports(lambda ports: replace(ports, config=replace(CONFIG, timers={"check": "0 */5 * * * *"})))
    with served(cloud.ports) as new:
        code, shown = on_terminal("health", columns=columns, ROADSTEAD_URL=new)
    due = cloud.clock().replace(second=0) + timedelta(minutes=5 - cloud.clock().minute % 5)
    assert code == 0
    assert f"has not run yet, due at {due:%Y-%m-%d %H:%M:%S} UTC" in " ".join(plain(shown).split())


def test_an_app_that_is_not_ready_ends_with_1_and_says_why(url: str, cloud: MemoryCloud) -> None:
    cloud.clock.advance(24 * 3600)
    done = roadstead("health", ROADSTEAD_URL=url)
    assert (done.returncode, done.stderr) == (1, "")
    assert "The app is not ready" in done.stdout
    assert json.loads(roadstead("health", "-o", "json", ROADSTEAD_URL=url).stdout)["ready"] is False
    assert "problem/sweep" in roadstead("health", "-o", "name", ROADSTEAD_URL=url).stdout.splitlines()


def test_an_app_that_does_not_answer_is_an_error() -> None:
    done = roadstead("health", ROADSTEAD_URL="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "no answer from" in done.stderr
