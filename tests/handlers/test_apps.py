"""The apps of a fleet: each runs its own functions of the package, as its setting says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import azure.functions as func
import pytest

from handlers.apps import Functions
from handlers.sign_in import SignIn
from handlers.triggers import TABLE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.configuration.settings import App
from tools.functions import table

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent
VALUES: dict[str, str] = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
SHOW = "import function_app; print(*(each.get_function_name() for each in function_app.app.get_functions()))"
OF_CLUSTERS = {
    App.WORKER: {"worker", "changer", "dead_jobs", "dead_changes"},
    App.DELETER: {"deleter", "dead_deletes"},
}


def names(app: App) -> set[str]:
    """Return the names of the functions of an app."""
    made = func.FunctionApp()
    ports = MemoryCloud().ports
    functions = Functions(ports, SignIn(), webhook_secrets=(), form_secrets=("s",), approval_keys={})
    for blueprint in functions.app(app):
        made.register_functions(blueprint)
    return {str(function.get_function_name()) for function in made.get_functions()}


def test_every_function_runs_in_one_app() -> None:
    everything = [name for app in App for name in names(app)]
    assert len(everything) == len(set(everything))
    assert {app: names(app) for app in OF_CLUSTERS} == OF_CLUSTERS
    assert {"github", "planner", "clusters", "approve", "replay", "resend_overdue"} <= names(App.CONTROL)


def test_the_table_of_triggers_is_that_of_the_declarations() -> None:
    assert TABLE.read_text() == table(), "make generate writes it again"


@pytest.mark.parametrize("app", [*App, None])
def test_the_package_starts_the_functions_of_its_setting_and_all_without_one(app: App | None) -> None:
    settings = VALUES | ({"ROADSTEAD_APP": app.value} if app else {})
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, **settings},
    )
    assert set(done.stdout.split()) == set.union(*(names(app_name) for app_name in ([app] if app else App)))
