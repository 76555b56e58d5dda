"""One manifest: from bytes to a checked model, with what its layers remove, or to problems."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from shared.frozen import dataclass
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.kinds import ClusterClass, Environment, Fleet, System, Versions
from shared.language.resolve.problems import (
    Path,
    Problem,
    described,
    field_of,
    limited,
    nearest,
    problem_at,
    problem_in,
)
from shared.language.resolve.validation import problems_of
from shared.language.resolve.work import Work, units_of
from shared.language.yaml.nodes import (
    Items,
    Mark,
    Node,
    by_name,
    removed,
    texts,
    without_nulls,
    without_removed,
)
from shared.language.yaml.parser import YamlError, parse

# ``{name}``, ``{environment}``, ``{class}`` and ``{location}`` in the strings of a cluster's manifest.
#
# A name in braces that nearly equals one of these is a problem; all other braces are left unchanged. Values
# that were filled in are not searched again, and keys are never filled in.

NAMES = ("name", "environment", "class", "location")
PLACEHOLDER = re.compile(rf"\{{({'|'.join(NAMES)})\}}")
_BRACES = re.compile(r"\{([A-Za-z_-]+)\}")


class Placeholders:
    """The values for a cluster's placeholders; ``failed`` once a string needed a value that is missing."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.failed = False

    def fill(self, text: str) -> str:
        """Return the string with its placeholders filled in."""
        return _BRACES.sub(self._value, text)

    def _value(self, braces: re.Match[str]) -> str:
        value = self._values.get(braces[1], "")
        if not value and _meant(braces[1]):
            self.failed = True
        return value or braces[0]

    def problems(self, node: Node, never: Collection[str] = ()) -> list[Problem]:
        """Return a problem for every placeholder that is misspelt or has no value in the cluster."""
        wrong = (
            (node.find(path).mark, (path, name))
            for path, text in texts(node)
            for name in dict.fromkeys(_BRACES.findall(text))
            if not self._values.get(name) and _meant(name)
        )
        return described(
            wrong, lambda _, missing: problem_in(node, missing[0], _missing_values(missing[1], never))
        )


def placeholders_of(name: str, environment: str, cluster_class: str, location: Any) -> Placeholders:
    """Return the placeholders of a cluster; ``location`` is that of its merged spec, as it is written."""
    values = {"name": name, "environment": environment, "class": cluster_class}
    if isinstance(location, str):
        values["location"] = Placeholders(values).fill(location) if "{" in location else location
    return Placeholders(values)


def filled(value: Any, fill: Callable[[str], str]) -> Any:
    """Return a value with its strings filled in."""
    if isinstance(value, str):
        return fill(value) if "{" in value else value
    if not isinstance(value, dict):
        return [filled(inner, fill) for inner in value] if isinstance(value, list) else value
    return {  # strings as above, without a call: nearly all values are strings
        key: (fill(inner) if "{" in inner else inner) if isinstance(inner, str) else filled(inner, fill)
        for key, inner in value.items()
    }


def misspelt(layer: Node, at: Path, root: Node) -> list[Problem]:
    """Return the misspelt placeholders of a layer as problems; ``at`` is where the layer is in its file."""
    wrong = (
        (root.find((*at, *path)).mark, ((*at, *path), name))
        for path, text in texts(layer)
        for name in dict.fromkeys(_BRACES.findall(text))
        if name not in NAMES and _meant(name)
    )
    return described(
        wrong, lambda mark, missing: problem_at(mark, field_of(missing[0], root), _missing_values(missing[1]))
    )


@lru_cache(maxsize=256)
def _meant(name: str) -> str:
    """Return the placeholder that a name in braces equals or nearly equals, "" for other text."""
    return next(iter(difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.75)), "")


def _missing_values(name: str, never: Collection[str] = ()) -> str:
    if name in never:
        return (
            f"uses {{{name}}}, which a cluster with provider: existing does not have; write the text itself"
        )
    if name in NAMES:
        return f"uses {{{name}}}, but the cluster has no {name}; add spec.{name} to it"
    return f"there is no placeholder {{{name}}}; did you mean {{{_meant(name)}}}?"


Contents = Mapping[str, bytes]
"""The content of files by their path."""
Problems = tuple[Problem, ...]
Shared = TypeVar("Shared", Fleet, Environment, Versions, ClusterClass, System)


def over_limit(content: bytes, work: Work, share: int) -> str:
    """Return the message for a file that is not read, because the plan's work is used up."""
    return (
        f"is not read: all manifests together take more than {work.limit:,} units of work, and this one with "
        f"{len(content):,} bytes takes more than its share of {share:,}; make it smaller"
    )


