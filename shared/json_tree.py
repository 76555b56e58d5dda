"""JSON values: their types, their digest, and how two of them are compared.

``children`` pairs the values directly below two others; ``differing`` descends to the values that differ. An
absent value is None.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]
Path = tuple[str, ...]
Children = list[tuple[str, Any, Any]]
"""The step to each child and its value on both sides; the step to an item of a list is ``[name]``."""


def path_text(path: Iterable[str | int]) -> str:
    """Return a path as a message shows it, such as ``nodePools[system].count``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += step if not text or step.startswith("[") else f".{step}"
    return text


def is_named_list(value: Any) -> bool:
    """Return whether a value is a list of objects that all have a name."""
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)


def children(left: Any, right: Any) -> Children | None:
    """Pair the entries of two objects by key, or the items of two lists by name, those of the left first.

    None for any other two values: they are compared as a whole.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return [(key, left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right])]
    if is_named_list(left) and is_named_list(right):
        items, others = ({item["name"]: item for item in side} for side in (left, right))
        names = dict.fromkeys([*items, *others])
        return [(f"[{name}]", items.get(name), others.get(name)) for name in names]
    return None


def differing(
    left: Any,
    right: Any,
    *,
    below: Callable[[Path, Any, Any], Children | None],
    equal: Callable[[Path, Any, Any], bool],
    path: Path = (),
) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the path and both sides of every pair that has no children ``below`` and is not ``equal``."""
    pairs = below(path, left, right)
    if pairs is not None:
        for step, pair, other in pairs:
            yield from differing(pair, other, below=below, equal=equal, path=(*path, step))
    elif not equal(path, left, right):
        yield path, left, right


def merged(base: Json, over: Json) -> dict[str, Any]:
    """Return ``base`` with ``over`` merged over it; lists and scalars of ``over`` replace."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        nested = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merged(below or {}, value) if nested else value
    return result


def digest_of(document: Any) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over canonical JSON."""
    return hashlib.sha256(_CANONICAL.encode(document).encode()).hexdigest()[:16]


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
