"""A YAML file as a tree of nodes with their places, and the merging of such trees.

Every problem in a manifest is reported with file, line and column, also after merging: each node has the
``Mark`` of the file that it comes from. Scalars follow the YAML 1.2 core schema, so ``no``, ``on`` and dates
are strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000
"""Bounds of one manifest: a few hundred bytes of YAML can otherwise grow to megabytes, or to a stack
overflow in the C parser."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Node:
    """A dict of nodes, a tuple of nodes, or a scalar, and its place, which for an entry is its key's."""

    value: Any
    mark: Mark

    def plain(self) -> Any:
        """Return the value without places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value

    def find(self, path: Sequence[str | int]) -> Node:
        """Return the node at a path, or the nearest one above it; an item of a list by number or name."""
        node = self
        for step in path:
            below = node.child(step)
            if below is None:
                break
            node = below
        return node

    def child(self, step: str | int) -> Node | None:
        """Return the entry of an object, or the item of a list by number or name; None when there is none."""
        if isinstance(self.value, dict):
            child = self.value.get(step)
            return child if isinstance(child, Node) else None
        if isinstance(self.value, tuple) and isinstance(step, int):
            return self.value[step] if step < len(self.value) else None
        if isinstance(self.value, tuple):
            return next((item for item in self.value if item.name == step), None)
        return None

    @property
    def name(self) -> str | None:
        """The ``name`` of an object, when that is a string."""
        named = self.value.get("name") if isinstance(self.value, dict) else None
        return named.value if named is not None and isinstance(named.value, str) else None


@dataclass(frozen=True, slots=True)
class Root(Node):
    """A whole file; ``has_removals``: some value in it is null or ``$patch: delete``."""

    has_removals: bool


class YamlError(Exception):
    """The content is not one YAML document; ``message`` and ``mark`` are the reason and the place."""

    def __init__(self, message: str, mark: Mark) -> None:
        super().__init__(message)
        self.message, self.mark = message, mark


def parse(content: bytes, file: str) -> Root:
    """Return the one YAML document of a file; raise YamlError for anything else."""
    start = Mark(file, 1, 1)
    if len(content) > MAX_BYTES:
        raise YamlError(f"the file has {len(content)} bytes; make it at most {MAX_BYTES}", start)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise YamlError("the file is not UTF-8 text; save it as UTF-8", Mark(file, line, 1)) from error
    if "<<<<<<<" in text or ">>>>>>>" in text:
        _refuse_conflict_markers(text, file)
    try:
        return _Builder(text, file).document()
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        mark = Mark(file, place.line + 1, place.column + 1) if place else start
        raise YamlError(_syntax_message(str(error.problem or error.context)), mark) from error
    except yaml.YAMLError as error:
        raise YamlError(f"not valid YAML: {str(error).splitlines()[0]}", start) from error


_CONFLICT_MARKER = re.compile(r"^(<<<<<<<|>>>>>>>)( .*)?\r?$", re.MULTILINE)


def _refuse_conflict_markers(text: str, file: str) -> None:
    marker = _CONFLICT_MARKER.search(text)
    if marker:
        mark = Mark(file, text.count("\n", 0, marker.start()) + 1, 1)
        raise YamlError("this file has merge-conflict markers; resolve the conflict", mark)


def _syntax_message(problem: str) -> str:
    """Return the parser's message with a hint about the likely place."""
    if "\\t" in problem or "tab character" in problem:
        return "not valid YAML: found a tab; indent with spaces"
    return f"not valid YAML: {problem}; check the brackets, quotes and indentation here and just above"


