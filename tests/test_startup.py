"""Start-up imports: nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from cli.app import COMMANDS, NEW, ROLLOUT
from cli.lazy import Entry

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent
CLIENTS = {
    "apprise",
    "azure.data",
    "azure.identity",
    "azure.mgmt",
    "azure.servicebus",
    "azure.storage",
    "github",
    "jwt",
    "kubernetes",
    "requests",
}


def loaded(code: str, **environment: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after running the code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    return set(done.stderr.split())


def command(*arguments: str) -> str:
    return f"""
import sys
from cli.main import main
sys.argv[1:] = {list(arguments)}
try:
    main()
except SystemExit:
    pass
"""


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], [], ["new", "--help"]])
def test_help_and_version_load_no_command_and_no_library_but_typer(arguments: list[str]) -> None:
    modules = loaded(command(*arguments))
    assert "typer" in modules
    assert not {"httpx", "rich.console", "shared.language", "yaml", "cli.fleet_api.client"} & modules


@pytest.mark.parametrize("name", ["status", "wait", "events"])
def test_the_help_of_a_command_loads_no_client_and_no_model(name: str) -> None:
    modules = loaded(command(name, "--help"))
    assert f"cli.commands.watch.{name}" in modules
    assert not {"httpx", "shared.language.model", "yaml"} & modules


@pytest.mark.parametrize("arguments", [["status"], ["events", "one"], ["wait", "one"]])
def test_a_command_that_only_asks_the_api_builds_no_model_of_a_manifest(arguments: list[str]) -> None:
    modules = loaded(command(*arguments), ROADSTEAD_URL="http://127.0.0.1:1")
    assert "cli.fleet_api.client" in modules
    assert not {"shared.language.model.kinds", "shared.language.model.cluster.spec", "yaml"} & modules


def entries(sections: Iterable[Mapping[str, Entry]]) -> Iterator[str]:
    return (entry.target for section in sections for entry in section.values())


FIRST = """
import importlib, os, sys
import dateutil.rrule, httpx, pydantic, rich.console, typer, yaml
assert not [name for name in sys.modules if name.partition(".")[0] in ("cli", "shared")]
for module in sys.argv[1:]:
    child = os.fork()
    if not child:
        importlib.import_module(module)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(module)
"""
"""Names the modules that cannot be the first of this project; libraries import none of it, and are there."""


def test_the_module_of_every_command_may_be_the_first_that_a_process_loads() -> None:
    groups = (COMMANDS, NEW, ROLLOUT)
    modules = {target.partition(":")[0] for group in groups for target in entries(group.values())}
    assert len(modules) > 20
    program = [sys.executable, "-c", FIRST, *sorted(modules)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_start_of_the_function_app_imports_no_client_library() -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    on = {"GITHUB_SETUP_VAULT": "https://own.vault.azure.net"}
    modules = loaded("import function_app", **values, **on)
    assert "azure.functions" in modules
    assert not CLIENTS & modules


API = {"shared.app.api.views.clusters"}
ON_A_MESSAGE = {
    *("shared.app.planner.planner", "shared.app.pull_requests.pull_requests", "shared.app.sweep.sweep"),
    *("shared.app.notifier.notifier", "shared.app.proposals.proposals"),
    *("shared.app.check.check", "shared.app.worker.worker"),
}


@pytest.mark.parametrize(("app", "whole"), [("control", API), ("worker", set()), ("deleter", set())])
def test_a_start_of_an_app_imports_no_other_app_and_what_a_message_needs_with_the_message(
    app: str, whole: set[str]
) -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    modules = loaded("import function_app", **values, ROADSTEAD_APP=app)
    assert (API | ON_A_MESSAGE) & modules == whole


def test_an_instance_of_the_function_app_collects_garbage_rarely() -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    done = subprocess.run(
        [sys.executable, "-c", "import gc, function_app; print(gc.get_threshold()[0])"],
        capture_output=True, text=True, check=True, timeout=60, cwd=ROOT, env={**os.environ, **values},
    )  # fmt: skip
    assert int(done.stdout) >= 10_000


def test_a_start_of_the_function_app_parses_no_source_code_for_descriptions() -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    read = "import linecache, function_app; print(*linecache.cache)"
    done = subprocess.run(
        [sys.executable, "-c", read], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT,
        env={**os.environ, **values},
    )  # fmt: skip
    assert "shared/language/model" not in done.stdout
