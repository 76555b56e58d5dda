"""Merging trees, layer over layer, and what remains of a tree once every layer is merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.language.yaml.nodes import Items, Node, by_name

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
    if isinstance(value, Items):
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