class _Builder:
    """Builds nodes from libyaml's events, bounded in depth and number."""

    def __init__(self, text: str, file: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._file = file
        self._count = 0
        self._has_removals = False

    def document(self) -> Root:
        """Return the only document."""
        next(self._events)  # stream start
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            raise YamlError(
                "the file is empty; a manifest has apiVersion, kind, metadata and spec",
                Mark(self._file, 1, 1),
            )
        root = self._node(next(self._events), 0)
        next(self._events)  # document end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise YamlError(
                "a second document begins here; a file holds one, so remove the ---", self._mark(event)
            )
        return Root(root.value, root.mark, self._has_removals)

    def _node(self, event: Any, depth: int) -> Node:
        mark = self._mark(event)
        self._count += 1
        if isinstance(event, yaml.AliasEvent):
            raise YamlError("YAML aliases (*name) are not allowed; write the value out", mark)
        if self._count > MAX_NODES:
            raise YamlError(f"the file has more than {MAX_NODES} values; make it smaller", mark)
        if depth > MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep; make it flatter", mark)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(self._mapping(depth), mark)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._sequence(depth), mark)
        value = _scalar(event, mark)
        if value is None or value == REMOVED[1]:
            self._has_removals = True
        return Node(value, mark)

    def _mapping(self, depth: int) -> dict[str, Node]:
        result: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            mark = self._mark(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise YamlError("a key must be a plain string", mark)
            if event.value in result:
                first = result[event.value].mark.line
                raise YamlError(f"{event.value} is written twice, first in line {first}; keep one", mark)
            value = self._node(next(self._events), depth + 1)
            result[event.value] = Node(value.value, mark)  # a problem is shown at the key
        return result

    def _sequence(self, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return tuple(items)

    def _mark(self, event: Any) -> Mark:
        return Mark(self._file, event.start_mark.line + 1, event.start_mark.column + 1)


_QUOTED = ("'", '"', "|", ">")
_NULL = re.compile(r"(~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]{1,100}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")


class WrittenInt(int):
    """An integer with its text in the file, which Python would write differently, such as 007."""

    text: str


class WrittenFloat(float):
    """A float with its text in the file, which Python would write differently, such as 1.30."""

    text: str


def _number(text: str) -> int | float:
    number: int | float = int(text) if _INT.match(text) else float(text)
    if str(number) == text:
        return number
    written = WrittenInt(number) if isinstance(number, int) else WrittenFloat(number)
    written.text = text
    return written


def _scalar(event: Any, mark: Mark) -> str | int | float | bool | None:
    """Return a scalar by the YAML 1.2 core schema; explicit tags other than !!str are refused."""
    text: str = event.value
    if event.tag is not None and not event.implicit[0] and not event.implicit[1]:
        if event.tag == "tag:yaml.org,2002:str":
            return text
        raise YamlError(f"the YAML tag {event.tag} is not allowed; write the value itself", mark)
    if event.style in _QUOTED:  # quoted or a block: always a string
        return text
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    return _number(text) if _INT.match(text) or _FLOAT.match(text) else text


_NESTED = (dict, tuple)
REMOVED = ("$patch", "delete")
"""An item with this entry removes the item of the same name from the list, as in Kubernetes."""


def merge(base: Node, over: Node) -> Node:
    """Merge ``over`` over ``base``: objects merge, lists of named items merge by name, other values replace.

    A ``null`` and a ``$patch: delete`` remove what the base has. Both stay in the result until
    ``without_nulls``, so that a further layer inherits nothing there. Layers are merged from the lowest
    upwards.
    """
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        merged = dict(base.value)
        for key, node in over.value.items():
            nested = isinstance(node.value, _NESTED) and key in merged
            merged[key] = merge(merged[key], node) if nested else node
        return Node(merged, over.mark)
    if not isinstance(over.value, tuple):
        return over
    above, merged = by_name(over), by_name(base)
    if above and merged:
        for name, item in above.items():
            below = merged.get(name)
            merged[name] = item if below is None or removed(below) else merge(below, item)
        return Node(tuple(merged.values()), over.mark)
    return over


def by_name(node: Node) -> dict[str, Node]:
    """Return the items of a list of objects with unique names; {} for any other value."""
    if not isinstance(node.value, tuple):
        return {}
    items: dict[str, Node] = {}
    for item in node.value:
        named = item.value.get("name") if isinstance(item.value, dict) else None
        if named is None or not isinstance(named.value, str) or named.value in items:
            return {}
        items[named.value] = item
    return items


def removed(node: Node) -> bool:
    """Return whether an item of a list removes the item of the same name."""
    entry = node.value.get(REMOVED[0]) if isinstance(node.value, dict) else None
    return entry is not None and entry.value == REMOVED[1]


def without_nulls(node: Node) -> Node:
    """Remove entries that are null, and list items with ``$patch: delete``."""
    if isinstance(node.value, dict):
        return Node({k: without_nulls(n) for k, n in node.value.items() if n.value is not None}, node.mark)
    if isinstance(node.value, tuple):
        return Node(tuple(without_nulls(n) for n in node.value if not removed(n)), node.mark)
    return node


def without_removed(node: Node) -> Node:
    """Remove list items with ``$patch: delete`` but not nulls, so that items have validation's numbers."""
    if isinstance(node.value, dict):
        return Node({key: without_removed(inner) for key, inner in node.value.items()}, node.mark)
    if isinstance(node.value, tuple):
        return Node(tuple(without_removed(n) for n in node.value if not removed(n)), node.mark)
    return node


def plain_value(node: Node, fill: Callable[[str], str], finished: Mapping[int, Any]) -> Any:
    """Return the value without places, nulls and removed items, with its strings filled in.

    ``finished`` has values to use unchanged, by the id of their node.
    """
    value = node.value
    if isinstance(value, str):
        return fill(value) if "{" in value else value
    if not isinstance(value, _NESTED):
        return value
    known = finished.get(id(node))
    if known is not None:
        return known
    if isinstance(value, tuple):
        return [plain_value(item, fill, finished) for item in value if not removed(item)]
    plain: dict[str, Any] = {}
    for key, inner in value.items():
        below = inner.value
        if isinstance(below, str):  # as above, without a call where possible: this loop is the hot path
            plain[key] = fill(below) if "{" in below else below
        elif isinstance(below, _NESTED):
            known = finished.get(id(inner))
            plain[key] = plain_value(inner, fill, finished) if known is None else known
        elif below is not None:
            plain[key] = below
    return plain


def texts(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every string below a node, with its path."""
    if isinstance(node.value, str):
        yield path, node.value
    elif isinstance(node.value, dict | tuple):
        inner = node.value.items() if isinstance(node.value, dict) else enumerate(node.value)
        for step, item in inner:
            yield from texts(item, (*path, step))
