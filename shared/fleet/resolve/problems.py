"""What is wrong in a manifest, told with its place and what would be right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from shared.fleet.manifests.base import shown
from shared.fleet.resolve.yaml_tree import Mark, Node, by_name

Path = tuple[str | int, ...]
MANY_FIELDS = 12
"""More than that are not listed in a message."""


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake: ``file:line:column field: message``."""

    file: str
    line: int
    column: int
    field: str
    message: str

    def __str__(self) -> str:
        field = f" {self.field}" if self.field else ""
        return f"{self.file}:{self.line}:{self.column}{field}: {self.message}"


def problem_at(mark: Mark, field: str, message: str) -> Problem:
    """Return a problem at a place."""
    return Problem(mark.file, mark.line, mark.column, shown(field, 200), shown(message, 1000))


def problems_of(
    error: ValidationError, root: Node, model: type[BaseModel], *, at: Path = (), partial: bool = False
) -> list[Problem]:
    """Translate what pydantic found into problems with places in the manifest.

    ``at`` is where in the manifest the model's value lies. ``partial``: the value is one layer of several,
    so what it lacks, and what only follows from several fields together, is no mistake yet.
    """
    details = [(detail, _path(detail)) for detail in error.errors()]
    consequences = _consequences(details, model)
    found: dict[tuple[Mark, str], Problem] = {}
    for detail, path in details:
        place = root.find((*at, *path))
        if (detail["type"], _field(path)) in consequences or (partial and _may_come(detail, place)):
            continue
        field = field_of((*at, *path), root)
        message = _message(detail, path, model, nulled=place.value is None)
        # Of several complaints about one value (a union, say) the first is the clearest.
        found.setdefault((place.mark, field), problem_in(root, (*at, *path), message))
    return sorted(found.values())


def problem_in(root: Node, path: Path, message: str) -> Problem:
    """Return a problem with a value of a merged manifest.

    A value from a shared file that is wrong only together with what the manifest itself says is told where
    the manifest says it; the shared file is right by itself.
    """
    place = above = root
    for step in path:
        below = place.child(step)
        if below is None:
            break
        place, above = below, place
    field, own = field_of(path, root), root.mark.file
    shared = place.mark.file != own and above.mark.file == own and not isinstance(place.value, dict | tuple)
    if shared:
        return problem_at(above.mark, field, f"{message} (from {place.mark.file}:{place.mark.line})")
    return problem_at(place.mark, field, message)


def _may_come(detail: Any, place: Node) -> bool:
    """Tell whether a complaint about one layer may be answered by another, or by filling a text in."""
    if detail["type"] in ("missing", "too_short") or (isinstance(place.value, str) and "{" in place.value):
        return True
    return detail["type"] == "value_error" and isinstance(place.value, dict | tuple)


def field_of(path: Path, root: Node) -> str:
    """Return a path as a message shows it: items of a list by their name where all have one of their own."""
    steps: list[str | int] = []
    node: Node | None = root
    for step in path:
        item = node.child(step) if node else None
        named = node is not None and item is not None and bool(by_name(node))
        steps.append(f"[{item.name}]" if named and item else step)
        node = item
    return _field(tuple(steps))


def _path(detail: Any) -> Path:
    """Return the place without pydantic's own steps: of a validator, and of a key that is wrong."""
    steps = (step for step in detail["loc"] if step != "[key]")
    return tuple(step for step in steps if isinstance(step, int) or not step.startswith("function-"))


def _consequences(details: Iterable[tuple[Any, Path]], model: type[BaseModel]) -> set[tuple[str, str]]:
    """Return the complaints (type, field) that only follow from another one.

    A list counts as too short when its items are wrong; a misspelt field makes the right one missing.
    """
    found: set[tuple[str, str]] = set()
    for detail, path in details:
        found |= {("too_short", _field(path[:depth])) for depth in range(len(path))}
        if detail["type"] == "extra_forbidden":
            near = nearest(str(path[-1]), _fields_at(path[:-1], model))
            found.add(("missing", _field((*path[:-1], near))))
    return found


def _field(path: Path) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += step if not text or step.startswith("[") else f".{step}"
    return text


