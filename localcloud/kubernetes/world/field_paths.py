"""Fields of a Kubernetes object as paths, and the merge of two objects along them.

A path is a tuple of elements in the notation of ``managedFields``: ``f:name`` is a field of a map,
``k:{"name":"x"}`` an item of a list that is merged by keys, ``v:"x"`` an item of a set. All other lists
are atomic: one field, replaced as a whole. Objects are never changed in place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
Fields = frozenset[Path]

_KEYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "containers": (("name",),),
    "initContainers": (("name",),),
    "volumes": (("name",),),
    "env": (("name",),),
    "imagePullSecrets": (("name",),),
    "secrets": (("name",),),
    "volumeMounts": (("mountPath",),),
    "conditions": (("type",),),
    "addresses": (("type",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "ownerReferences": (("uid",),),
}
_SETS = ("finalizers",)
_DEFAULTS = {"protocol": "TCP"}
_OF_METADATA = ("ownerReferences", "finalizers")


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _key(field: str, item: Any) -> str | None:
    if field in _SETS:
        return f"v:{_compact(item)}"
    if not isinstance(item, Mapping):
        return None
    for keys in _KEYS.get(field, ()):
        if keys[0] in item:
            return "k:" + _compact({key: item.get(key, _DEFAULTS.get(key)) for key in keys})
    return None


def items_by_key(path: Path, value: Any, *, custom: bool) -> dict[str, Any] | None:
    """Return a list's items by path element, or None when the value is not a list merged by keys.

    ``custom``: the object is of a CRD, whose lists are atomic, but for those in its metadata.
    """
    if not isinstance(value, list) or not value or not path:
        return None
    field = path[-1].removeprefix("f:")
    if custom and (field not in _OF_METADATA or path[0] != "f:metadata"):
        return None
    keyed = {_key(field, item): item for item in value}
    if None in keyed or len(keyed) != len(value):
        return None
    return {str(key): item for key, item in keyed.items()}


def flatten(value: Any, *, custom: bool, path: Path = ()) -> dict[Path, Any]:
    """Return every field with its value: scalars, atomic lists, empty maps; a keyed item has None."""
    found: dict[Path, Any] = {}
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            found |= flatten(inner, custom=custom, path=(*path, f"f:{name}"))
        return found
    items = items_by_key(path, value, custom=custom)
    if items is None:
        return {path: value} if path else {}
    for key, item in items.items():
        found[*path, key] = None
        if isinstance(item, Mapping):
            found |= flatten(item, custom=custom, path=(*path, key))
    return found


def merge(live: Any, wanted: Any, *, custom: bool, path: Path = ()) -> Any:
    """Return ``live`` with the fields of ``wanted`` merged over it."""
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        merged = dict(live)
        for name, value in wanted.items():
            inner = (*path, f"f:{name}")
            merged[name] = merge(live.get(name), value, custom=custom, path=inner)
        return merged
    old = items_by_key(path, live, custom=custom)
    new = items_by_key(path, wanted, custom=custom)
    if old is None or new is None:
        return wanted
    keys = [*old, *(key for key in new if key not in old)]
    return [
        merge(old.get(key), new[key], custom=custom, path=(*path, key)) if key in new else old[key]
        for key in keys
    ]


def remove(value: Any, removed: Fields, retained: Fields, *, custom: bool, path: Path = ()) -> Any:
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
            left = remove(inner, below, retained, custom=custom, path=here)
            if left or left == inner or here in retained:
                yield element, left

    if isinstance(value, Mapping):
        named = {f"f:{name}": inner for name, inner in value.items()}
        return {element.removeprefix("f:"): left for element, left in remaining(named)}
    items = items_by_key(path, value, custom=custom)
    return value if items is None else [left for _, left in remaining(items)]


def to_wire(fields: Fields) -> dict[str, Any]:
    """Return ``fieldsV1``."""
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
