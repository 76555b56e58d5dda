"""YAML values with their places: each has the ``Mark`` of the file that it comes from, also after merging."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from shared.frozen import dataclass


class Mark(NamedTuple):
    """A place in a file; line and column count from 1. Every value has one, and a tuple is created fast."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Items(tuple["Node", ...]):
    """The items of a list. Lookups by name take constant time: a file may have thousands of items."""

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The items by name when each is an object with a name of its own; {} for any other list."""
        return self._first if len(self._first) == len(self) else {}

    @cached_property
    def _first(self) -> Mapping[str, Node]:
        first: dict[str, Node] = {}
        for item in self:
            if item.name is not None:
                first.setdefault(item.name, item)
        return first

    def named(self, name: str) -> Node | None:
        """Return the first item of this name."""
        return self._first.get(name)


@dataclass(frozen=True, slots=True)
class Node:
    """A dict of nodes, ``Items``, or a scalar, and its place, which for an entry is its key's."""

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
        if isinstance(self.value, Items):
            if isinstance(step, str):
                return self.value.named(step)
            return self.value[step] if step < len(self.value) else None
        return None

    @property
    def name(self) -> str | None:
        """The ``name`` of an object, when that is a string."""
        named = self.value.get("name") if isinstance(self.value, dict) else None
        return named.value if named is not None and isinstance(named.value, str) else None


@dataclass(frozen=True, slots=True)
class Root(Node):
    """A whole file with ``size`` nodes; ``has_removals``: a value in it is null or ``$patch: delete``."""

    has_removals: bool
    size: int


def by_name(node: Node) -> Mapping[str, Node]:
    """Return the items of a list of objects with unique names; {} for any other value."""
    return node.value.by_name if isinstance(node.value, Items) else {}


def size_of(node: Node) -> int:
    """Return how many nodes a value has, itself included."""
    if isinstance(node.value, dict):
        return 1 + sum(map(size_of, node.value.values()))
    return 1 + sum(map(size_of, node.value)) if isinstance(node.value, Items) else 1


def texts(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every string below a node, with its path."""
    if isinstance(node.value, str):
        yield path, node.value
    elif isinstance(node.value, dict | tuple):
        inner = node.value.items() if isinstance(node.value, dict) else enumerate(node.value)
        for step, item in inner:
            yield from texts(item, (*path, step))


_NESTED = (dict, Items)
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
    if not isinstance(over.value, Items):
        return over
    above, below = by_name(over), by_name(base)
    if not (above and below):
        return over
    items = dict(below)
    for name, item in above.items():
        lower = below.get(name)
        items[name] = item if lower is None or removed(lower) else merge(lower, item)
    return Node(Items(items.values()), over.mark)


def removed(node: Node) -> bool:
    """Return whether an item of a list removes the item of the same name."""
    entry = node.value.get(REMOVED[0]) if isinstance(node.value, dict) else None
    return entry is not None and entry.value == REMOVED[1]


def without_nulls(node: Node) -> Node:
    """Remove entries that are null, and list items with ``$patch: delete``."""
    if isinstance(node.value, dict):
        return Node({k: without_nulls(n) for k, n in node.value.items() if n.value is not None}, node.mark)
    if isinstance(node.value, Items):
        return Node(Items(without_nulls(n) for n in node.value if not removed(n)), node.mark)
    return node


def without_removed(node: Node) -> Node:
    """Remove list items with ``$patch: delete`` but not nulls, so that items have validation's numbers."""
    if isinstance(node.value, dict):
        return Node({key: without_removed(inner) for key, inner in node.value.items()}, node.mark)
    if isinstance(node.value, Items):
        return Node(Items(without_removed(n) for n in node.value if not removed(n)), node.mark)
    return node


def plain_value(node: Node, fill: Callable[[str], str]) -> Any:
    """Return the value without places, nulls and removed items, with its strings filled in."""
    value = node.value
    if isinstance(value, str):
        return fill(value) if "{" in value else value
    if isinstance(value, Items):
        return [plain_value(item, fill) for item in value if not removed(item)]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    for key, inner in value.items():
        below = inner.value
        if isinstance(below, str):  # as above, without a call where possible: this loop is the hot path
            plain[key] = fill(below) if "{" in below else below
        elif isinstance(below, _NESTED):
            plain[key] = plain_value(inner, fill)
        elif below is not None:
            plain[key] = below
    return plain
