"""Scalars by the YAML 1.2 core schema (yaml.org/spec/1.2.2, 10.3): ``no``, ``on`` and dates are strings.

A value that JSON, Table Storage or Azure would change or refuse is an error: infinity, not-a-number, and
integers of more than 64 bits. Hexadecimal and octal numbers stay strings.
"""

from __future__ import annotations

import math
import re
from typing import Any

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
