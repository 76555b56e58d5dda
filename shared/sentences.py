"""Parts of sentences: the first of many names, a time, and how many days are left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime


def some_of(names: Sequence[str], most: int, *, total: int = 0, between: str = ", ") -> str:
    """Return at most so many names and how many more there are, "" for none: ``a, b and 3 more``."""
    more = max(total, len(names)) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def many(number: int, noun: str) -> str:
    """Return how many: 1 delete, 3 deletes."""
    return f"{number} {noun}{'s' * (number != 1)}"


def removals(number: int, releases: int) -> str:
    """Return how many of a number of removals are releases of clusters outside Azure.

    The others remove clusters, namespaces, or what Flux has applied.
    """
    counts = {"removal": number - releases, "release": releases}
    return " and ".join(many(count, noun) for noun, count in counts.items() if count) or many(0, "removal")


def not_shown(number: int, noun: str) -> str:
    """Return the sentence that ends a list which is too long: ``3 more problems are not shown.``"""
    return f"{number:,} more {noun}{'s are' if number != 1 else ' is'} not shown."


# A time, and how many days are left, as a sentence says it.


def moment(at: datetime) -> str:
    """Return a time: ``2026-01-31 02:14 UTC``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def days_until(day: date, today: date) -> str:
    """Return ``today``, ``in 1 day`` or ``in 12 days``; the day is not over."""
    days = (day - today).days
    return f"in {days} day{'s' * (days > 1)}" if days else "today"
