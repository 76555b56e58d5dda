"""The last runs of the timers, in the table of fleets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from shared.adapters.tables.storage import Storage
from shared.jobs.failures.errors import Stale
from shared.ports.state import TimerRun

FLEETS = "roadsteadfleets"


class TimersTable:
    """The part of the State port that is about timers."""

    _storage: Storage
    _fleet: str

    def timer_runs(self) -> Mapping[str, TimerRun]:
        """Return what is stored of each timer."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._timers)
        return {entity["RowKey"]: TimerRun(entity["at"], entity["ran"]) for entity in found}

    def save_timer_run(self, timer: str, at: datetime) -> None:
        """Write that a timer has run."""
        self._storage.upsert(FLEETS, self._run(timer, at, ran=True))

    def expect_timers(self, timers: Collection[str], at: datetime) -> None:
        """Write since when timers are expected of which nothing is stored."""
        for timer in timers:
            try:
                self._storage.write(FLEETS, self._run(timer, at, ran=False), "")
            except Stale:
                continue  # it has run, or is expected already

    @property
    def _timers(self) -> str:
        return f"timers|{self._fleet}"

    def _run(self, timer: str, at: datetime, *, ran: bool) -> dict[str, object]:
        return {"PartitionKey": self._timers, "RowKey": timer, "at": at, "ran": ran}
