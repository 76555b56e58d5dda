"""What is deployed: every library that is imported is declared, and every one that is declared is locked."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from shutil import which

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from shared.app.console.render import ASSETS
from tests.support.locked_libraries import COMMAND, DECLARED, LOCK, LOCKED, PYTHONS, for_python, names, pins
from tools.deployed import deployed

ROOT = Path(__file__).parent.parent
OURS = {"cli", "handlers", "localcloud", "shared"}
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
APP = for_python(DECLARED, HERE)
PINS = pins(HERE)
NO_MODULE = {"tzdata"}
"""What is declared and not imported: the time zones that zoneinfo reads where the machine has none."""


def imported(*folders: str) -> set[str]:
    """Return the top-level modules that these folders import from elsewhere."""
    return {name for folder in folders for name in _imported(folder)} - OURS - set(sys.stdlib_module_names)


def _imported(folder: str) -> Iterator[str]:
    path = ROOT / folder
    for file in [path] if path.suffix else sorted(path.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]


def distributions_of(modules: set[str]) -> dict[str, set[str]]:
    """Return the installed distributions that provide each module."""
    providers = packages_distributions()
    return {module: {canonicalize_name(name) for name in providers[module]} for module in modules}


def test_what_is_uploaded_is_the_function_app_its_lock_and_the_configuration_of_the_host() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    uploaded = {path.relative_to(ROOT).parts[0] for path in deployed(ROOT)}
    ours = {name.partition("/")[0] for name in tracked.stdout.split("\0")}
    assert uploaded & ours == {"function_app.py", "handlers", "shared", "host.json", "requirements.txt"}
    inside = [path for path in tracked.stdout.split("\0") if path.startswith(("shared/", "handlers/"))]
    missing = {ROOT / path for path in inside} - set(deployed(ROOT))
    assert missing == set(), "a name of .funcignore counts at any depth"


def test_the_libraries_of_the_command_are_not_deployed() -> None:
    assert {"typer", "rich", "httpx"} <= names(COMMAND)
    assert names(COMMAND) & set(PINS) == {
        *("pydantic", "pydantic-core", "pyyaml", "azure-identity"),
        *("python-dateutil", "cronsim", "tzdata", "pyjwt"),
    }


def test_the_function_app_declares_what_it_imports_and_nothing_else() -> None:
    used = distributions_of(imported("function_app.py", "handlers", "shared"))
    assert {module for module, found in used.items() if not found & names(APP)} == set()
    assert names(APP) - set().union(*used.values()) == NO_MODULE


def test_the_command_declares_what_it_imports_and_nothing_else() -> None:
    used = distributions_of(
        imported(
            "cli",
            "shared/language",
            "shared/azure",
            "shared/kubernetes",
            "shared/plan",
            "shared/cluster",
            "shared/app/api",
            "shared/github_app.py",
        )
    )
    assert {module for module, found in used.items() if not found & names(COMMAND)} == set()
    assert names(COMMAND) - set().union(*used.values()) == NO_MODULE


@pytest.mark.parametrize("version", PYTHONS)
def test_the_lock_has_every_pin_of_the_function_app_and_of_the_command(version: str) -> None:
    app, locked = for_python(DECLARED, version), pins(version)
    both = [
        requirement for requirement in (*app, *COMMAND) if canonicalize_name(requirement.name) in names(app)
    ]
    assert len(both) > len(app)
    assert {requirement.name: str(requirement.specifier) for requirement in both} == {
        requirement.name: f"=={locked.get(canonicalize_name(requirement.name))}" for requirement in both
    }, "run make lock"


def test_each_python_has_the_line_of_the_functions_library_that_is_made_for_it() -> None:
    """The library ends its support of an old Python with a major version, which cannot be installed there."""
    assert {version: pins(version)["azure-functions"].partition(".")[0] for version in PYTHONS} == {
        "3.11": "1",
        "3.12": "1",
        "3.13": "2",
    }


def test_make_takes_the_newest_supported_python_that_runs_first_of_the_system_and_then_of_the_path(
    tmp_path: Path,
) -> None:
    path, system = tmp_path / "path", tmp_path / "system"

    def make(*arguments: str) -> str:
        done = subprocess.run(
            [which("make") or "make", "--eval", "show:;@echo '$(PYTHON)'", "show", *arguments],
            cwd=ROOT,
            env={"PATH": f"{path}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def program(folder: Path, name: str, text: str) -> None:
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    makefile = (ROOT / "Makefile").read_text()
    offered = re.search(r"^PYTHONS := (.*)$", makefile, re.MULTILINE)
    assert offered
    assert offered[1].split() == [f"python{version}" for version in sorted(PYTHONS, reverse=True)]
    for version in PYTHONS:
        program(path, f"python{version}", "echo 'this version is not installed' >&2; exit 127")
        program(system, f"python{version}", "echo \"No module named 'ensurepip'\" >&2; exit 1")
    only = f"SYSTEM={system}"
    assert make(only) == ""
    program(path, "python3.12", f'exec {sys.executable} "$@"')
    assert make(only) == "python3.12"
    program(system, "python3.11", f'exec {sys.executable} "$@"')
    assert make(only) == f"{system}/python3.11"
    assert make(only, "PYTHON=/opt/python") == "/opt/python"


def test_the_lock_has_whatever_the_locked_libraries_need() -> None:
    assert len(PINS) > len(APP)
    for name in PINS:
        for line in distribution(name).requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                pinned = PINS.get(canonicalize_name(needed.name), "")
                assert needed.specifier.contains(pinned or "0", prereleases=True), f"{name} needs {line}"


def test_every_locked_library_has_hashes_and_no_line_names_a_registry() -> None:
    entries = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(LOCKED)
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.findall(r"https?://|^--", LOCK, re.MULTILINE)


HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
"""The SHA-256 of dist/htmx.min.js in htmx.org 2.0.11, as npm has it."""


def test_the_script_of_the_console_that_others_wrote_is_the_published_one_with_its_licence() -> None:
    body = (ASSETS / "htmx.min.js").read_bytes()
    assert (hashlib.sha256(body).hexdigest(), b'version:"2.0.11"' in body) == (HTMX, True)
    assert "Zero-Clause BSD" in (ASSETS / "htmx.LICENSE.txt").read_text()
