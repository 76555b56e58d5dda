"""Fields of a Kubernetes object as paths, and the merge of two objects along them.

A path is a tuple of elements in the notation of ``managedFields``: ``f:name`` is a field of a map,
``k:{"name":"x"}`` an item of a list that is merged by keys, ``v:"x"`` an item of a set. The type of the
object (``Type``) says which lists and maps are atomic: one field, replaced as a whole. Objects are never
changed in place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from localcloud.kubernetes.schema.definitions import ANYTHING, Type

Path = tuple[str, ...]
Fields = frozenset[Path]


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _key(kind: Type, item: Any) -> str | None:
    if kind.is_set:
        return f"v:{_compact(item)}"
    if not isinstance(item, dict):
        return None
    keys = {name: item.get(name, default) for name, default in kind.keys.items()}
    return None if None in keys.values() else "k:" + _compact(keys)


def items_by_key(kind: Type, value: Any) -> dict[str, Any] | None:
    """Return a list's items by path element, or None when the value is not a list merged by keys."""
    if not isinstance(value, list) or not value or kind.sort != "list" or kind.atomic:
        return None
    keyed = {_key(kind, item): item for item in value}
    if None in keyed or len(keyed) != len(value):
        return None
    return {str(key): item for key, item in keyed.items()}


def _below(kind: Type, element: str) -> Type:
    """Return the type of a field or an item."""
    if element.startswith("f:"):
        return kind.child(element[2:]) or ANYTHING
    return kind.item if kind.sort == "list" else ANYTHING


def _is_merged(kind: Type, value: Any) -> bool:
    return isinstance(value, dict) and not kind.atomic


def flatten(kind: Type, value: Any, path: Path = ()) -> dict[Path, Any]:
    """Return every field with its value: scalars, atomic lists and maps, empty maps, None for keyed items."""
    found: dict[Path, Any] = {}
    _flatten(kind, value, path, found)
    return found


def _flatten(kind: Type, value: Any, path: Path, found: dict[Path, Any]) -> None:
    if value and _is_merged(kind, value):
        for name, inner in value.items():
            here = (*path, f"f:{name}")
            if isinstance(inner, dict | list):
                _flatten(kind.child(name) or ANYTHING, inner, here, found)
            else:
                found[here] = inner
        return
    items = items_by_key(kind, value) if isinstance(value, list) else None
    if items is None:
        if path:
            found[path] = value
        return
    for key, item in items.items():
        found[*path, key] = None
        if isinstance(item, dict):
            _flatten(kind.item, item, (*path, key), found)


def merge(kind: Type, live: Any, wanted: Any) -> Any:
    """Return ``live`` with the fields of ``wanted`` merged over it."""
    if _is_merged(kind, live) and isinstance(wanted, dict):
        merged = dict(live)
        for name, value in wanted.items():
            merged[name] = merge(_below(kind, f"f:{name}"), live.get(name), value)
        return merged
    old, new = items_by_key(kind, live), items_by_key(kind, wanted)
    if old is None or new is None:
        return wanted
    keys = [*old, *(key for key in new if key not in old)]
    return [merge(kind.item, old.get(key), new[key]) if key in new else old[key] for key in keys]


def remove(kind: Type, value: Any, removed: Fields, retained: Fields, path: Path = ()) -> Any:
    """Return the value without the fields ``removed``.

    Maps and lists that become empty are removed too, unless they are among ``retained``.
    """
    below = frozenset(field for field in removed if field[: len(path)] == path)
    if not below:
        return value

    def remaining(children: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for element, inner in children.items():
            here = (*path, element)
            if here in below:
                continue
            left = remove(_below(kind, element), inner, below, retained, here)
            if left or left == inner or here in retained:
                yield element, left

    if _is_merged(kind, value):
        named = {f"f:{name}": inner for name, inner in value.items()}
        return {element.removeprefix("f:"): left for element, left in remaining(named)}
    items = items_by_key(kind, value)
    return value if items is None else [left for _, left in remaining(items)]


@lru_cache(2048)
def to_wire(fields: Fields) -> Mapping[str, Any]:
    """Return ``fieldsV1``; nobody changes it in place."""
    tree: dict[str, Any] = {}
    parents = {field[:end] for field in fields for end in range(1, len(field))}
    for field in sorted(fields):
        node = tree
        for element in field:
            node = node.setdefault(element, {})
        if field in parents:
            node["."] = {}
    return tree


def from_wire(tree: Mapping[str, Any], path: Path = ()) -> Fields:
    """Return the fields of ``fieldsV1``."""
    found: set[Path] = set()
    for element, inner in tree.items():
        if element == ".":
            found.add(path)
        elif inner:
            found |= from_wire(inner, (*path, element))
        else:
            found.add((*path, element))
    return frozenset(found)


def dotted(field: Path) -> str:
    """Return a field as conflict messages write it: ``.spec.containers[name="x"].image``."""
    text = ""
    for element in field:
        sort, _, rest = element.partition(":")
        if sort == "f":
            text += f".{rest}"
        elif sort == "v":
            text += f"[={rest}]"
        else:
            keys = json.loads(rest)
            text += "[" + ",".join(f"{key}={_compact(value)}" for key, value in keys.items()) + "]"
    return text
