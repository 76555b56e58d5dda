"""The fields of a manifest as the reference lists them, from the JSON Schemas and the effects of changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cli.schemas import NULL, Schema
from shared.azure.changes.field_effects import Effect, FieldEffect, Way
from shared.azure.changes.writes import field_effect

_CHANGES = {
    "class": "as the fields that it sets",
    "environment": "as the fields that it sets",
    "nodePools[].name": "none: another name is another node pool",
    "maintenanceWindows[].name": "none: another name is another window",
    "policies[].name": "another name is another assignment",
    "policies[].definition": "another assignment; the former one is removed after it",
}


@dataclass(frozen=True)
class Field:
    """One field: its path and type, "required" or its default, and its meaning."""

    path: str
    value: str
    meaning: str
    default: str = ""


def fields(schema: Schema, parts: Mapping[str, Schema], path: str) -> Iterator[Field]:
    """Yield every field of a model, and those below it."""
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in schema.get("required", ()) else ""
        yield from _field(path + name, field, parts, default)


def _field(path: str, field: Schema, parts: Mapping[str, Schema], default: str) -> Iterator[Field]:
    options = [option for option in field.get("anyOf", ()) if option != NULL]
    whole = {**options[0], **field} if len(options) == 1 else field
    name, below = _below(path, whole)
    part = parts.get(name, {})
    meaning = str(field.get("description") or part.get("description", ""))
    if name == "Switch":
        yield Field(f"{below}.enabled", "boolean", meaning, default)
        return
    if "default" in whole:
        default = f"`{_plain(whole['default'])}`"
    yield Field(path, _value(whole), meaning, default)
    yield from fields(part, parts, f"{below}.")


def _below(path: str, field: Schema) -> tuple[str, str]:
    """Return the model of a field or of its items, "" for none, and the path of one."""
    if "$ref" in field:
        return _model(field), path
    for key, more in (("items", "[]"), ("additionalProperties", ".<name>")):
        inner = field.get(key)
        if isinstance(inner, dict) and "$ref" in inner and _model(inner) != "JsonValue":
            return _model(inner), path + more
    return "", path


def _model(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _value(field: Schema) -> str:
    """Return the type of a field, with its bounds."""
    if "$ref" in field:
        return "object"
    if "const" in field:
        return f"`{_plain(field['const'])}`"
    if "enum" in field:
        return _either(f"`{_plain(value)}`" for value in field["enum"])
    kind, rule = field.get("type", ""), str(field.get("rule", ""))
    if kind == "array":
        return f"list of {_items(field['items'])}{_many(field)}"
    if kind == "object":
        return f"map of strings: {rule}" if rule else f"map{_map(field)}"
    if kind == "string":
        return f"string: {rule}" if rule else f"string{_length(field)}"
    names = {"integer": "integer", "number": "number", "boolean": "true or false"}
    return names.get(kind, "any") + _range(field)


def _items(items: Schema) -> str:
    if "$ref" in items:
        return "objects"
    return re.sub(r"^(string|integer)\b", r"\1s", _value(items))


def _map(field: Schema) -> str:
    inner = field.get("additionalProperties")
    if not isinstance(inner, dict) or "$ref" in inner:
        return " of objects" if _below("", field)[0] else ""
    return f" of {_items(inner)}"


def _range(field: Schema) -> str:
    low, high, step = (field.get(key) for key in ("minimum", "maximum", "multipleOf"))
    bounds = f" from {low} to {high}" if high is not None else f", {low} or more" if low is not None else ""
    bounds = f", always {low}" if low is not None and low == high else bounds
    return bounds + (f", a multiple of {step}" if step else "")


def _length(field: Schema) -> str:
    return f" of up to {field['maxLength']} characters" if field.get("maxLength", 4096) < 4096 else ""


def _many(field: Schema) -> str:
    low, high = field.get("minItems", 0), field.get("maxItems")
    if high is None:
        return f"; at least {low}" if low else ""
    return f"; exactly {low}" if low == high else f"; {low} to {high}" if low else f"; up to {high}"


def _either(values: Iterable[str]) -> str:
    *most, last = values
    return f"{', '.join(most)} or {last}" if most else last


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def change(field: Field) -> str:
    """Return the effect of changing a field; an object has one for each of its fields."""
    if field.path in _CHANGES:
        return _CHANGES[field.path]
    if field.value.endswith("object"):
        return ""
    pool = field.path.startswith("nodePools[].")
    plain = re.sub(r"\[\]|\.<name>", "", field.path)
    entry = field_effect(plain.replace("nodePools.", "nodePools[].", 1) if pool else plain)
    if entry is None:
        return Effect.IN_PLACE.value
    spelled = {value.lower(): value for value in re.findall(r"`([^`]+)`", field.value)}
    return f"{entry.effect.value}{_ways(entry, spelled)}"


def _ways(entry: FieldEffect, spelled: Mapping[str, str]) -> str:
    """Return the changes that have another effect, those with the same effect and conditions together."""
    together: dict[tuple[Effect, str], list[str]] = {}
    for way in entry.ways:
        only = ", ".join(condition.text for condition in way.conditions)
        together.setdefault((way.effect, only), []).append(_values(way, spelled))
    text = ""
    for (effect, only), values in together.items():
        shown = "; ".join(filter(None, values))
        text += f"; {effect.value}{f' ({only})' if only else ''}{f': {shown}' if shown else ''}"
    if entry.reimages_from:
        version = ".".join(map(str, entry.reimages_from))
        text += f"; from Kubernetes {version}, nodes are reimaged"
    return text


def _values(way: Way, spelled: Mapping[str, str]) -> str:
    names = {"-": "nothing", "*": "any value", **{value: f"`{text}`" for value, text in spelled.items()}}

    def shown(values: str) -> str:
        listed = [names.get(value, f"`{value}`") for value in values.split()]
        return _either(sorted(listed, key="nothing".__eq__))

    return "" if way.old == way.new == "*" else f"{shown(way.old)} to {shown(way.new)}"
