"""Where an object, and a field of it, is written in the files of a platform.

What Flux applies was built from files: a build adds prefixes, namespaces and patches. So an object is the
document of its file that has its kind and its name, or one that a build may have made its name from; a field
that is not there has the place of the nearest one above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import yaml

from shared.language.resolve.problems import Path
from shared.language.yaml.nodes import Mark
from shared.platform.inventory import ObjectId

MAX_BYTES = 4 * 1024 * 1024
"""Of a larger file only the first line is named."""


def place_of(content: bytes, file: str, of: ObjectId | None, path: Path) -> Mark:
    """Return the place of a field of an object in its file; ``of`` is None for a file of one document."""
    best: tuple[int, yaml.Node | None] = (0, None)
    for document in _documents(content):
        fits = _fitness(document, of)
        if fits > best[0]:
            best = (fits, document)
    return Mark(file, 1, 1) if best[1] is None else _at(best[1], file, path)


def place_of_text(content: bytes, file: str, text: str) -> Mark:
    """Return the first place of a text that substitution reads, such as ``${name``, not of ``$${name``."""
    found = re.search(rb"(?<!\$)" + re.escape(text.encode()), content)
    if found is None:
        return Mark(file, 1, 1)
    line = content.count(b"\n", 0, found.start())
    column = found.start() - (content.rfind(b"\n", 0, found.start()) + 1)
    return Mark(file, line + 1, column + 1)


def documents(content: bytes) -> Sequence[Any]:
    """Return the documents of a file as plain values, none of a file that is no YAML."""
    try:
        return list(yaml.load_all(content, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return ()


@lru_cache(maxsize=8)
def _documents(content: bytes) -> Sequence[yaml.Node]:
    if len(content) > MAX_BYTES:
        return ()
    try:
        return [document for document in yaml.compose_all(content, Loader=yaml.CSafeLoader) if document]
    except (yaml.YAMLError, ValueError, RecursionError):
        return ()


def _fitness(document: yaml.Node, of: ObjectId | None) -> int:
    """Return how well a document fits an object: 0 where it is another one."""
    if of is None:
        return 1
    kind, name = _text(document, ("kind",)), _text(document, ("metadata", "name"))
    namespace = _text(document, ("metadata", "namespace"))
    if kind != of.kind:
        return 1 if kind == "Kustomization" else 0  # a generator, or a patch
    if name == of.name:
        return 5 if namespace == of.namespace else 4
    return 3 if name and name in of.name else 2


def _text(node: yaml.Node, path: Path) -> str:
    for step in path:
        below = _below(node, step)
        if below is None:
            return ""
        node = below[1]
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _at(node: yaml.Node, file: str, path: Path) -> Mark:
    start = node.start_mark
    for step in path:
        below = _below(node, step)
        if below is None:
            break
        start, node = below[0].start_mark, below[1]
    return Mark(file, start.line + 1, start.column + 1)


def _below(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node that names an entry, and its value; an item of a list names itself."""
    if isinstance(node, yaml.MappingNode):
        return next((pair for pair in node.value if pair[0].value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def places_in_text(content: bytes, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    """Yield what a pattern finds in a file, but nothing after a further ``$``."""
    for found in pattern.finditer(content):
        if content[found.start() - 1 : found.start()] != b"$":
            yield found
