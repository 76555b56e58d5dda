"""What a process remembers, and when it collects garbage: never while a fleet is planned."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from shared.json_tree import Json

COLLECTED = 50_000
"""How many more objects than it frees a process creates between two collections: some megabytes."""


def collect_rarely() -> None:
    """Collect garbage rarely in this process.

    By default Python looks for cycles at every 700 new objects, which takes a fifteenth of the time in which
    clusters are created, and finds few.
    """
    gc.set_threshold(COLLECTED)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector, whose repeated scans of thousands of new objects take a fifth of the time.

    For code that creates no cycles, of which the collector would free nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def lasting() -> Iterator[None]:
    """Collect no garbage while modules are imported, and never look at what they created."""
    with no_garbage_collection():
        yield
        gc.freeze()


# A memory for models that are read from stored JSON: most reads are of the few clusters with work.

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
