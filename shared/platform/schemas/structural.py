"""The faults of a custom object against the schema of its definition.

The API server prunes what a structural schema does not name, and refuses it in a server-side apply, which is
how Flux applies; it validates types, ``required``, ``enum`` and bounds (kubernetes.io/docs/tasks/
extend-kubernetes/custom-resources/custom-resource-definitions). Rules in CEL and most patterns are its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.language.resolve.problems import Path
from shared.platform.schemas.fields import Fault, described, not_among, unknown_field

_ENVELOPE = ("apiVersion", "kind", "metadata")
_OPEN = "x-kubernetes-preserve-unknown-fields"
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")
_DURATIONS = frozenset(
    f"^([0-9]+(\\.[0-9]+)?({units}))+$" for units in ("ms|s|m|h", "ms|s|m", "s|m|h", "ms|s|m|h)?")
)
"""The patterns that Flux's kinds have for durations; any other may take very long, or mean another thing."""
_FITS: Mapping[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
}


def faults_of(schema: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of a custom object; ``schema`` is the ``openAPIV3Schema`` of its version."""
    content = {key: value for key, value in manifest.items() if key not in (*_ENVELOPE, "status", "sops")}
    yield from _of_object(schema, content, (), embedded=True)


def _of_value(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[Fault]:
    if value is None or (isinstance(value, str) and "${" in value):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield path, f"must be an integer or a string, got {described(value)}"
        return
    kind = str(schema.get("type") or "")
    if kind in _FITS and not _fits(kind, value):
        hint = f'; write it in quotes, as "{described(value)}"' if kind == "string" and _scalar(value) else ""
        yield path, f"must be {_NAMES[kind]}, got {described(value)}{hint}"
        return
    values = schema.get("enum")
    if isinstance(values, list) and values and value not in values:
        yield path, not_among(described(value).strip('"'), values)
    if isinstance(value, Mapping):
        yield from _of_object(
            schema, value, path, embedded=bool(schema.get("x-kubernetes-embedded-resource"))
        )
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _of_value(schema.get("items") or {}, item, (*path, number))
        yield from _bounds(schema, len(value), ("minItems", "maxItems"), "items", path)
    elif isinstance(value, str):
        yield from _bounds(schema, len(value), ("minLength", "maxLength"), "characters", path)
        if schema.get("pattern") in _DURATIONS and not _DURATION.fullmatch(value):
            yield path, f"must be a duration such as 30s, 10m or 1h, got {described(value)}"
    elif not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if _scalar(least) and value < least:
            yield path, f"must be {least} or more, got {value}"
        if _scalar(most) and value > most:
            yield path, f"must be {most} or less, got {value}"


def _of_object(
    schema: Mapping[str, Any], value: Mapping[str, Any], path: Path, *, embedded: bool
) -> Iterator[Fault]:
    fields = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name in schema.get("required") or ():
        default = (fields.get(name) or {}).get("default")
        if name not in value and default is None and not (embedded and name in _ENVELOPE):
            yield path, f"{name} is missing; add it"
    for key, inner in value.items():
        below = fields.get(key)
        if below is not None:
            yield from _of_value(below, inner, (*path, str(key)))
        elif isinstance(more, Mapping):
            yield from _of_value(more, inner, (*path, str(key)))
        elif (
            fields
            and not (more or schema.get(_OPEN) or (embedded and key in _ENVELOPE))
            and inner is not None
        ):
            yield (*path, str(key)), unknown_field(str(key), fields)


def _bounds(
    schema: Mapping[str, Any], size: int, names: tuple[str, str], what: str, path: Path
) -> Iterator[Fault]:
    least, most = schema.get(names[0]), schema.get(names[1])
    if isinstance(least, int) and size < least:
        yield path, f"must have at least {least} {what}, and has {size}"
    if isinstance(most, int) and size > most:
        yield path, f"must have at most {most} {what}, and has {size}"


def _fits(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _FITS[kind]) or (
        kind == "integer" and isinstance(value, float) and value == int(value)
    )


def _scalar(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