@dataclass(frozen=True)
class LoadedFile(Generic[Shared]):
    """A parsed file; ``manifest`` is None when it is invalid."""

    node: Node
    manifest: Shared | None = None
    problems: Problems = ()


def load(
    path: str, model: type[Shared], contents: Contents, work: Work, share: int, *, name: str = ""
) -> LoadedFile[Shared]:
    """Return the manifest of a shared file; its metadata.name must be ``name`` where that is given."""
    content = contents[path]
    if not work.admits(units_of(content), share):
        start = Mark(path, 1, 1)
        return LoadedFile(
            Node({}, start), problems=(problem_at(start, "", over_limit(content, work, share)),)
        )
    try:
        node = parse(content, path)
    except YamlError as error:
        return LoadedFile(
            Node({}, error.mark), problems=(problem_at(error.mark, error.field, error.message),)
        )
    try:
        manifest = model.model_validate(node.plain())
    except ValidationError as error:
        return LoadedFile(node, problems=tuple(problems_of(error, node, model)))
    misnamed = wrong_name(node, manifest.metadata.name, name, "file is called") if name else None
    return LoadedFile(node, problems=(misnamed,)) if misnamed else LoadedFile(node, manifest)


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
    return list(limited([*problems, *same_names(layer, at, root), *misspelt(layer, at, root)]))


def same_names(layer: Node, at: Path, root: Node) -> list[Problem]:
    """Return a problem for each duplicate name in a list: such a list cannot be merged by name."""
    return described(_same_names(layer), lambda mark, same: _same_name(mark, *same, at, root))


def _same_names(layer: Node) -> Iterator[tuple[Mark, tuple[str, str, Mark]]]:
    """Yield each item whose name an item before it has: its place, the list, the name and the first place."""
    for key, node in layer.value.items():
        if not isinstance(node.value, Items) or by_name(node):
            continue
        for item in node.value:
            first = node.value.named(item.name) if item.name is not None else None
            if first is not None and first is not item:
                yield item.mark, (key, str(item.name), first.mark)


def _same_name(mark: Mark, key: str, name: str, first: Mark, at: Path, root: Node) -> Problem:
    message = f"has {name} twice, first in line {first.line}; names must differ"
    return problem_at(mark, field_of((*at, key), root), message)


def reference(spec: Node, kind: str) -> tuple[str, Problem | None]:
    """Return the ``class`` or ``environment`` that a spec names, "" where it names none."""
    node = spec.child(kind)
    if node is None or node.value is None:
        return "", None
    if isinstance(node.value, str):
        return node.value, None
    return "", problem_at(node.mark, f"spec.{kind}", f"must be the name of one {kind}, as a string")


# What a layer removes must exist: a ``null`` or ``$patch: delete`` that matches nothing is a problem.
#
# One layer below with the name is enough, even if another layer has removed it since.


def unmatched_removals(layer: Node, below: Sequence[Node], at: Path, root: Node) -> list[Problem]:
    """Return a problem for each removal of a name that no layer below has."""
    return described(
        _unmatched(layer, below, (), any_below=bool(below)),
        lambda mark, unmatched: problem_at(mark, field_of((*at, *unmatched[0]), root), _message(*unmatched)),
    )


Unmatched = tuple[Path, Collection[str], bool]
"""The path of a removal, the names that the layers below have there, and whether there is any layer below."""


def _unmatched(
    node: Node, below: Sequence[Node], path: Path, *, any_below: bool
) -> Iterator[tuple[Mark, Unmatched]]:
    """Yield the removals in an object, or in a list, whose items have their name as a step."""
    known: dict[str, list[Node]] = {}
    for lower in below:
        for name, inner in (lower.value if isinstance(lower.value, dict) else by_name(lower)).items():
            known.setdefault(name, []).append(inner)
    is_object = isinstance(node.value, dict)
    for name, inner in (node.value if is_object else by_name(node)).items():
        if inner.value is None if is_object else removed(inner):
            if name not in known:
                yield inner.mark, ((*path, name), known.keys(), any_below)
        elif isinstance(inner.value, dict | tuple):
            yield from _unmatched(inner, known.get(name, ()), (*path, name), any_below=any_below)


def _message(path: Path, known: Collection[str], any_below: bool) -> str:
    name = str(path[-1])
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else "remove this line"
    reason = f"no layer below has {name}" if any_below else "fleet.yaml is the lowest layer"
    return f"there is nothing to remove: {reason}; {hint}"