def _in_quotes(value: Any) -> str:
    """Tell how a number or a truth value is written as text."""
    if isinstance(value, float):
        return "; put quotes around it"
    return f'; write it in quotes, as "{_shown(value)}"' if isinstance(value, int) else ""


def _one_of(value: Any, expected: str) -> str:
    """Tell which of some texts was probably meant."""
    texts = _TEXT.findall(expected)
    if not isinstance(value, str):
        return _in_quotes(value) if _shown(value) in texts else ""
    near = nearest(value, texts) if len(texts) > 1 else ""
    return f"; did you mean {near}?" if near else ""


_TEXT = re.compile(r"'([^']*)'")


def _as_list(value: Any) -> str:
    """Tell how a list is written."""
    if isinstance(value, dict):
        return "; begin each item with a hyphen"
    return f"; write [{_shown(value)}]" if isinstance(value, str | int | float) else ""


def _as_map(path: Path, model: type[BaseModel]) -> str:
    """Tell which keys a map has."""
    fields = _fields_at(path, model)
    if len(fields) > MANY_FIELDS:
        return "; docs/reference.md lists its fields"
    return f"; its field{' is' if len(fields) == 1 else 's are'} {', '.join(sorted(fields))}"


def _message(detail: Any, path: Path, model: type[BaseModel], *, nulled: bool) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    given = _shown(detail.get("input"))
    simple = {
        "missing": "is required; add it",
        "string_type": f"must be text, got {given}{_in_quotes(detail.get('input'))}",
        "int_type": f"must be a whole number, got {given}",
        "bool_type": f"must be true or false, got {given}",
        "dict_type": f"must be a map of keys and values, got {given}",
        "tuple_type": f"must be a list, got {given}{_as_list(detail.get('input'))}",
        "enum": f"must be {context.get('expected')}, got {given}",
        "greater_than_equal": f"must be {context.get('ge')} or more, got {given}",
        "less_than_equal": f"must be {context.get('le')} or less, got {given}",
        "too_short": f"is too short; it needs at least {context.get('min_length')} item",
        "too_long": f"has at most {context.get('max_length')} items",
        "string_too_short": "must not be empty",
        "string_too_long": f"must have at most {context.get('max_length')} characters",
    }
    if kind == "missing" and detail["loc"] and nulled:
        if len(path) == 1:
            return "is required; write its fields below it"
        right = "write a value, or take this line away if a layer below has one"
        return f"is required, and null takes it away; {right}"
    if kind in ("model_type", "model_attributes_type"):
        return f"must be a map of keys and values, got {given}{_as_map(path, model)}"
    if kind == "literal_error":
        expected = str(context.get("expected"))
        return f"must be {expected}, got {given}{_one_of(detail.get('input'), expected)}"
    if kind == "extra_forbidden":
        return _unknown_field(str(path[-1]), path, model)
    if kind == "value_error":
        return str(context["error"])
    return simple.get(kind, f"{detail['msg']}, got {given}")


def _unknown_field(name: str, path: Path, model: type[BaseModel]) -> str:
    fields = _fields_at(path[:-1], model)
    near = nearest(name, fields)
    if near:
        return f"there is no such field; did you mean {near}?"
    if len(fields) > MANY_FIELDS:
        return "there is no such field; docs/reference.md lists those that there are"
    return f"there is no such field; the fields here are {', '.join(sorted(fields))}"


def nearest(name: str, fields: Iterable[str]) -> str:
    """Return the name that was probably meant, "" when none is near."""
    fields = list(fields)
    same = [field for field in fields if field.lower() == name.lower()]
    return next(iter(same or difflib.get_close_matches(name, fields, n=1, cutoff=0.6)), "")


def _fields_at(path: Path, model: type[BaseModel]) -> list[str]:
    current: type[BaseModel] = model
    for step in path:
        if isinstance(step, int):
            continue
        for name, info in current.model_fields.items():
            if (info.alias or name) == step:
                current = next(models_in(info.annotation), current)
                break
    return [info.alias or name for name, info in current.model_fields.items()]


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def _shown(value: Any) -> str:
    """Return a short form of a value for a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    return shown(str(value))
