"""Which commit a fleet planned last, and as which of its times as the head of the branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shared.ports import FleetRow


@dataclass
class Heads:
    """What the saves of a fleet's row tell; ``place`` numbers when a commit was made the head, and grows."""

    commit: str = ""
    place: int = -1
    _row: FleetRow = field(default_factory=FleetRow)
    _begun: dict[str, int] = field(default_factory=dict)

    def saved(self, row: FleetRow, place_of: Callable[[str], int]) -> None:
        """Look at the row: a plan counts as of its beginning, and a push that needs none as of its look."""
        before, self._row = self._row, row
        if row.planning:
            if row.planning != before.planning:
                self._begun[row.planning] = place_of(row.planning)
        elif row.commit:
            if not before.planning and row.looked != before.looked:
                self._begun[row.commit] = place_of(row.commit)
            self.commit, self.place = row.commit, self._begun[row.commit]
