"""What the API server does with a custom resource and the schema of its definition: prune, default, validate.

``jsonschema`` (Draft 4, as OpenAPI 3.0 uses it) validates; the texts are those of ``k8s.io/kube-openapi``
and of ``apimachinery/pkg/util/validation/field``. Rules in CEL (``x-kubernetes-validations``) are not
evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from jsonschema import Draft4Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from localcloud.common.json_copy import copied
from localcloud.kubernetes.schema.decoding import TIME
from localcloud.kubernetes.schema.definitions import FieldProblem, Type, as_json


def pruned(kind: Type, value: Any, unknown: list[str], path: str = "") -> Any:
    """Return the value without the fields that the schema does not name; add their paths to ``unknown``."""
    if isinstance(value, list) and kind.sort == "list":
        return [pruned(kind.item, inner, unknown, f"{path}[{number}]") for number, inner in enumerate(value)]
    if not isinstance(value, Mapping) or kind.sort not in ("object", "map"):
        return value
    known: dict[str, Any] = {}
    for name, inner in value.items():
        below = kind.child(name)
        here = f"{path}.{name}" if path else name
        if below is None:
            unknown.append(here)
        else:
            known[name] = pruned(below, inner, unknown, here)
    return known


def defaulted(kind: Type, value: Any) -> Any:
    """Return the value with the defaults of the schema where a field is missing."""
    if isinstance(value, list) and kind.sort == "list":
        return [defaulted(kind.item, inner) for inner in value]
    if not isinstance(value, Mapping) or kind.sort not in ("object", "map"):
        return value
    whole = dict(value)
    for name, below in kind.fields.items() if kind.sort == "object" else ():
        missing = name not in whole or (whole[name] is None and not below.raw.get("nullable"))
        if missing and below.custom and "default" in below.raw:
            whole[name] = copied(below.raw["default"])
    for name, inner in whole.items():
        below_or_none = kind.child(name)
        if below_or_none is not None and below_or_none.custom:
            whole[name] = defaulted(below_or_none, inner)
    return whole


def problems(kind: Type, value: Mapping[str, Any], subresource: str = "") -> list[FieldProblem]:
    """Return what the schema refuses, by field; messages about a subresource omit its name."""
    content = {name: inner for name, inner in value.items() if name not in kind.extra}
    validator = _Structural(dict(kind.raw), format_checker=_FORMATS)
    found = [problem for error in validator.iter_errors(content) for problem in _described(error)]
    if subresource:
        inside = re.compile(rf": {subresource}\.(\S+) in body")
        found = [replace(problem, message=inside.sub(r": \1 in body", problem.message)) for problem in found]
    found += _duplicates(kind, content, "")
    return sorted(found, key=lambda problem: (problem.field, problem.message))


def _duplicates(kind: Type, value: Any, path: str) -> Iterator[FieldProblem]:
    """Yield the items of a set or a keyed list that occur twice."""
    if kind.sort == "list" and isinstance(value, list):
        seen: list[Any] = []
        for number, item in enumerate(value):
            key = {name: item.get(name) for name in kind.keys} if isinstance(item, Mapping) else item
            if (kind.keys or kind.is_set) and key in seen:
                text = f"Duplicate value: {as_json(key)}"
                yield FieldProblem(f"{path}[{number}]", "FieldValueDuplicate", text)
            seen.append(key)
            yield from _duplicates(kind.item, item, f"{path}[{number}]")
    elif kind.sort in ("object", "map") and isinstance(value, Mapping):
        for name, inner in value.items():
            below = kind.child(name)
            if below is not None and isinstance(inner, Mapping | list):
                yield from _duplicates(below, inner, f"{path}.{name}" if path else name)


def _type(validator: Any, types: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    if instance is None and schema.get("nullable"):
        return
    if not validator.is_type(instance, types):
        yield ValidationError(f"{instance!r} is not of type {types!r}")


def _int_or_string(_validator: Any, on: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if on and (isinstance(instance, bool) or not isinstance(instance, int | str)):
        yield ValidationError("neither integer nor string")


def _unchecked(*_: Any) -> Iterator[ValidationError]:
    yield from ()


def _required(_validator: Any, names: list[str], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    for name in names if isinstance(instance, Mapping) else ():
        if name not in instance:
            yield ValidationError("required", path=[name])


_FORMATS = FormatChecker(formats=("ipv4", "ipv6", "email", "date"))


@_FORMATS.checks("date-time")
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or TIME.fullmatch(value) is not None


_Structural: Any = extend(  # type: ignore[no-untyped-call]  # the library leaves it out
    Draft4Validator,
    {
        "type": _type,
        "required": _required,
        "x-kubernetes-int-or-string": _int_or_string,
        "$ref": _unchecked,
        "default": _unchecked,
    },
)


def _described(error: ValidationError) -> Iterator[FieldProblem]:
    if error.validator in ("anyOf", "oneOf", "allOf", "not"):
        yield FieldProblem(_path(error), "FieldValueInvalid", _combined(error))
        return
    rule = _TEXTS.get(str(error.validator))
    reason, message = rule(error) if rule else ("FieldValueInvalid", _invalid(error, error.message))
    yield FieldProblem(_path(error), reason, message)


def _path(error: ValidationError) -> str:
    text = ""
    for part in error.absolute_path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "<nil>"


def _value(error: ValidationError) -> str:
    return as_json(error.instance)


def _invalid(error: ValidationError, problem: str) -> str:
    return f"Invalid value: {_value(error)}: {_path(error)} in body {problem}"


def _combined(error: ValidationError) -> str:
    words = {
        "anyOf": "must validate at least one schema (anyOf)",
        "oneOf": "must validate one and only one schema (oneOf). Found none valid",
        "allOf": "must validate all the schemas (allOf)",
        "not": "must not validate the schema (not)",
    }
    return f"Invalid value: {_value(error)}: {_path(error)} {words[str(error.validator)]}".replace(
        "<nil>", '""'
    )


def _of_type(error: ValidationError) -> tuple[str, str]:
    return "FieldValueTypeInvalid", _sorts(error, str(error.validator_value))


def _sorts(error: ValidationError, wanted: str) -> str:
    shown = as_json(_SORTS.get(type(error.instance), "string"))
    return f"Invalid value: {shown}: {_path(error)} in body must be of type {wanted}: {shown}"


def _enum(error: ValidationError) -> tuple[str, str]:
    values = ", ".join(as_json(value) for value in cast("list[Any]", error.validator_value))
    return "FieldValueNotSupported", f"Unsupported value: {_value(error)}: supported values: {values}"


def _fails(text: str) -> Callable[[ValidationError], tuple[str, str]]:
    def rule(error: ValidationError) -> tuple[str, str]:
        return "FieldValueInvalid", _invalid(error, text.format(error.validator_value))

    return rule


def _bound(exclusive: str, words: str) -> Callable[[ValidationError], tuple[str, str]]:
    def rule(error: ValidationError) -> tuple[str, str]:
        strict = isinstance(error.schema, Mapping) and error.schema.get(exclusive)
        text = f"should be {words} than {'' if strict else 'or equal to '}{error.validator_value}"
        return "FieldValueInvalid", _invalid(error, text)

    return rule


def _too_long(error: ValidationError) -> tuple[str, str]:
    return "FieldValueTooLong", f"Too long: may not be more than {error.validator_value} bytes"


def _too_many(error: ValidationError) -> tuple[str, str]:
    size = len(cast("list[Any]", error.instance))
    return "FieldValueTooMany", f"Too many: {size}: must have at most {error.validator_value} items"


_SORTS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_SORTS[type(None)] = "null"
_TEXTS: Mapping[str, Callable[[ValidationError], tuple[str, str]]] = {
    "type": _of_type,
    "x-kubernetes-int-or-string": lambda error: (
        "FieldValueTypeInvalid",
        _sorts(error, "integer,string"),
    ),
    "required": lambda _: ("FieldValueRequired", "Required value"),
    "enum": _enum,
    "pattern": _fails("should match '{}'"),
    "format": _fails("must be of type {}"),
    "minimum": _bound("exclusiveMinimum", "greater"),
    "maximum": _bound("exclusiveMaximum", "less"),
    "minLength": _fails("should be at least {} chars long"),
    "maxLength": _too_long,
    "minItems": _fails("should have at least {} items"),
    "maxItems": _too_many,
    "minProperties": _fails("should have at least {} properties"),
    "multipleOf": _fails("should be a multiple of {}"),
}
