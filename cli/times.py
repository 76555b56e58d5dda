"""Times and durations for a terminal."""

from __future__ import annotations

from datetime import datetime, timedelta


def age(moment: str | None, now: datetime) -> str:
    """Return how long ago a moment is, as kubectl writes it: 12s, 5m, 3h, 2d."""
    if not moment:
        return ""
    seconds = max(0, int((now - datetime.fromisoformat(moment)).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def until(moment: str, now: datetime) -> str:
    """Return the time until a moment, as "in 5m 20s"; with its date from an hour on."""
    left = max(timedelta(), datetime.fromisoformat(moment) - now)
    minutes, seconds = divmod(left.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if left.days:
        return f"in {left.days}d {hours}h ({moment})"
    if hours:
        return f"in {hours}h {minutes}m ({moment})"
    return f"in {minutes}m {seconds}s" if minutes else f"in {seconds}s"


def whole(moment: str | None) -> str:
    """Return a moment in whole seconds."""
    return datetime.fromisoformat(moment).replace(microsecond=0).isoformat() if moment else ""


def times(number: int) -> str:
    """Return how often: once, 3 times."""
    return "once" if number == 1 else f"{number} times"
