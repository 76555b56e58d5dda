"""How many days are left, as a sentence says it."""

from __future__ import annotations

from datetime import date


def days_until(day: date, today: date) -> str:
    """Return ``today``, ``in 1 day`` or ``in 12 days``; the day is not over."""
    days = (day - today).days
    return f"in {days} day{'s' * (days > 1)}" if days else "today"
