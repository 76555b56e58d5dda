"""When garbage is collected: rarely in a process of its own, and never while a fleet is planned."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
