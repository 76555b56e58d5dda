"""``{name}``, ``{environment}``, ``{class}`` and ``{location}`` in the strings of a cluster's manifest.

A name in braces that nearly equals one of these is a problem; all other braces are left unchanged. Values
that were filled in are not searched again, and keys are never filled in.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from shared.language.resolve.problems import Path, Problem, described, field_of, problem_at, problem_in
from shared.language.yaml.nodes import Node, texts

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
        """Return a problem for every placeholder that is misspelt or has no value in the cluster.

        ``never`` are those that no cluster of its provider has.
        """
        wrong = (
            (node.find(path).mark, (path, name))
            for path, text in texts(node)
            for name in dict.fromkeys(_BRACES.findall(text))
            if not self._values.get(name) and _meant(name)
        )
        return described(wrong, lambda _, one: problem_in(node, one[0], _message(one[1], never)))


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
    return described(wrong, lambda mark, one: problem_at(mark, field_of(one[0], root), _message(one[1])))


def has_placeholder(node: Node) -> bool:
    """Return whether any string below a node has a placeholder."""
    return any(PLACEHOLDER.search(text) for _, text in texts(node))


@lru_cache(maxsize=256)
def _meant(name: str) -> str:
    """Return the placeholder that a name in braces equals or nearly equals, "" for other text."""
    return next(iter(difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.75)), "")


def _message(name: str, never: Collection[str] = ()) -> str:
    if name in never:
        return (
            f"uses {{{name}}}, which a cluster with provider: existing does not have; write the text itself"
        )
    if name in NAMES:
        return f"uses {{{name}}}, but the cluster has no {name}; add spec.{name} to it"
    return f"there is no placeholder {{{name}}}; did you mean {{{_meant(name)}}}?"
