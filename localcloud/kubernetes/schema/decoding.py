"""How the API server decodes an object of a built-in kind: unknown fields, and values of a wrong type.

It drops unknown fields, and reports them as the request asks (``fieldValidation``); a wrong type it refuses,
in the terms of Go's ``encoding/json``. Quantities come out in their canonical form.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from localcloud.kubernetes.schema.definitions import Type
from localcloud.kubernetes.schema.quantities import PATTERN, canonical

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class WrongType(Exception):
    """A value that cannot be decoded; the text is Go's."""


def decoded(kind: Type, value: Any, unknown: list[str], path: str = "", owner: str = "") -> Any:
    """Return the value with its known fields; add the paths of the others to ``unknown``; raise WrongType.

    ``owner`` is the Go type of the innermost object around the value.
    """
    if kind.sort == "any" or value is None:
        return value
    if kind.sort == "object":
        return _object(kind, value, unknown, path, owner)
    if kind.sort == "map":
        _expect(kind, isinstance(value, dict), value, path, owner)
        return {
            name: _zero(kind.item)
            if inner is None
            else decoded(kind.item, inner, unknown, f"{path}[{name}]", owner)
            for name, inner in value.items()
        }
    if kind.sort == "list":
        _expect(kind, isinstance(value, list), value, path, owner)
        return [
            decoded(kind.item, inner, unknown, f"{path}[{number}]", owner)
            for number, inner in enumerate(value)
        ]
    return _scalar(kind, value, path, owner)


def _object(kind: Type, value: Any, unknown: list[str], path: str, owner: str) -> dict[str, Any]:
    _expect(kind, isinstance(value, dict), value, path, owner)
    here_owner = kind.name.rpartition(".")[2]
    known: dict[str, Any] = {}
    for name, inner in value.items():
        below = kind.child(name)
        here = f"{path}.{name}" if path else name
        if below is None:
            unknown.append(here)
        elif inner is not None:
            known[name] = decoded(below, inner, unknown, here, here_owner)
    return known


def _zero(kind: Type) -> Any:
    return {"string": "", "boolean": False, "integer": 0, "number": 0}.get(kind.sort)


def _scalar(kind: Type, value: Any, path: str, owner: str) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind.sort == "quantity":
        found = canonical(str(value)) if number or isinstance(value, str) else None
        if found is None and re.match(PATTERN, str(value)) and not isinstance(value, bool):
            raise WrongType("unable to parse quantity's suffix")
        if found is None:
            raise WrongType(f"quantities must match the regular expression '{PATTERN}'")
        return found
    if kind.sort == "int-or-string":
        _expect(kind, isinstance(value, str | int) and not isinstance(value, bool), value, path, owner)
    elif kind.sort == "integer":
        _expect(kind, number and value == int(value), value, path, owner)
    elif kind.sort == "number":
        _expect(kind, number, value, path, owner)
    elif kind.sort == "boolean":
        _expect(kind, isinstance(value, bool), value, path, owner)
    else:
        _expect(kind, isinstance(value, str), value, path, owner)
        _text(kind, value)
    return value


def _text(kind: Type, value: str) -> None:
    if kind.raw.get("format") == "date-time" and not TIME.fullmatch(value):
        raise WrongType(
            f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'
        )
    if kind.raw.get("format") == "byte":
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise WrongType(f"illegal base64 data at input byte {_first_illegal(value)}") from error


def _first_illegal(value: str) -> int:
    found = re.search(r"[^A-Za-z0-9+/=]", value)
    return found.start() if found else max(0, len(value) - len(value) % 4)


def _expect(kind: Type, fits: bool, value: Any, path: str, owner: str) -> None:
    if fits:
        return
    if isinstance(value, bool):
        got = "bool"
    elif isinstance(value, dict):
        got = "object"
    else:
        got = "string" if isinstance(value, str) else "array" if isinstance(value, list) else "number"
    field = f"{owner}." + re.sub(r"\[.*?\]", "", path)
    raise WrongType(f"json: cannot unmarshal {got} into Go struct field {field} of type {_go_type(kind)}")


def _go_type(kind: Type) -> str:
    if kind.sort in ("integer", "number"):
        return str(kind.raw.get("format") or "int64").replace("double", "float64")
    if kind.sort in ("list", "map"):
        return ("[]" if kind.sort == "list" else "map[string]") + _go_type(kind.item)
    if kind.sort == "object":
        package, _, name = kind.name.rpartition(".")
        return f"{package.rpartition('.')[2]}.{name}"
    return {"string": "string", "boolean": "bool"}.get(kind.sort, kind.sort)
