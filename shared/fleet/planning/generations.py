"""Generations above any that lost or older tables may have given.

A generation of a cluster takes a plan of its own, and so more than a second. The seconds since 2020 are
therefore above every generation that a cluster got until then, also where that began with such a number.
"""

from __future__ import annotations

from datetime import UTC, datetime

_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def above_any(at: datetime) -> int:
    """Return a generation that no cluster had before a moment."""
    return int((at - _EPOCH).total_seconds())
