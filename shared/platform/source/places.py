"""Where an object, and a field of it, is written in the files of a platform.

What Flux applies was built from files: a build adds prefixes, namespaces and patches. So an object is the
document of its file that has its kind and its name, or one that a build may have derived its name from; a
field that is not there has the place of the nearest one above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from shared.language.resolve.problems import Path
from shared.language.yaml.nodes import Mark, Node
from shared.platform.inventory import ObjectId
from shared.platform.source.documents import UnreadableFile, documents, field_of, manifests


def place_of(content: bytes, file: str, of: ObjectId | None, path: Path) -> Mark:
    """Return the place of a field of an object in its file; ``of`` is None for a file of one document."""
    node = best_document(content, of)
    if node is None:
        return Mark(file, 1, 1)
    place = node.find(path).mark
    return Mark(file, place.line, place.column)


def place_of_text(content: bytes, file: str, text: str) -> Mark:
    """Return the first place of a text that substitution reads, such as ``${name``, not of ``$${name``."""
    found = next(places_in_text(content, re.compile(re.escape(text.encode()))), None)
    if found is None:
        return Mark(file, 1, 1)
    line = content.count(b"\n", 0, found.start())
    column = found.start() - (content.rfind(b"\n", 0, found.start()) + 1)
    return Mark(file, line + 1, column + 1)


def places_in_text(content: bytes, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    """Yield what a pattern finds in a file, but nothing behind another ``$``."""
    for found in pattern.finditer(content):
        if content[found.start() - 1 : found.start()] != b"$":
            yield found


def best_document(content: bytes, of: ObjectId | None) -> Node | None:
    """Return the document that an object was probably built from, None where there is none like it."""
    if of is not None:
        known = _by_name(content)
        found = known.get((of.kind, of.name, of.namespace)) or known.get((of.kind, of.name, None))
        if found is not None:
            return found
    ranked = [(_fitness(node, of), node) for node in objects_of(content)]
    best = max(ranked, key=lambda pair: pair[0], default=(0, None))
    return best[1] if best[0] else None


def objects_of(content: bytes) -> Sequence[Node]:
    """Return the objects in a file, none of one that cannot be read."""
    try:
        return [node for document in documents(content) for node in manifests(document)]
    except UnreadableFile:
        return ()


@lru_cache(maxsize=64)
def _by_name(content: bytes) -> Mapping[tuple[str, str, str | None], Node]:
    """Return the objects in a file by kind, name and namespace; None stands for any namespace."""
    found: dict[tuple[str, str, str | None], Node] = {}
    for node in objects_of(content):
        kind, name = field_of(node, "kind"), field_of(node, "metadata", "name")
        for namespace in (field_of(node, "metadata", "namespace"), None):
            found.setdefault((kind, name, namespace), node)
    return found


def _fitness(document: Node, of: ObjectId | None) -> int:
    """Return how well a document fits an object: 0 where it is another one."""
    if of is None:
        return 1
    kind, name = field_of(document, "kind"), field_of(document, "metadata", "name")
    if kind != of.kind:
        return 1 if kind in ("Kustomization", "") else 0  # a generator, or a patch
    if name == of.name:
        return 5 if field_of(document, "metadata", "namespace") == of.namespace else 4
    return 3 if name and name in of.name else 2
