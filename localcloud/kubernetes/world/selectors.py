"""labelSelector and fieldSelector of lists and watches.

The grammar and the texts are those of ``k8s.io/apimachinery/pkg/labels`` and ``pkg/fields``; the fields that
a kind can be selected by are those of ``pkg/apis/*/v1/conversion.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localcloud.kubernetes.schema.names import label_key_problems, label_value_problems
from localcloud.kubernetes.world.api_errors import bad_request
from localcloud.kubernetes.world.kinds import ResourceKind

Matches = Callable[[Mapping[str, Any]], bool]

_TOKEN = re.compile(r"\s*(?:(!=|==|=|<|>|!|\(|\)|,)|([^\s=!(),<>]+))")
_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_EVERYWHERE = ("metadata.name", "metadata.namespace")
_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Event"): (
        *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion")),
        *("involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent"),
        *("source", "type"),
    ),
    ("", "Namespace"): ("status.phase",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("batch", "Job"): ("status.successful",),
}


class _Unreadable(Exception):
    """A selector that does not follow the grammar."""


def selector(kind: ResourceKind, labels: str, fields: str) -> Matches:
    """Return a test for both selectors; an empty one matches everything; raise ApiError when malformed."""
    if not labels and not fields:
        return _everything
    try:
        tests = [*_label_tests(labels), *_field_tests(kind, fields)]
    except _Unreadable as error:
        raise bad_request(str(error)) from error
    return lambda value: all(test(value) for test in tests)


@lru_cache(maxsize=64)
def _label_tests(labels: str) -> tuple[Matches, ...]:
    return tuple(_Labels(labels).tests())


def _everything(_: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True)
class _Token:
    text: str
    special: bool = False


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        assert match is not None  # noqa: S101 - any character begins a token
        found.append(_Token(match[1] or match[2], special=match[1] is not None))
        place = match.end()
    return [*found, _Token("", special=True)]


class _Labels:
    """A parser of label selectors."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)

    def tests(self) -> Iterator[Matches]:
        """Yield a test for each requirement."""
        while self._next.text:
            if self._next.special and self._next.text != "!":
                raise _Unreadable(f"found '{self._next.text}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except _Unreadable as error:
                raise _Unreadable(f"unable to parse requirement: {error}") from error
            after = self._take()
            if after == _Token(",", special=True):
                if self._next.special and self._next.text != "!":
                    raise _Unreadable(f"found '{self._next.text}', expected: identifier after ','")
            elif after.text:
                raise _Unreadable(f"found '{after.text}', expected: ',' or 'end of string'")
            else:
                return

    @property
    def _next(self) -> _Token:
        return self._tokens[0]

    def _take(self) -> _Token:
        return self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]

    def _requirement(self) -> Matches:
        token = self._take()
        absent = token == _Token("!", special=True)
        if absent:
            token = self._take()
        if token.special:
            raise _Unreadable(f"found '{token.text}', expected: identifier")
        name = token.text
        _refuse(label_key_problems(name), "<nil>", name)
        if self._next in (_Token(",", special=True), _Token("", special=True)):
            return lambda value: (name in _labels(value)) != absent
        sign = self._take().text
        if sign in ("in", "notin"):
            values = self._values()
        elif sign in ("=", "==", "!=", "<", ">"):
            values = self._exact()
        else:
            raise _Unreadable(f"found '{sign}', expected: {', '.join(_OPERATORS)}")
        for number, value in enumerate(sorted(values)):
            _refuse(label_value_problems(value), f"values[{number}][{name}]", value)
        return _comparison(name, sign, values)

    def _values(self) -> set[str]:
        opening = self._take()
        if opening.text != "(":
            raise _Unreadable(f"found '{opening.text}' expected: '('")
        values: set[str] = set()
        before = ","
        while True:
            token = self._take()
            if token == _Token(")", special=True):
                return values | ({""} if before == "," else set())
            if token == _Token(",", special=True):
                values |= {""} if before == "," else set()
            elif token.special or before != ",":
                raise _Unreadable(f"found '{token.text}', expected: ',' or ')'")
            else:
                values.add(token.text)
            before = token.text if token.special else "value"

    def _exact(self) -> set[str]:
        if self._next in (_Token(",", special=True), _Token("", special=True)):
            return {""}
        token = self._take()
        if token.special:
            raise _Unreadable(f"found '{token.text}', expected: identifier")
        return {token.text}


def _refuse(problems: Sequence[str], path: str, value: str) -> None:
    if problems:
        raise _Unreadable(f'{path}: Invalid value: "{value}": {"; ".join(problems)}')


def _comparison(name: str, sign: str, values: set[str]) -> Matches:
    if sign in ("<", ">"):
        (text,) = values
        if not re.fullmatch(r"[-+]?\d+", text):
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _Unreadable(f'values[0]: Invalid value: "{text}": {rule}')
        return lambda value: _exceeds(_labels(value).get(name, ""), sign, int(text))
    if sign in ("notin", "!="):
        return lambda value: _labels(value).get(name) not in values
    return lambda value: _labels(value).get(name) in values


def _exceeds(text: str, sign: str, bound: int) -> bool:
    if not re.fullmatch(r"[-+]?\d+", text):
        return False
    return int(text) > bound if sign == ">" else int(text) < bound


def _labels(value: Mapping[str, Any]) -> Mapping[str, str]:
    return value["metadata"].get("labels") or {}


def _field_tests(kind: ResourceKind, text: str) -> Iterator[Matches]:
    for term in re.split(r"(?<!\\),", text) if text else ():
        if term:
            yield _field(kind, term, text)


def _field(kind: ResourceKind, term: str, whole: str) -> Matches:
    found = re.match(r"(.*?)(!=|==|=)(.*)", term)
    if found is None:
        raise _Unreadable(f"invalid selector: '{whole}'; can't understand '{term}'")
    path, sign, text = found[1], found[2], re.sub(r"\\([\\,=])", r"\1", found[3])
    if path not in _EVERYWHERE and path not in _FIELDS.get((kind.group, kind.kind), ()):
        if kind.custom or (kind.group, kind.kind) in _FIELDS:
            raise _Unreadable(f"field label not supported: {path}")
        known = '"metadata.name", "metadata.namespace"'
        raise _Unreadable(f'"{path}" is not a known field selector: only {known}')
    return lambda value: (_at(value, path) == text) == (sign != "!=")


def _at(value: Any, path: str) -> str:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
    return str(value)
