"""``{name}``, ``{environment}``, ``{class}`` and ``{location}`` in a cluster's texts.

Nothing else in braces is touched, and what was filled in is not looked at again. Keys are never filled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shared.fleet.resolve.problems import Problem, problem_in
from shared.fleet.resolve.yaml_tree import Node, texts

PLACEHOLDER = re.compile(r"\{(name|environment|class|location)\}")


class Filler:
    """Fills texts in; ``lacks`` tells whether one named what the cluster does not have."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.lacks = False

    def __call__(self, text: str) -> str:
        """Return the text with its placeholders filled in."""
        return PLACEHOLDER.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        value = self._values.get(found[1])
        if not value:
            self.lacks = True
            return found[0]
        return value

    def problems(self, node: Node) -> Iterator[Problem]:
        """Yield a problem for every text that names what the cluster does not have."""
        for path, text in texts(node):
            for name in dict.fromkeys(PLACEHOLDER.findall(text)):
                if not self._values.get(name):
                    message = f"uses {{{name}}}, but the cluster has no {name}; add spec.{name} to it"
                    yield problem_in(node, path, message)


def has_placeholder(node: Node) -> bool:
    """Tell whether any text below a node has a placeholder."""
    return any(PLACEHOLDER.search(text) for _, text in texts(node))
