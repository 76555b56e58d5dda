"""Gaps in the webhooks of a fleet: heads that were planned although no push had announced them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class FoundBy(StrEnum):
    """What looked for a head that no webhook had announced."""

    TIMER = "timer"
    SYNC = "sync"
    """An operator asked."""


@dataclass(frozen=True)
class Gap:
    """A head that no webhook had announced, when it was found by our clock, and by what."""

    commit: str
    found: datetime
    by: FoundBy


@dataclass(frozen=True)
class Gaps:
    """How many gaps were repaired since the fleet was planned first, and the last of them."""

    count: int = 0
    last: Gap | None = None

    def and_one(self, gap: Gap) -> Gaps:
        """Return the gaps with one more."""
        return Gaps(self.count + 1, gap)
