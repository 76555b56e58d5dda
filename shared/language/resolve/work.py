"""How much work a plan may take, counted in units, so that the same files always meet the same limit.

A unit is four bytes of a manifest that is parsed, or one value of a layer that is merged into a cluster.
Every file and every cluster may take its even share of the limit; more only while the whole plan is below it.
One large manifest can therefore make itself invalid, and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable

PLAN_WORK = 20_000_000
"""Units for a push. A cluster of the benchmark takes about 250, so this is enough for 80,000 of them."""
BYTES_PER_UNIT = 4
CHECKED_EVERY = 2_000
"""Units between two checks of the time: some hundredths of a second."""


class Work:
    """Counts units against a limit; ``check`` is called now and then, and may raise to stop everything."""

    def __init__(self, limit: int = PLAN_WORK, check: Callable[[], None] = lambda: None) -> None:
        self.limit, self.check, self.spent, self.refused = limit, check, 0, 0
        self._unchecked = CHECKED_EVERY

    def admits(self, units: int, share: int) -> bool:
        """Spend units that are within a share, or the plan within its limit; return False for any others."""
        if units > share and self.spent + units > self.limit:
            self.refused += 1
            return False
        self.spend(units)
        return True

    def share(self, parts: int) -> int:
        """Return the units that each of so many parts may always take."""
        return self.limit // max(parts, 1)

    def spend(self, units: int) -> None:
        """Count units that have to be spent anyway."""
        self.spent += units
        self._unchecked += units
        if self._unchecked >= CHECKED_EVERY:
            self._unchecked = 0
            self.check()


def units_of(content: bytes) -> int:
    """Return what the parsing of a file takes."""
    return len(content) // BYTES_PER_UNIT + 1
