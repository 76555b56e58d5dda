"""Reads a YAML file within bounds: into a tree with places, or into plain values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml import AliasEvent, MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # of the loaders, what only yields events

from shared.json_tree import path_text
from shared.language.yaml.nodes import REMOVED, Items, Mark, Node, Root

# Scalars by the YAML 1.2 core schema (yaml.org/spec/1.2.2, 10.3): ``no``, ``on`` and dates are strings.
#
# A value that JSON, Table Storage or Azure would change or refuse is an error: infinity, not-a-number, and
# integers of more than 64 bits. Hexadecimal and octal numbers stay strings.

_QUOTED = ("'", '"', "|", ">")
_NULL = re.compile(r"(~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NO_NUMBER = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_OTHER = frozenset("~nNtTfF+-.0123456789")
"""The first characters of all scalars that are no strings."""
_MAX_DIGITS = 100
_STRING = "tag:yaml.org,2002:str"
MAX_INT = 2**63 - 1
"""Integers have 64 bits, as in Kubernetes, Azure's API and Table Storage."""


class ScalarError(ValueError):
    """A scalar that cannot be stored as it is written; the message says what to write instead."""


class WrittenInt(int):
    """An integer with its text in the file, which Python would write differently, such as 007."""

    text: str


class WrittenFloat(float):
    """A float with its text in the file, which Python would write differently, such as 1.30."""

    text: str


def scalar(event: Any) -> str | int | float | bool | None:
    """Return the value of a scalar; raise ScalarError for one that cannot be stored."""
    text: str = event.value
    if event.tag is not None:
        refuse_tag(event.tag, but=_STRING)
        return text
    if event.style in _QUOTED:  # quoted or a block: always a string
        return text
    if text and text[0] not in _OTHER:  # most are
        return text
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    if _NO_NUMBER.match(text):
        raise ScalarError(f"{text} is no number that can be stored; write a number, or quotes around it")
    return _number(text) if _INT.match(text) or _FLOAT.match(text) else text


def refuse_tag(tag: str | None, *, but: str = "") -> None:
    """Raise ScalarError for a YAML tag."""
    if tag is not None and tag != but:
        raise ScalarError(f"the YAML tag {tag} is not allowed; write the value itself")


def _number(text: str) -> int | float:
    number = _integer(text) if _INT.match(text) else _float(text)
    if str(number) == text:
        return number
    written = WrittenInt(number) if isinstance(number, int) else WrittenFloat(number)
    written.text = text
    return written


def _integer(text: str) -> int:
    number = int(text) if len(text) <= _MAX_DIGITS else MAX_INT + 1
    if not -MAX_INT - 1 <= number <= MAX_INT:
        raise ScalarError(f"is an integer of more than 64 bits; write at most {MAX_INT}, or quotes around it")
    return number


def _float(text: str) -> float:
    number = float(text)
    digits = re.split("[eE]", text)[0]
    if math.isinf(number) or (number == 0 and any(digit in "123456789" for digit in digits)):
        raise ScalarError("is a number beyond what 64 bits can keep; write another, or quotes around it")
    return number


MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000
"""Bounds of one manifest: a few hundred bytes of YAML can otherwise grow to megabytes, or to a stack
overflow in the C parser."""


class YamlError(Exception):
    """The content is not one YAML document that can be stored: the reason and the place."""

    def __init__(self, message: str, mark: Mark, field: str = "") -> None:
        super().__init__(message)
        self.message, self.mark, self.field = message, mark, field


def parse(content: bytes, file: str) -> Root:
    """Return the one YAML document of a file; raise YamlError for anything else."""
    start = Mark(file, 1, 1)
    if len(content) > MAX_BYTES:
        raise YamlError(f"the file has {len(content)} bytes; make it at most {MAX_BYTES}", start)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise YamlError("the file is not UTF-8 text; save it as UTF-8", Mark(file, line, 1)) from error
    if "<<<<<<<" in text or ">>>>>>>" in text:
        _refuse_conflict_markers(text, file)
    try:
        return _Builder(text, file).document()
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        mark = Mark(file, place.line + 1, place.column + 1) if place else start
        around = "".join(text.split("\n")[mark.line - 1 : mark.line])
        raise YamlError(_syntax_message(str(error.problem or error.context), around), mark) from error
    except yaml.YAMLError as error:
        raise YamlError(f"not valid YAML: {str(error).splitlines()[0]}", start) from error


_CONFLICT_MARKER = re.compile(r"^(<<<<<<<|>>>>>>>)( .*)?\r?$", re.MULTILINE)
CONFLICT = "has merge-conflict markers; resolve the conflict"


def conflict_line(text: str) -> int:
    """Return the line of the first marker that an unresolved merge has left, 0 for none."""
    marker = _CONFLICT_MARKER.search(text)
    return text.count("\n", 0, marker.start()) + 1 if marker else 0


def _refuse_conflict_markers(text: str, file: str) -> None:
    line = conflict_line(text)
    if line:
        raise YamlError(f"this file {CONFLICT}", Mark(file, line, 1))


