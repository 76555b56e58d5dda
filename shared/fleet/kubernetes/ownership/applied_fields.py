"""Whether an object shows by itself that applying its manifest again would change nothing.

It does when the manager Roadstead owns exactly the fields of the manifest (``metadata.managedFields``), and
the object has their values. Whoever changes a value takes the field from us
(kubernetes.io/docs/reference/using-api/server-side-apply). Of an object that the API server stores in other
words, such as the quantity "1000m" as "1", only a dry run can show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.ownership.field_ownership import Fields, our_entry

_IDENTITY = ("apiVersion", "kind", "metadata")
_NAMES = ("name", "namespace")
"""What identifies an object belongs to no manager."""


def is_held(manifest: Json, live: Json) -> bool:
    """Return True when an apply of the manifest would change nothing of the object; False when it may."""
    entry = our_entry(live)
    if entry is None or entry.get("apiVersion") != manifest["apiVersion"]:
        return False
    wanted = {key: value for key, value in manifest.items() if key not in _IDENTITY}
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _NAMES}
    if metadata:
        wanted["metadata"] = metadata
    return _holds(live, wanted, entry.get("fieldsV1") or {})


def _holds(live: Any, wanted: Any, fields: Fields) -> bool:
    """Return whether we own all of a value and nothing below it that we do not want, and it is there."""
    below = fields.keys() - {"."}
    if not below:  # owned as a whole: a scalar, or what Kubernetes never merges
        return _equal(live, wanted)
    if isinstance(wanted, dict) and isinstance(live, dict):
        return below == {f"f:{name}" for name in wanted} and all(
            name in live and _holds(live[name], value, fields[f"f:{name}"]) for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(below) == len(wanted) and _items_hold(live, wanted, fields)
    return False


def _items_hold(live: Sequence[Any], wanted: Sequence[Any], fields: Fields) -> bool:
    """Return whether each item that we own is one that we want, and the object has it, in our order."""
    found: list[tuple[int, int]] = []
    for element, below in fields.items():
        if element == ".":
            continue
        ours, theirs = list(_places(wanted, element)), list(_places(live, element))
        if len(ours) != 1 or len(theirs) != 1 or not _holds(live[theirs[0]], wanted[ours[0]], below):
            return False
        found.append((ours[0], theirs[0]))
    there = [place for _, place in sorted(found)]
    return len({place for place, _ in found}) == len(wanted) and there == sorted(there)


def _places(items: Sequence[Any], element: str) -> Iterator[int]:
    """Yield where a list has an element: 'k:{"name":"x"}' by its keys, 'v:"x"' by its value."""
    sort, _, text = element.partition(":")
    key = json.loads(text)
    for place, item in enumerate(items):
        if sort == "v" and _equal(item, key):
            yield place
        if sort == "k" and isinstance(item, Mapping) and key.items() <= item.items():
            yield place


def _equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal in JSON, where true is not 1."""
    if not isinstance(one, dict | list):
        return type(one) is type(other) and bool(one == other)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
