"""What is deployed: every library that is imported is declared, and every one that is declared is locked."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
OURS = {"cli", "handlers", "localcloud", "shared"}
LOCK = (ROOT / "requirements.txt").read_text()
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", LOCK, re.MULTILINE)
}
APP = [
    Requirement(line.partition("#")[0])
    for line in (ROOT / "requirements.in").read_text().splitlines()
    if line.partition("#")[0].strip()
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMAND = [Requirement(line) for line in PROJECT["dependencies"]]


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


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(each.name) for each in requirements}


def test_the_function_app_declares_what_it_imports_and_nothing_else() -> None:
    used = distributions_of(imported("function_app.py", "handlers", "shared"))
    assert {module for module, found in used.items() if not found & names(APP)} == set()
    assert names(APP) - set().union(*used.values()) == set()


def test_the_command_declares_what_it_imports_and_nothing_else() -> None:
    used = distributions_of(imported("cli", "shared/fleet", "shared/jobs", "shared/pipeline/api"))
    assert {module for module, found in used.items() if not found & names(COMMAND)} == set()
    assert names(COMMAND) - set().union(*used.values()) == set()


def test_the_lock_has_every_pin_of_the_function_app_and_of_the_command() -> None:
    both = [each for each in (*APP, *COMMAND) if canonicalize_name(each.name) in names(APP)]
    assert len(both) > len(APP)
    assert {each.name: str(each.specifier) for each in both} == {
        each.name: f"=={PINS.get(canonicalize_name(each.name))}" for each in both
    }, "run make lock"


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
    assert len(entries) == len(PINS)
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.findall(r"https?://|^--", LOCK, re.MULTILINE)
