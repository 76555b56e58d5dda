"""Layer rules that import-linter cannot express, one file at a time; ``azure`` is many libraries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
EDGE = ("handlers/", "function_app.py", "localcloud/functions/", "tests/")
PACKAGES = ("handlers", "shared", "cli", "localcloud", "simulation", "bench", "tests")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> Sequence[str]:
    return [*_imports(path)]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources(*places: str, root: Path = ROOT) -> list[tuple[str, Path]]:
    """Return the Python files at these places, by name; fail on a place without any."""
    found = []
    for place in places:
        path = root / place
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        assert files, f"there is no Python file in {place}"
        found += [(file.relative_to(root).as_posix(), file) for file in files]
    return found


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("empty", "missing"):
        with pytest.raises(AssertionError, match=f"no Python file in {place}"):
            sources(place, root=tmp_path)


def test_the_functions_library_stays_at_the_edge() -> None:
    everything = sources("function_app.py", *PACKAGES)
    naming = [(name, path) for name, path in everything if "azure" in path.read_text()]
    users = [name for name, path in naming if any(i.startswith("azure.functions") for i in imports(path))]
    assert users
    assert [name for name in users if not name.startswith(EDGE)] == []


PRODUCT = ("handlers", "shared", "cli", "localcloud", "simulation")


def test_a_class_name_stands_once_in_the_product() -> None:
    places: dict[str, list[str]] = {}
    for file, path in sources(*PRODUCT):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


_ONE_OR_EACH = re.compile(r"\bfor\b[^\n]*\b(one|each)\b[^\n]*\bin\b")


def test_no_loop_variable_is_called_one_or_each() -> None:
    found = []
    for file, path in sources("function_app.py", *PACKAGES, "tools"):
        if not _ONE_OR_EACH.search(path.read_text()):
            continue  # most files: a tree takes long
        loops = (node for node in ast.walk(tree(path)) if isinstance(node, ast.For | ast.comprehension))
        targets = (name for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name))
        found += [f"{file}:{name.lineno}" for name in targets if name.id in ("one", "each")]
    assert found == []


def test_a_record_has_twenty_fields_at_most() -> None:
    found = []
    for file, path in sources(*PRODUCT):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and any(map(_makes_dataclass, node.decorator_list)):
                fields = sum(isinstance(member, ast.AnnAssign) for member in node.body)
                found += [f"{file}: {node.name}"] if fields > 20 else []
    assert found == []


def _makes_dataclass(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "dataclass"


def test_handlers_know_no_client_library() -> None:
    clients = ("azure.", "kubernetes", "github.")
    for name, path in sources("handlers"):
        seen = [i for i in imports(path) if i.startswith(clients) and not i.startswith("azure.functions")]
        assert seen == [], name


def test_the_pure_core_does_no_input_or_output() -> None:
    effects = ("os", "io", "socket", "time", "logging", "random", "subprocess", "threading", "pathlib")
    for name, path in sources(
        "shared/language",
        "shared/azure",
        "shared/kubernetes",
        "shared/plan",
        "shared/cluster",
        "shared/platform",
    ):
        assert not [i for i in imports(path) if i.split(".")[0] in effects], name


RECORDS = "shared/app/records.py"
WRITERS = {
    "save": {RECORDS},
    "delete": {RECORDS},
    "append": {RECORDS, "shared/app/access/lease_guard.py", "shared/app/intake/flux_event.py"},
}
"""Who writes a cluster's record and its events. Events of no record are those of a step whose outcome is
discarded, and what Flux reports."""


def of_the_state(path: Path) -> set[str]:
    """Return the methods of the state that a file names, whatever it does with them."""
    named = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute))
    return {node.attr for node in named if _last_name(node.value) in ("state", "_state")}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def test_one_module_saves_the_records_of_clusters_with_their_events() -> None:
    places = [(name, of_the_state(path)) for name, path in sources("shared/app", "handlers", "cli")]
    for method, writers in WRITERS.items():
        assert {name for name, methods in places if method in methods} == writers, method


def test_no_files_import_each_other_in_a_circle_for_types_neither() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    modules = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert {module.partition(".")[0] for module, imported in modules.items() if imported} == {*PACKAGES}
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("package", ["localcloud", "simulation"])
def test_a_file_name_occurs_once(package: str) -> None:
    names = [path.name for _, path in sources(package) if not path.name.startswith("__")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("package", ["localcloud", "simulation"])
def test_every_folder_describes_what_belongs_there(package: str) -> None:
    for name, path in sources(package):
        if path.name == "__init__.py":
            assert ast.get_docstring(ast.parse(path.read_text())), name
