"""A memory for models that are read from stored JSON: most reads are of the few clusters with work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from shared.fleet.json_tree import Json

MOST = 64
"""Models that are remembered; then all of them are dropped, so that a large fleet needs no more memory."""

M = TypeVar("M")


def recently_read(read: Callable[[Json], M]) -> Callable[[Json], M]:
    """Return a function that reads equal JSON once: a model is frozen, and shares nothing with its JSON.

    What cannot be read raises its error each time.
    """
    models: dict[str, M] = {}

    def remembered(stored: Json) -> M:
        text = json.dumps(stored)
        found = models.get(text)
        if found is None:
            found = read(stored)
            if len(models) >= MOST:
                models.clear()
            models[text] = found
        return found

    return remembered
