"""Pydantic's errors as problems: what a value must be, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError

from shared.frozen import dataclass
from shared.json_tree import path_text
from shared.language.model.base import Manifest, models_in, shown
from shared.language.resolve.problems import (
    SHOWN_OF_FILE,
    Path,
    Problem,
    described,
    field_of,
    nearest,
    problem_at,
    problem_in,
)
from shared.language.yaml.nodes import Mark, Node
from shared.language.yaml.parser import WrittenFloat, WrittenInt

MANY_FIELDS = 12
"""The maximum number of fields that a message lists."""


def problems_of(
    error: ValidationError, root: Node, model: type[BaseModel], *, at: Path = (), partial: bool = False
) -> list[Problem]:
    """Translate pydantic's errors into problems with places in the manifest.

    ``at`` is where the model's value is in the manifest. ``partial``: the value is one layer of several, so a
    missing field, or a rule about several fields, is no problem yet.
    """
    found: dict[tuple[Mark, str], _Error] = {}
    invalid_below: set[str] = set()
    for detail in error.errors(include_url=False):
        path = _path(detail, model)
        invalid_below |= {path_text(path[:depth]) for depth in range(len(path))}
        place = root.find((*at, *path))
        if partial and _may_be_completed(detail, place):
            continue
        # Of several errors in one value (of a union, for example) the first is the clearest.
        found.setdefault((place.mark, field_of((*at, *path), root)), _Error(detail, path, place))
    errors = sorted(found.items(), key=lambda entry: (entry[0][0].line, entry[0][0].column, entry[0][1]))
    misspelt = _misspelt((error for _, error in errors), model)
    rest = [
        (place, error)
        for (place, _), error in errors
        if not (error.kind == "too_short" and path_text(error.path) in invalid_below)
        and not (error.kind == "missing" and error.path in misspelt)
    ]
    return described(rest, lambda _, error: _problem(error, root, model, at))


@dataclass(frozen=True)
class _Error:
    """An error of pydantic, its path in the model's value, and the nearest node."""

    detail: Any
    path: Path
    place: Node

    @property
    def kind(self) -> str:
        """Pydantic's name of the error."""
        return str(self.detail["type"])


def _problem(error: _Error, root: Node, model: type[BaseModel], at: Path) -> Problem:
    place = error.place
    message = _message(error.detail, error.path, model, nulled=place.value is None)
    if place.mark.file != root.mark.file and isinstance(place.value, str) and "{" in place.value:
        # A shared file's string is invalid once it is filled in: one problem, of that file.
        cluster = root.find(("metadata", "name")).value
        field = field_of((*at, *error.path), root)
        return problem_at(place.mark, field, f"{message} (for the cluster {cluster})")
    return problem_in(root, (*at, *error.path), message)


def _misspelt(errors: Iterable[_Error], model: type[BaseModel]) -> set[Path]:
    """Return the fields that are missing because they are misspelt, as far as the errors are described."""
    unknown = islice((error.path for error in errors if error.kind == "extra_forbidden"), SHOWN_OF_FILE)
    return {(*path[:-1], nearest(str(path[-1]), _fields_at(path[:-1], model))) for path in unknown}


def _may_be_completed(detail: Any, place: Node) -> bool:
    """Return whether another layer, or a placeholder, may resolve an error in one layer."""
    if detail["type"] in ("missing", "too_short") or (isinstance(place.value, str) and "{" in place.value):
        return True
    return detail["type"] == "value_error" and isinstance(place.value, dict | tuple)


def _path(detail: Any, model: type[BaseModel]) -> Path:
    """Return the path of an error without pydantic's steps for validators and invalid keys."""
    steps = (step for step in detail["loc"] if step != "[key]")
    path = tuple(step for step in steps if isinstance(step, int) or not step.startswith("function-"))
    info = _model_at(path[:-1], model).model_fields.get(str(path[-1])) if path else None
    return (*path[:-1], info.alias) if info is not None and info.alias else path


def _quoted(value: Any) -> str:
    """Return the hint to write a number or boolean as a string."""
    return f'; write it in quotes, as "{_shown(value)}"' if isinstance(value, int | float) else ""


