"""Layer rules that import-linter cannot say, because ``azure`` is many libraries under one name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FUNCTIONS = (
    "handlers/",
    "function_app.py",
    "localcloud/functions/",
    "localcloud/functions/host.py",
    "tests/",
)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources(*folders: str) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        paths = [ROOT / folder] if folder.endswith(".py") else sorted((ROOT / folder).rglob("*.py"))
        yield from ((path.relative_to(ROOT).as_posix(), path) for path in paths)


def test_the_functions_library_stays_at_the_edge() -> None:
    everything = sources("function_app.py", "handlers", "shared", "cli", "localcloud", "tests")
    users = [name for name, path in everything if any(i.startswith("azure.functions") for i in imports(path))]
    assert [name for name in users if not name.startswith(FUNCTIONS)] == []


def test_handlers_know_no_client_library() -> None:
    clients = ("azure.", "kubernetes", "github.")
    for name, path in sources("handlers"):
        seen = [i for i in imports(path) if i.startswith(clients) and not i.startswith("azure.functions")]
        assert seen == [], name


def test_the_pure_core_does_no_input_or_output() -> None:
    effects = ("os", "io", "socket", "time", "logging", "random", "subprocess", "threading", "pathlib")
    for name, path in sources("shared/fleet", "shared/jobs"):
        assert not [i for i in imports(path) if i.split(".")[0] in effects], name
