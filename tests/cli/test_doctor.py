"""``roadstead doctor``: what each app finds of itself, and its exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import Event, Thread

import pytest
import yaml

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.examination import APPS
from shared.cluster.failures.errors import Unauthorized
from tests.support.pipeline_runs import ready
from tests.support.replaced_ports import Around
from tests.support.roadstead_command import on_terminal, plain, roadstead


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready("one")


def doctor(cloud: MemoryCloud, url: str, *options: str) -> tuple[int, str]:
    """Run the command while the apps take their messages."""
    over = Event()

    def take() -> None:
        while not over.wait(0.05):
            cloud.step()

    apps = Thread(target=take)
    apps.start()
    try:
        done = roadstead("doctor", *options, ROADSTEAD_URL=url)
    finally:
        over.set()
        apps.join()
    return done.returncode, done.stdout


def test_apps_that_are_well_end_with_0(url: str, cloud: MemoryCloud) -> None:
    code, shown = doctor(cloud, url, "-o", "yaml")
    assert (code, yaml.safe_load(shown)["findings"]) == (0, [])
    code, shown = doctor(cloud, url)
    assert code == 0, shown
    assert [line.split()[0] for line in shown.splitlines()] == ["control", "worker", "deleter", "nothing"]


def test_a_finding_is_shown_with_what_mends_it_and_ends_with_1(url: str, cloud: MemoryCloud) -> None:
    def refuse() -> None:
        raise Unauthorized("this identity may not send")

    cloud.with_ports(lambda ports: replace(ports, deletes=Around(ports.deletes, probe=refuse)))
    code, shown = doctor(cloud, url, "-o", "json")
    assert code == 1
    found = json.loads(shown)["findings"]
    assert {(finding["app"], finding["what"]) for finding in found} == {
        (app, "queue deletes") for app in ("control", "worker", "deleter")
    }
    told = " ".join(plain(on_terminal("doctor", "--wait", "1s", ROADSTEAD_URL=url)[1]).split())
    assert "Unauthorized: this identity may not send" in told
    assert "it assigns the roles and writes the settings" in told


def test_a_command_that_mends_something_is_a_line_of_its_own_and_text_is_wrapped_below_its_beginning(
    url: str, cloud: MemoryCloud
) -> None:
    shown = plain(on_terminal("doctor", "--wait", "1s", ROADSTEAD_URL=url)[1])
    lines = shown[shown.index("control: app") :].splitlines()
    assert "    az functionapp function list --name FUNCTION_APP_NAME-worker" in lines
    assert [line for line in lines if line[:1] != " " and ": app" not in line and "finding" not in line] == []
    assert max(map(len, lines)) <= 80


def test_an_app_that_does_not_answer_in_time_is_a_finding(url: str, cloud: MemoryCloud) -> None:
    done = roadstead("doctor", "--wait", "1s", "-o", "name", ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout.split()) == (1, [f"problem/{app}/app" for app in APPS])
