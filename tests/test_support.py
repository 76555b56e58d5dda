"""Shared helpers stand in tests/support: no test module is imported by another one."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def imported(path: Path) -> set[str]:
    """Return the modules that a file names in its ``from`` imports, with what it takes from each."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}


def test_nothing_is_imported_from_a_test_module_or_a_conftest() -> None:
    used = {name for path in TESTS.rglob("*.py") for name in imported(path) if name.startswith("tests.")}
    assert any(name.startswith("tests.support.") for name in used)
    modules = {part for name in used for part in name.split(".")[1:-1]}
    assert {name for name in modules if name.startswith("test_") or name == "conftest"} == set()
