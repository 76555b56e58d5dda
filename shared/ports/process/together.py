"""Several calls to a port at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

THREADS = 8
"""How many calls at a time, as many as the reads of the state."""


Together = Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]
"""Does the same work for several values, and returns the results in the order of the values.

Raises the error of the first value that has one. No work goes on when it has returned or raised. It reaches
no outside system by itself: the work calls ports, and their errors are masked there.
"""


def in_threads(work: Callable[[Any], Any], values: Sequence[Any]) -> Sequence[Any]:
    """Do the work in a few threads; after an error none of it begins any more."""
    if len(values) < 2:
        return [work(value) for value in values]
    with ThreadPoolExecutor(THREADS) as pool:
        # Each with what its log lines are about.
        futures = [pool.submit(copy_context().run, work, value) for value in values]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)


def in_turn(work: Callable[[Any], Any], values: Sequence[Any]) -> Sequence[Any]:
    """Do the work for one value after the other, as a run on a virtual clock needs it."""
    return [work(value) for value in values]
