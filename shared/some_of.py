"""The first of many names, for a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def some_of(names: Sequence[str], most: int, *, total: int = 0, between: str = ", ") -> str:
    """Return at most so many names and how many more there are, "" for none: ``a, b and 3 more``.

    ``total`` is how many there are, if more than are given.
    """
    more = max(total, len(names)) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")
