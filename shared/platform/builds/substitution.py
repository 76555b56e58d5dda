"""Variables of ``postBuild``, replaced as Flux replaces them.

The rules are those of fluxcd/pkg, ``envsubst`` and ``kustomize_varsub.go``: a small part of bash, with
``${name}``, defaults, and functions over strings. ``$name`` and ``$(command)`` stay, ``$$`` is a dollar. A
value is not replaced again.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.platform.inventory import Owner
from shared.platform.source.tree import glob_pattern

VARIABLE = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")
"""What a variable may be called (``varsubRegex``)."""
_NAME = re.compile(r"\w+")
_DEFAULTS = (":=", ":-", ":?", ":+", "=")
"""All of these only give a default: Flux has no other meaning for them."""
MOST_LEVELS = 50


class BadSubstitution(ValueError):
    """A ``${`` that Flux cannot read, so that the whole Kustomization fails; the message says where."""


@dataclass(frozen=True)
class Variable:
    """A use of a variable: ``text`` is as written, and ``arguments`` are parts themselves."""

    text: str
    name: str
    function: str = ""
    arguments: tuple[tuple[Part, ...], ...] = ()

    @property
    def has_default(self) -> bool:
        """Whether it has a value where the variable has none, be it an empty one."""
        return self.function in _DEFAULTS


Part = str | Variable


@dataclass(frozen=True)
class Substitution:
    """A text after substitution; ``used`` are its variables, ``missing`` those of them without a value."""

    text: str
    used: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()


def substituted(text: str, values: Mapping[str, str], unknown: Callable[[str], bool]) -> Substitution:
    """Return a text with its variables replaced; raise BadSubstitution where Flux would fail to read it.

    A variable that is ``unknown`` may have a value that only the cluster has: what uses it stays as it is.
    One without a value, and without a default, is replaced by nothing, as a Flux does that is not strict.
    """
    parts = parsed(text)
    missing: set[str] = set()
    replaced = "".join(_texts(parts, values, unknown, missing))
    return Substitution(replaced, frozenset(names_in(parts)), frozenset(missing))


def names_in(parts: Sequence[Part]) -> Iterator[str]:
    """Yield the names of variables, also of those in defaults."""
    for part in parts:
        if isinstance(part, Variable):
            yield part.name
            for argument in part.arguments:
                yield from names_in(argument)


@lru_cache(maxsize=4096)
def parsed(text: str) -> tuple[Part, ...]:
    """Return the parts of a text; raise BadSubstitution."""
    if "$" not in text:
        return (text,)
    return tuple(_Parser(text).parts())


def _texts(
    parts: Sequence[Part], values: Mapping[str, str], unknown: Callable[[str], bool], missing: set[str]
) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif part.name not in values and unknown(part.name):
            yield part.text
        else:
            if part.name not in values and not part.has_default:
                missing.add(part.name)
            given = ["".join(_texts(argument, values, unknown, missing)) for argument in part.arguments]
            yield _applied(part, values.get(part.name, ""), given)


def _applied(part: Variable, value: str, given: Sequence[str]) -> str:
    function = part.function
    if function in ("", "^,", ",^", *_DEFAULTS):
        return value or "".join(given)
    if function == ":":
        return _part(value, given)
    if function == "#" and not given:
        return str(len(value.encode()))
    if function in ("#", "##", "%", "%%"):
        return _trimmed(value, given[0], at_end=function[0] == "%", longest=len(function) == 2)
    if function[0] == "/":
        return _replaced(function, value, given)
    first, rest = (value[:1], value[1:]) if len(function) == 1 else (value, "")
    return (first.lower() if function[0] == "," else first.upper()) + rest


def _part(value: str, given: Sequence[str]) -> str:
    """Return ``${name:offset:length}``, in bytes."""
    data = value.encode()
    try:
        numbers = [int(text) for text in given]
    except ValueError:
        return value
    start = numbers[0] if numbers[0] >= 0 else max(len(data) + numbers[0], 0)
    if len(numbers) > 1 and numbers[1] < 0:
        raise BadSubstitution(f"a length of {numbers[1]}")
    end = start + numbers[1] if len(numbers) > 1 else len(data)
    return data[start:end].decode(errors="replace")


def _replaced(function: str, value: str, given: Sequence[str]) -> str:
    old, new = given[0], given[1] if len(given) > 1 else ""
    if function == "/#":
        return new + value[len(old) :] if len(given) > 1 and value.startswith(old) else value
    if function == "/%":
        return value.removesuffix(old) + new if len(given) > 1 and value.endswith(old) else value
    return value.replace(old, new, -1 if function == "//" else 1)


def _trimmed(value: str, glob: str, *, at_end: bool, longest: bool) -> str:
    if at_end:  # Flux turns both around, the pattern letter by letter
        return _trimmed(value[::-1], glob[::-1], at_end=False, longest=longest)[::-1]
    pattern = glob_pattern(glob)
    if pattern is None:
        return value
    ends = range(len(value), 0, -1) if longest else range(1, len(value) + 1)
    return next((value[end:] for end in ends if pattern.fullmatch(value, 0, end)), value)


class _Parser:
    """Reads a text from left to right, as ``envsubst/parse`` does."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._level = text, 0, 0

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the whole text."""
        start = 0
        text = self._text
        while (dollar := text.find("$", self._at)) >= 0:
            following = text[dollar + 1 : dollar + 2]
            self._at = dollar + 1
            if following == "{":
                yield text[start:dollar]
                yield self._variable(dollar)
                start = self._at
            elif following == "$":
                yield text[start : dollar + 1]
                start = self._at = dollar + 2
        yield text[start:]

    def _variable(self, start: int) -> Variable:
        self._at = start + 2
        self._level += 1
        if self._level > MOST_LEVELS:
            raise self._error(start)
        if self._peek() == "#":
            self._at += 1
            name = self._name(start)
            found: tuple[str, Sequence[tuple[Part, ...]]] = ("#", ())
        else:
            name = self._name(start)
            found = self._function(start)
        if self._peek() != "}":
            raise self._error(start)
        self._at += 1
        self._level -= 1
        return Variable(self._text[start : self._at], name, found[0], tuple(found[1]))

    def _name(self, start: int) -> str:
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise self._error(start)
        self._at = found.end()
        return found[0]

    def _function(self, start: int) -> tuple[str, Sequence[tuple[Part, ...]]]:
        text, at = self._text, self._at
        two = text[at : at + 2]
        first = two[:1]
        if two in _DEFAULTS or first == "=":
            return self._default("=" if first == "=" else two)
        if first == ":":
            return self._offsets(start)
        if first in ("#", "%") or first in (",", "^"):
            function = two if len(two) == 2 and two[1] in first_of(first) else first
            self._at += len(function)
            if first in (",", "^"):
                return function, ()
            return function, (self._argument(start, "}"),)
        if first == "/":
            return self._replacement(start, two)
        return "", ()

    def _default(self, function: str) -> tuple[str, Sequence[tuple[Part, ...]]]:
        self._at += len(function)
        arguments: list[tuple[Part, ...]] = []
        while self._peek() not in ("}", ""):
            arguments.append(self._argument(self._at, "}"))
        return function, arguments

    def _offsets(self, start: int) -> tuple[str, Sequence[tuple[Part, ...]]]:
        self._at += 1
        arguments = [self._argument(start, ":}")]
        if self._peek() == ":":
            while self._peek() == ":":
                self._at += 1
            arguments.append(self._argument(start, "}"))
        return ":", arguments

    def _replacement(self, start: int, two: str) -> tuple[str, Sequence[tuple[Part, ...]]]:
        function = two if two[1:] in ("/", "#", "%") else "/"
        self._at += len(function)
        arguments = [self._argument(start, "/", escapes=True)]
        if self._peek() != "/":
            raise self._error(start)
        while self._peek() == "/":
            self._at += 1
        if self._peek() != "}":
            arguments.append(self._argument(start, "}", escapes=True))
        return function, arguments

    def _argument(self, start: int, ends: str, *, escapes: bool = False) -> tuple[Part, ...]:
        """Return one argument: a variable, or the text up to one of ``ends``, which is not empty."""
        text = self._text
        if text.startswith("${", self._at):
            return (self._variable(self._at),)
        found: list[str] = []
        while self._at < len(text) and not text.startswith("${", self._at):
            two = text[self._at : self._at + 2]
            if escapes and two in ("$$", "\\/", "\\\\"):
                found.append(two[1])
                self._at += 2
            elif two[0] in ends:
                break
            else:
                found.append(two[0])
                self._at += 1
        if not found:
            raise self._error(start)
        return ("".join(found),)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _error(self, start: int) -> BadSubstitution:
        line = self._text[start:].splitlines()[0]
        return BadSubstitution(f"{line[:80]}: Flux cannot read this; write $${line[1:40]} to keep it")


def first_of(letter: str) -> str:
    """Return the letters that may follow the first one of a function."""
    return ",^" if letter in ",^" else letter


def invalid_names(names: Collection[str]) -> list[str]:
    """Return the names that no variable may have; Flux then refuses all of them."""
    return sorted(name for name in names if not VARIABLE.fullmatch(name))


# The ConfigMaps and Secrets that Flux reads values of variables from, as Kustomizations own them.

Place = tuple[str, str, str]
"""Kind, namespace and name of a ConfigMap or Secret."""
Values = Mapping[str, str | None]
"""Variables with their values; None is a value that only the cluster has."""
_ENCRYPTED = "sops"


def configs_in(owners: Iterable[Owner]) -> Iterator[tuple[Place, Values]]:
    """Yield the ConfigMaps and Secrets that Kustomizations own, with their values."""
    for owner in owners:
        for name, built in owner.objects.items():
            if name.group == "" and name.kind in ("ConfigMap", "Secret"):
                place = name.kind, name.namespace, name.name
                yield place, dict(_values_in(built.manifest, secret=name.kind == "Secret"))


def _values_in(manifest: Json, *, secret: bool) -> Iterator[tuple[str, str | None]]:
    for key, value in (manifest.get("data") or {}).items():
        if _ENCRYPTED in manifest:
            yield key, None
        elif not secret:
            yield key, str(value)
        else:
            try:
                yield key, base64.b64decode(str(value), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                yield key, None
    for key, value in (manifest.get("stringData") or {}).items() if secret else ():
        yield key, None if _ENCRYPTED in manifest else str(value)
