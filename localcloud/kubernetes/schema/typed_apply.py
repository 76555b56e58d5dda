"""What server-side apply refuses in a configuration before it merges anything.

The rules and texts are those of ``sigs.k8s.io/structured-merge-diff`` (``typed/validate.go``), the library
that the API server uses: every field must be declared, and every value must have the sort of its type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from localcloud.kubernetes.schema.definitions import Type


def problems(kind: Type, value: Any, path: str = "") -> Iterator[str]:
    """Yield what does not fit the type, as ``.spec.colour: field not declared in schema``."""
    if value is None or kind.sort == "any":
        return
    if kind.sort in ("object", "map"):
        yield from _of_map(kind, value, path)
    elif kind.sort == "list":
        yield from _of_list(kind, value, path)
    else:
        yield from _of_scalar(kind, value, path)


def refusal(found: list[str]) -> str:
    """Return one text for the problems."""
    return found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {problem}" for problem in found)


def _of_map(kind: Type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: expected map, got &{{{_go(value)}}}"
        return
    for name, inner in value.items():
        below = kind.child(name)
        if below is None:
            yield f"{path}.{name}: field not declared in schema"
        else:
            yield from problems(below, inner, f"{path}.{name}")


def _of_list(kind: Type, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got &{{{_go(value)}}}"
        return
    seen: set[str] = set()
    for number, item in enumerate(value):
        place = f"{path}[{number}]"
        if not kind.atomic:
            key, problem = _key(kind, item)
            if problem:
                yield f"{path}: element {number}: {problem}"
                continue
            if key in seen:
                yield f"{path}: duplicate entries for key {key}"
            seen.add(key)
            place = f"{path}{key}"
        yield from problems(kind.item, item, place)


def _key(kind: Type, item: Any) -> tuple[str, str]:
    """Return an item's key as paths write it, and what is wrong with it ("" for nothing)."""
    if kind.is_set:
        return f"[={json.dumps(item)}]", ""
    if item is None:
        return "", "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "", "associative list with keys may not have non-map elements"
    parts = []
    for name, default in kind.keys.items():
        found = item.get(name, default)
        if found is None:
            return "", (
                f'associative list with keys has an element that omits key field "{name}" '
                "(and doesn't have default value)"
            )
        parts.append(f"{name}={json.dumps(found)}")
    return f"[{','.join(sorted(parts))}]", ""


def _of_scalar(kind: Type, value: Any, path: str) -> Iterator[str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind.sort in ("integer", "number") and not number:
        yield f"{path}: expected numeric (int or float), got {_go_type(value)}"
    elif kind.sort == "boolean" and not isinstance(value, bool):
        yield f"{path}: expected boolean, got &{{{_go(value)}}}"
    elif kind.sort == "string" and not isinstance(value, str):
        yield f"{path}: expected string, got &value.valueUnstructured{{Value:{_go(value)}}}"
    elif kind.sort in ("int-or-string", "quantity") and isinstance(value, dict | list):
        yield f"{path}: expected scalar, got &{{{_go(value)}}}"


def _go_type(value: Any) -> str:
    """Return the Go type of a decoded JSON value."""
    if isinstance(value, bool):
        return "bool"
    names = {
        str: "string",
        int: "int64",
        float: "float64",
        dict: "map[string]interface {}",
        list: "[]interface {}",
    }
    return names.get(type(value), "nil")


def _go(value: Any) -> str:
    """Return a decoded JSON value as Go prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        inside = " ".join(f"{name}:{_go(inner)}" for name, inner in sorted(value.items()))
        return f"map[{inside}]"
    if isinstance(value, list):
        return f"[{' '.join(_go(item) for item in value)}]"
    return "<nil>" if value is None else str(value)
