"""What a layer removes must exist: a ``null`` or ``$patch: delete`` that matches nothing is a problem.

One layer below with the name is enough, even if another layer has removed it since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shared.fleet.resolve.problems import Path, Problem, described, field_of, nearest, problem_at
from shared.fleet.yaml_tree.merging import removed
from shared.fleet.yaml_tree.nodes import Node, by_name


class LayersBelow:
    """The names that the layers below have at each path; each node is looked at once for all removals."""

    def __init__(self, layers: Sequence[Node]) -> None:
        self.any = bool(layers)
        self._children: dict[Path, Mapping[str, list[Node]]] = {(): _by_step(layers)}

    def at(self, path: Path) -> Mapping[str, list[Node]]:
        """Return the entries of the objects, and the named items of the lists, at a path."""
        if path not in self._children:
            self._children[path] = _by_step(self.at(path[:-1]).get(str(path[-1]), ()))
        return self._children[path]


def _by_step(nodes: Sequence[Node]) -> Mapping[str, list[Node]]:
    steps: dict[str, list[Node]] = {}
    for node in nodes:
        for name, inner in (node.value if isinstance(node.value, dict) else by_name(node)).items():
            steps.setdefault(name, []).append(inner)
    return steps


def unmatched_removals(layer: Node, below: LayersBelow, at: Path, root: Node) -> list[Problem]:
    """Return a problem for each removal of a name that no layer below has.

    ``at`` is where the layer is in its file, whose root is ``root``.
    """
    unmatched = (
        (node.mark, path) for path, node in _removals(layer, ()) if str(path[-1]) not in below.at(path[:-1])
    )
    return described(
        unmatched, lambda mark, path: problem_at(mark, field_of((*at, *path), root), _message(path, below))
    )


def _message(path: Path, below: LayersBelow) -> str:
    name = str(path[-1])
    near = nearest(name, below.at(path[:-1]))
    hint = f"did you mean {near}?" if near else "remove this line"
    reason = f"no layer below has {name}" if below.any else "fleet.yaml is the lowest layer"
    return f"there is nothing to remove: {reason}; {hint}"


def _removals(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    """Yield the path and node of every removal; items of lists have their name as a step."""
    value = node.value
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner.value is None:
                yield (*path, key), inner
            elif isinstance(inner.value, dict | tuple):
                yield from _removals(inner, (*path, key))
    else:
        for name, item in by_name(node).items():
            if removed(item):
                yield (*path, name), item
            else:
                yield from _removals(item, (*path, name))
