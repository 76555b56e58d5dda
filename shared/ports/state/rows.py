"""Rows of any table that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shared.jobs.rows import UnreadableRow


class Rows(Protocol):
    """The rows of all tables."""

    def unreadable(self) -> Sequence[UnreadableRow]:
        """Return the rows that cannot be read now.

        Of events, and of plans that have ended, those that this process has met. A second call reads what has
        changed since.
        """
        ...
