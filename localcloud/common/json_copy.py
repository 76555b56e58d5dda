"""Copies of documents of JSON, for stand-ins that give away what they hold."""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")


def copied(document: T) -> T:
    """Return a copy of a document whose objects are dicts, and whose arrays are lists.

    It takes a fraction of the time of ``copy.deepcopy``, which remembers what it has met.
    """
    if isinstance(document, dict):
        return cast(T, {key: copied(inner) for key, inner in document.items()})
    if isinstance(document, list):
        return cast(T, [copied(inner) for inner in document])
    return document
