"""Records of any table that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared.cluster.forms import UnreadableRecord


class AllRecords(Protocol):
    """The records of all tables."""

    def unreadable(self) -> Sequence[UnreadableRecord]:
        """Return the records that cannot be read now.

        Of events, and of plans that have ended, those that this process has met. A second call reads what has
        changed since.
        """
        ...