def _unquoted(value: Any, right: re.Pattern[str]) -> str:
    """Return the hint to write a string as the number or boolean that it looks like."""
    return "; remove the quotes" if isinstance(value, str) and right.fullmatch(value) else ""


_INTEGER = re.compile(r"[-+]?[0-9]+")
_BOOLEAN = re.compile(r"true|false")


def _one_of(value: Any, expected: str) -> str:
    """Return a hint with the string that was probably meant."""
    texts = _TEXT.findall(expected)
    if not isinstance(value, str):
        return _quoted(value) if _shown(value) in texts else ""
    near = nearest(value, texts) if len(texts) > 1 else ""
    return f"; did you mean {near}?" if near else ""


_TEXT = re.compile(r"'([^']*)'")


def _as_list(value: Any) -> str:
    """Return a hint about how to write a list."""
    if isinstance(value, dict):
        return "; begin each item with a hyphen"
    return f"; write [{_shown(value)}]" if isinstance(value, str | int | float) else ""


def _as_object(path: Path, model: type[BaseModel]) -> str:
    """Return a hint with the fields of an object."""
    fields = _fields_at(path, model)
    if len(fields) > MANY_FIELDS:
        return ""
    return f"; its field{' is' if len(fields) == 1 else 's are'} {', '.join(sorted(fields))}"


def _message(detail: Any, path: Path, model: type[BaseModel], *, nulled: bool) -> str:
    kind, context, value = detail["type"], detail.get("ctx", {}), detail.get("input")
    given = _shown(value)
    simple = {
        "missing": "is required; add it",
        "string_type": f"must be a string, got {given}{_quoted(value)}",
        "int_type": f"must be an integer, got {_literal(value)}{_unquoted(value, _INTEGER)}",
        "bool_type": f"must be true or false, got {_literal(value)}{_unquoted(value, _BOOLEAN)}",
        "dict_type": f"must be an object, got {given}",
        "tuple_type": f"must be a list, got {given}{_as_list(value)}",
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
        return "is required, and null removes it; write a value, or remove this line if a layer below has one"
    if kind in ("model_type", "model_attributes_type"):
        return f"must be an object, got {given}{_as_object(path, model)}"
    if kind in ("literal_error", "enum"):
        expected = str(context.get("expected"))
        return f"must be {expected}, got {given}{_one_of(value, expected)}"
    if kind == "extra_forbidden":
        return _unknown_field(str(path[-1]), path, model)
    if kind == "value_error":
        return str(context["error"])
    return simple.get(kind, f"{detail['msg']}, got {given}")


def _unknown_field(name: str, path: Path, model: type[BaseModel]) -> str:
    parent = _model_at(path[:-1], model)
    instead = parent.instead.get(name) if issubclass(parent, Manifest) else None
    if instead:
        return f"there is no such field; {instead}"
    fields = _fields_at(path[:-1], model)
    near = nearest(name, fields)
    if near:
        return f"there is no such field; did you mean {near}?"
    if len(fields) > MANY_FIELDS:
        return "there is no such field; the reference of manifests lists all fields"
    return f"there is no such field; the fields here are {', '.join(sorted(fields))}"


def _fields_at(path: Path, model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in _model_at(path, model).model_fields.items()]


def _model_at(path: Path, model: type[BaseModel]) -> type[BaseModel]:
    """Return the model of the object at a path."""
    for step in path:
        if isinstance(step, int):
            continue
        fields = model.model_fields.items()
        annotation = next((info.annotation for name, info in fields if (info.alias or name) == step), None)
        model = next(models_in(annotation), model)
    return model


def _shown(value: Any) -> str:
    """Return a short form of a value for a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "nothing"
    if isinstance(value, WrittenInt | WrittenFloat):
        return shown(value.text)
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return shown(str(value))


def _literal(value: Any) -> str:
    """Return a short form of a value in which a string has quotes."""
    return f'"{_shown(value)}"' if isinstance(value, str) else _shown(value)
