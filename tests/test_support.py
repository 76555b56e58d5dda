"""Shared helpers stand in tests/support: no test module is imported by another one. A seed draws samples.

Deep bodies meet no garbage.
"""

from __future__ import annotations

import ast
import re
import weakref
from pathlib import Path

from tests.support.odd_bodies import DEEP, odd_bodies
from tests.support.sample import drawn

TESTS = Path(__file__).parent


def imported(path: Path) -> set[str]:
    """Return what a file takes from other modules, by name, but for suites that run in both places."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
    return {name for name in names if not re.fullmatch(r"tests\.contract\.test_\w+\.(\*|test_\w+)", name)}


def test_nothing_is_imported_from_a_test_module_or_a_conftest() -> None:
    naming = re.compile(r"from tests\.\S*\b(test_|conftest)")
    naming_tests = [path for path in TESTS.rglob("*.py") if naming.search(path.read_text())]
    assert naming_tests
    used = {name for path in naming_tests for name in imported(path) if name.startswith("tests.")}
    modules = {part for name in used for part in name.split(".")[1:-1]}
    assert {name for name in modules if name.startswith("test_") or name == "conftest"} == set()


def test_a_seed_always_draws_the_same_sample_and_others_draw_every_case() -> None:
    cases = range(100)
    assert drawn("1", cases, 10) == drawn("1", cases, 10) == sorted(drawn("1", cases, 10))
    assert {case for seed in range(100) for case in drawn(str(seed), cases, 10)} == {*cases}
    assert drawn("1", cases, 200) == [*cases]


class Cycle:
    """What only the garbage collector frees."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_freed_before_a_deep_body_is_read_which_leaves_no_stack_to_finalizers() -> None:
    left = weakref.ref(Cycle())
    for odd in odd_bodies({"a": 1}):
        assert left() is None or DEEP.encode() not in odd
        left = weakref.ref(Cycle())
