"""labelSelector and fieldSelector of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from localcloud.kubernetes.world.api_errors import bad_request

Matches = Callable[[Mapping[str, Any]], bool]

_IN = re.compile(r"^\s*(\S+)\s+(in|notin)\s+\(([^)]*)\)\s*$")
_SPLIT = re.compile(r",(?![^(]*\))")


def selector(labels: str, fields: str) -> Matches:
    """Return a test for both selectors; an empty one matches everything; raise ApiError when malformed."""
    tests = [_label(term) for term in _SPLIT.split(labels) if term.strip()]
    tests += [_field(term) for term in fields.split(",") if term.strip()]
    return lambda value: all(test(value) for test in tests)


def _labels(value: Mapping[str, Any]) -> Mapping[str, str]:
    return value["metadata"].get("labels") or {}


def _label(term: str) -> Matches:
    listed = _IN.match(term)
    if listed:
        name, sort, rest = listed.groups()
        choices = {choice.strip() for choice in rest.split(",")}
        if sort == "in":
            return lambda value: _labels(value).get(name) in choices
        return lambda value: _labels(value).get(name) not in choices
    name, sign, text = _comparison(term)
    if not sign and name.startswith("!"):
        return lambda value: name[1:].strip() not in _labels(value)
    if not sign:
        return lambda value: name in _labels(value)
    return lambda value: (_labels(value).get(name) == text) == (sign == "=")


def _field(term: str) -> Matches:
    path, sign, text = _comparison(term)
    if not sign:
        raise bad_request(f"invalid field selector {term!r}")
    return lambda value: (_at(value, path) == text) == (sign == "=")


def _comparison(term: str) -> tuple[str, str, str]:
    for written, sign in (("!=", "!="), ("==", "="), ("=", "=")):
        name, found, text = term.partition(written)
        if found:
            return name.strip(), sign, text.strip()
    return term.strip(), "", ""


def _at(value: Any, path: str) -> str:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)
