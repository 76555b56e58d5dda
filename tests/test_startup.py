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
from shared.configuration.settings import App

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


@pytest.mark.parametrize(("name", "module"), [("status", "status"), ("wait", "wait"), ("events", "cluster")])
def test_the_help_of_a_command_loads_no_client_and_no_model(name: str, module: str) -> None:
    modules = loaded(command(name, "--help"))
    assert f"cli.commands.watch.{module}" in modules
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


_CONFIGURATION = "shared.configuration"
OF_A_START = {
    *("shared.app.api.access", "shared.azure.rate_limits", "shared.frozen", "shared.json_tree"),
    *("shared.cluster.failures.errors", "shared.cluster.failures.retry", "shared.resource_ids"),
    *(f"{_CONFIGURATION}.{name}" for name in ("load_settings", "setting_texts", "settings")),
    *("shared.logs", "shared.masking", "shared.process_memory", "shared.reachable_addresses"),
    *("shared.schedules", "shared.standard_webhooks", "handlers.apps", "handlers.triggers"),
}
"""All that a start imports of ours, packages apart: what settings, triggers and logs need."""
LATER = {"dateutil", "jinja2", "kustomize", "opentelemetry", "yaml"} | CLIENTS


@pytest.mark.parametrize("app", list(App))
def test_a_start_of_an_app_imports_settings_and_triggers_and_the_rest_comes_with_a_call(app: App) -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    modules = loaded("import function_app", **values, ROADSTEAD_APP=app)
    ours = {name for name in modules if name.partition(".")[0] in ("handlers", "shared")}
    packages = {name for name in ours if (ROOT / name.replace(".", "/")).is_dir()}
    assert ours - packages == OF_A_START
    assert not {name for name in modules if {name, name.partition(".")[0]} & LATER}


FIRST_CALL = """
import function_app, sys
found = {function.get_function_name(): function for function in function_app.app.get_functions()}
try:
    found[sys.argv[1]].get_user_function()(None)
except AttributeError:  # what calls it is nothing at all
    pass
"""
WORKS_ELSEWHERE = {
    "planner": {"handlers.api", "handlers.console", "handlers.timers", "handlers.webhooks"},
    "github": {"handlers.api", "handlers.console", "handlers.queues", "handlers.timers"},
    "clusters": {"handlers.console", "handlers.queues", "handlers.timers", "handlers.webhooks"},
    "worker": {"handlers.api", "handlers.console", "handlers.timers", "shared.app.planner.planner"},
    "deleter": {"handlers.api", "handlers.console", "handlers.timers", "shared.app.planner.planner"},
}
"""What the first call of a function does not import: an instance runs some functions of an app."""


@pytest.mark.parametrize("function", list(WORKS_ELSEWHERE))
def test_the_first_call_of_a_function_imports_its_part_of_the_app_alone(function: str) -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    modules = loaded(f"import sys; sys.argv[1:] = [{function!r}]\n{FIRST_CALL}", **values)
    assert "shared.configuration.production" in modules
    assert not WORKS_ELSEWHERE[function] & modules


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