def _syntax_message(problem: str, line: str) -> str:
    """Return the parser's message with a hint about the likely place; it does not name every tab."""
    if "\\t" in problem or "tab character" in problem or line.lstrip(" ").startswith("\t"):
        return "not valid YAML: found a tab; indent with spaces"
    return f"not valid YAML: {problem}; check the brackets, quotes and indentation here and just above"


class _Builder:
    """Builds nodes from libyaml's events, bounded in depth and number; all manifests of a fleet pass here."""

    def __init__(self, text: str, file: str) -> None:
        self._next: Callable[[], Any] = yaml.CSafeLoader(text).get_event
        self._file = file
        self._path: list[str | int] = []
        self._count = 0
        self._has_removals = False

    def document(self) -> Root:
        """Return the only document."""
        self._next()  # stream start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise YamlError(
                "the file is empty; a manifest has apiVersion, kind, metadata and spec",
                Mark(self._file, 1, 1),
            )
        first = self._next()
        mark, value = self._mark(first), self._value(first)
        self._next()  # document end
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise YamlError(
                "a second document begins here; a file holds one, so remove the ---", self._mark(event)
            )
        return Root(value, mark, self._has_removals, self._count)

    def _value(self, event: Any) -> Any:
        self._count += 1
        if self._count > MAX_NODES or len(self._path) > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise self._refused(event)
        try:
            if isinstance(event, yaml.ScalarEvent):
                value = scalar(event)
                if value is None or value == REMOVED[1]:
                    self._has_removals = True
                return value
            refuse_tag(event.tag)
        except ScalarError as error:
            raise self._error(str(error), self._mark(event)) from error
        return self._mapping() if isinstance(event, yaml.MappingStartEvent) else self._sequence()

    def _refused(self, event: Any) -> YamlError:
        mark = self._mark(event)
        if isinstance(event, yaml.AliasEvent):
            return self._error("YAML aliases (*name) are not allowed; write the value out", mark)
        if self._count > MAX_NODES:
            return self._error(f"the file has more than {MAX_NODES} values; make it smaller", mark)
        return YamlError(f"nested more than {MAX_DEPTH} levels deep; make it flatter", mark)

    def _mapping(self) -> dict[str, Node]:
        result: dict[str, Node] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            mark = self._mark(event)
            key = self._key(event, mark)
            self._path.append(key)
            if key in result:
                first = result[key].mark.line
                raise self._error(f"{key} is written twice, first in line {first}; keep one", mark)
            result[key] = Node(self._value(self._next()), mark)  # a problem is shown at the key
            self._path.pop()
        return result

    def _key(self, event: Any, mark: Mark) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error("a key must be a plain string", mark)
        if event.tag is not None:
            try:
                refuse_tag(event.tag)
            except ScalarError as error:
                raise self._error(str(error), mark) from error
        return str(event.value)

    def _sequence(self) -> Items:
        items: list[Node] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            self._path.append(len(items))
            items.append(Node(self._value(event), self._mark(event)))
            self._path.pop()
        return Items(items)

    def _mark(self, event: Any) -> Mark:
        start = event.start_mark
        return Mark(self._file, start.line + 1, start.column + 1)

    def _error(self, message: str, mark: Mark) -> YamlError:
        return YamlError(message, mark, path_text(self._path))


# Reads the value of a YAML file without the places in it, in two thirds of the time that ``parse`` takes.
#
# Places are needed once there is a problem. A file with anything unusual in it is not read here: ``parse``
# decides what it is, and says what is wrong with it.


class _UnusualError(Exception):
    """The file has something that only ``parse`` reads."""


def value_of(content: bytes) -> Any:
    """Return what ``parse(content, file).plain()`` has; None for a file that has to be parsed.

    That is one that ``parse`` refuses, that removes values of its layers, or that has so many bytes that it
    may have too many values.
    """
    if len(content) > MAX_NODES or b"<<<<<<<" in content or b">>>>>>>" in content:
        return None
    try:
        following = CParser(content.decode("utf-8")).get_event
        following()  # stream start
        if not isinstance(following(), yaml.DocumentStartEvent):
            return None
        value = _value(following(), following, 0)
        following()  # document end
        return value if isinstance(following(), yaml.StreamEndEvent) else None
    except (UnicodeDecodeError, yaml.YAMLError, ScalarError, _UnusualError):
        return None


def _value(event: Any, following: Callable[[], Any], depth: int) -> Any:
    if isinstance(event, ScalarEvent):
        value = scalar(event)
        if value is None or value == REMOVED[1]:
            raise _UnusualError
        return value
    if isinstance(event, AliasEvent) or event.tag is not None or depth == MAX_DEPTH:
        raise _UnusualError
    if isinstance(event, SequenceStartEvent):
        items = []
        while not isinstance(item := following(), SequenceEndEvent):
            items.append(_value(item, following, depth + 1))
        return items
    values: dict[str, Any] = {}
    while isinstance(key := following(), ScalarEvent):
        if key.value in values or key.tag is not None:
            raise _UnusualError
        values[key.value] = _value(following(), following, depth + 1)
    if not isinstance(key, MappingEndEvent):
        raise _UnusualError
    return values
