"""What a layer removes must exist: a ``null`` or ``$patch: delete`` that matches nothing is a problem.

One layer below with the name is enough, even if another layer has removed it since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.fleet.resolve.problems import Path, Problem, field_of, nearest, problem_at
from shared.fleet.resolve.yaml_tree import Node, by_name, removed


def unmatched_removals(layer: Node, below: Sequence[Node], at: Path, root: Node) -> list[Problem]:
    """Return a problem for each removal of a name that no layer below has.

    ``at`` is where the layer is in its file, whose root is ``root``.
    """
    problems = []
    for path, node in _removals(layer, ()):
        if not any(_has(other, path) for other in below):
            name, near = str(path[-1]), nearest(str(path[-1]), _names(below, path[:-1]))
            hint = f"did you mean {near}?" if near else "remove this line"
            reason = f"no layer below has {name}" if below else "fleet.yaml is the lowest layer"
            message = f"there is nothing to remove: {reason}; {hint}"
            problems.append(problem_at(node.mark, field_of((*at, *path), root), message))
    return problems


def _removals(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    """Yield the path and node of every removal; items of lists have their name as a step."""
    value = node.value
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner.value is None:
                yield (*path, key), inner
            elif isinstance(inner.value, dict | tuple):
                yield from _removals(inner, (*path, key))
    elif isinstance(value, tuple) and by_name(node):
        for name, item in by_name(node).items():
            if removed(item):
                yield (*path, name), item
            else:
                yield from _removals(item, (*path, name))


def _has(node: Node, path: Path) -> bool:
    below: Node | None = node
    for step in path:
        below = below.child(step) if below else None
    return below is not None


def _names(nodes: Sequence[Node], path: Path) -> Iterator[str]:
    """Yield the names in the object or list at a path of each node."""
    for node in nodes:
        if _has(node, path):
            around = node.find(path)
            yield from around.value if isinstance(around.value, dict) else by_name(around)
