"""Which commit a fleet planned last, and as which of its times as the head of the branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shared.ports import FleetRecord


@dataclass
class Heads:
    """What the saves of a fleet's row tell; ``place`` numbers when a commit was made the head, and grows."""

    commit: str = ""
    place: int = -1
    _row: FleetRecord = field(default_factory=FleetRecord)
    _begun: dict[str, int] = field(default_factory=dict)

    def saved(self, record: FleetRecord, place_of: Callable[[str], int]) -> None:
        """Look at the row: a plan counts as of its beginning, and a push that needs none as of its look."""
        before, self._row = self._row, record
        if record.planning:
            if record.planning != before.planning:
                self._begun[record.planning] = place_of(record.planning)
        elif record.commit:
            if not before.planning and record.looked != before.looked:
                self._begun[record.commit] = place_of(record.commit)
            self.commit, self.place = record.commit, self._begun[record.commit]
