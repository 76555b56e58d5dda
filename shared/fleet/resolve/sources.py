"""Where a value comes from: the file and line for a path such as ``spec.nodePools[system].count``."""

from __future__ import annotations

from shared.fleet.resolve.yaml_tree import Node


def source_of(root: Node, path: str) -> str:
    """Return "file:line" of the value at a path, or of the nearest one above it.

    A key may have dots in it (``spec.tags.cost.center``): the longest key that fits is taken.
    """
    node, rest = root, path
    while rest:
        step = _item(node, rest) if rest.startswith("[") else _entry(node, rest)
        if step is None:
            break
        node, rest = step
    return f"{node.mark.file}:{node.mark.line}"


def _item(node: Node, rest: str) -> tuple[Node, str] | None:
    name, _, after = rest[1:].partition("]")
    found = node.child(name) or (node.child(int(name)) if name.isdecimal() else None)
    return (found, after.removeprefix(".")) if found is not None else None


def _entry(node: Node, rest: str) -> tuple[Node, str] | None:
    keys = node.value if isinstance(node.value, dict) else ()
    fitting = [key for key in keys if rest == key or rest.startswith((f"{key}.", f"{key}["))]
    if not fitting:
        return None
    key = max(fitting, key=len)
    return node.value[key], rest[len(key) :].removeprefix(".")
