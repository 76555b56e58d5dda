"""An entry of a table of refusals, and the write that it judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from localcloud.azure.world.arm_errors import AksError
from shared.json_tree import Json


@dataclass(frozen=True)
class RequestedWrite:
    """A write: what its body gives, the result, and what was before (None: a creation).

    A cluster's documents are its properties with ``sku``, ``identity`` and ``agentPoolProfiles``; a pool's
    are its profile, with the properties of its ``cluster``.
    """

    given: Json
    after: Json
    before: Json | None = None

    def says(self, path: str) -> Any:
        """Return what the body gives at a dotted path, None for nothing."""
        return at(self.given, path)

    def now(self, path: str) -> Any:
        """Return the value of the result."""
        return at(self.after, path)

    def was(self, path: str) -> Any:
        """Return the value before; None also at a creation."""
        return at(self.before, path) if self.before is not None else None

    def changes(self, path: str) -> bool:
        """Return whether the body gives another value than what was."""
        wanted = self.says(path)
        return self.before is not None and wanted is not None and not same(wanted, self.was(path))


Broken = Callable[[RequestedWrite], object]


@dataclass(frozen=True)
class RefusalRule:
    """A refusal: its name, its source, the message with its target, and when it applies.

    Where what it finds is a mapping, that has the values for the braces of the message.
    """

    name: str
    source: str
    target: str
    message: str
    broken: Broken
    code: str = "InvalidParameter"


def check(rules: Iterable[RefusalRule], asked: RequestedWrite) -> None:
    """Raise the refusal of the first rule that a write breaks."""
    for rule in rules:
        found = rule.broken(asked)
        if found:
            message = rule.message.format(**found) if isinstance(found, Mapping) else rule.message
            error = AksError(400, rule.code, message, target=rule.target)
            error.rule = rule.name
            raise error


def at(document: Json, path: str) -> Any:
    """Return the value at a dotted path, None when there is none."""
    value: Any = document
    for key in _keys(path):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


@cache
def _keys(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def same(left: Any, right: Any) -> bool:
    """Return whether AKS takes two values for equal: case, order, null or empty alike."""
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if isinstance(left, list) and isinstance(right, list):
        return sorted(map(str, left)) == sorted(map(str, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return all(same(value, right.get(key)) for key, value in left.items())
    return (left or None) == (right or None)


# Parts of rules


def outside(path: str, low: float, high: float) -> Broken:
    """The body gives a number out of a range."""
    return lambda asked: (value := asked.says(path)) is not None and not low <= value <= high


def without(path: str, needed: str) -> Broken:
    """The result has the one and not the other."""
    return lambda asked: asked.now(path) and not asked.now(needed)


def unless(path: str, needed: str, *values: Any) -> Broken:
    """The result has the one, and the other has none of the values."""
    return lambda asked: asked.now(path) and asked.now(needed) not in values


def is_one_way(path: str) -> Broken:
    """The body takes back what is on."""
    return lambda asked: asked.was(path) and not asked.now(path)
