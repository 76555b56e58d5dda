"""A memory for rules that depend on type and content alone: many clusters get the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from localcloud.kubernetes.schema.definitions import Type

MOST = 1024
"""Results that are stored; then all of them are dropped."""

T = TypeVar("T")


def by_content(rule: Callable[[Type, Any], T]) -> Callable[[Type, Any], T]:
    """Return a rule that works once for each content of a built-in kind; nobody changes its results.

    The type of a custom kind is that of one cluster, which a memory would keep.
    """
    results: dict[tuple[Type, str], T] = {}

    def remembered(kind: Type, value: Any) -> T:
        if kind.custom:
            return rule(kind, value)
        key = (kind, repr(value))
        found = results.get(key)
        if found is None:
            found = rule(kind, value)
            if len(results) >= MOST:
                results.clear()
            results[key] = found
        return found

    return remembered
