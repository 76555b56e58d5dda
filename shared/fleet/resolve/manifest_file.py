"""One manifest: from bytes to a checked model, or to problems with their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from shared.fleet.manifests import ClusterClass, ClusterSpec, Environment, Fleet, System
from shared.fleet.resolve.placeholders import misspelt
from shared.fleet.resolve.problems import Path, Problem, field_of, problem_at, problems_of
from shared.fleet.resolve.yaml_tree import (
    Mark,
    Node,
    YamlError,
    by_name,
    parse,
    without_nulls,
    without_removed,
)

Contents = Mapping[str, bytes]
"""The content of files by their path."""
Problems = tuple[Problem, ...]
Shared = TypeVar("Shared", Fleet, Environment, ClusterClass, System)


@dataclass(frozen=True)
class Loaded(Generic[Shared]):
    """A parsed file; ``manifest`` is None when it is invalid."""

    node: Node
    manifest: Shared | None = None
    problems: Problems = ()


def load(path: str, model: type[Shared], contents: Contents, *, name: str = "") -> Loaded[Shared]:
    """Return the manifest of a shared file; its metadata.name must be ``name`` where that is given."""
    try:
        node = parse(contents[path], path)
    except YamlError as error:
        return Loaded(Node({}, error.mark), problems=(problem_at(error.mark, "", error.message),))
    try:
        manifest = model.model_validate(node.plain())
    except ValidationError as error:
        return Loaded(node, problems=tuple(problems_of(error, node, model)))
    misnamed = wrong_name(node, manifest.metadata.name, name, "file is called") if name else None
    return Loaded(node, problems=(misnamed,)) if misnamed else Loaded(node, manifest)


def wrong_name(node: Node, given: str, expected: str, source: str, *, more: str = "") -> Problem | None:
    """Return the problem of a metadata.name that differs from the expected one."""
    if given == expected:
        return None
    mark = node.find(("metadata", "name")).mark
    return problem_at(mark, "metadata.name", f"must be {expected}, as the {source}, got {given}{more}")


def part(root: Node, *path: str) -> Node:
    """Return the object at a path, an empty one where there is none."""
    node: Node | None = root
    for step in path:
        node = node.child(step) if node else None
    return node if node is not None and isinstance(node.value, dict) else Node({}, root.mark)


def without(node: Node, *keys: str) -> Node:
    """Return an object without some of its keys."""
    return Node({key: inner for key, inner in node.value.items() if key not in keys}, node.mark)


def layer_problems(root: Node, at: Path, *, chooses: tuple[str, ...] = ()) -> list[Problem]:
    """Return the problems of one layer by itself; ``chooses`` are the references that it may contain."""
    layer = part(root, *(str(step) for step in at))
    problems = []
    for key in ("class", "environment"):
        node = layer.child(key)
        if node is not None and key not in chooses:
            message = f"each cluster chooses its {key} in its own spec; remove this line"
            problems.append(problem_at(node.mark, field_of((*at, key), root), message))
    suspend = layer.child("suspend")
    if suspend is not None and root.find(("kind",)).value != "Cluster":
        message = "only a single cluster can be suspended; write suspend in the spec of that cluster"
        problems.append(problem_at(suspend.mark, field_of((*at, "suspend"), root), message))
    rest = without_nulls(without(layer, "class", "environment"))
    try:
        ClusterSpec.model_validate(rest.plain())
    except ValidationError as error:
        problems += problems_of(error, without_removed(root), ClusterSpec, at=at, partial=True)
    return sorted({*problems, *same_names(layer, at, root), *misspelt(layer, at, root)})


def same_names(layer: Node, at: Path, root: Node) -> list[Problem]:
    """Return a problem for each duplicate name in a list: such a list cannot be merged by name."""
    problems = []
    for key, node in layer.value.items():
        if not isinstance(node.value, tuple) or by_name(node):
            continue
        first: dict[str, Mark] = {}
        for item in node.value:
            if item.name is None:
                continue
            if item.name in first:
                message = f"has {item.name} twice, first in line {first[item.name].line}; names must differ"
                problems.append(problem_at(item.mark, field_of((*at, key), root), message))
            first.setdefault(item.name, item.mark)
    return problems


def reference(spec: Node, kind: str) -> tuple[str, Problem | None]:
    """Return the ``class`` or ``environment`` that a spec names, "" where it names none."""
    node = spec.child(kind)
    if node is None or node.value is None:
        return "", None
    if isinstance(node.value, str):
        return node.value, None
    return "", problem_at(node.mark, f"spec.{kind}", f"must be the name of one {kind}, as a string")
