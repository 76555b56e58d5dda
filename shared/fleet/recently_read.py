"""A memory for models that are read from stored JSON: most reads are of the few clusters with work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shared.fleet.json_tree import Json

MOST = 64
"""Models that are remembered; then all of them are dropped, so that a large fleet needs no more memory."""

M = TypeVar("M")


def recently_read(read: Callable[[Json], M]) -> Callable[[Json], M]:
    """Return a function that reads equal JSON once: a model is frozen, and shares nothing with its JSON.

    The same JSON is not even compared: nobody changes what is stored in place. What cannot be read raises its
    error each time.
    """
    models: dict[str, M] = {}
    same: dict[int, tuple[Json, M]] = {}

    def remembered(stored: Json) -> M:
        known = same.get(id(stored))
        if known is not None and known[0] is stored:
            return known[1]
        text = repr(stored)
        found = models.get(text)
        if found is None:
            found = read(stored)
            if len(models) >= MOST:
                models.clear()
            models[text] = found
        if len(same) >= MOST:
            same.clear()
        same[id(stored)] = stored, found
        return found

    return remembered
