"""The last runs of the timers, in the table of fleets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from shared.adapters.tables.reading import Entity, Reader, moment_in
from shared.adapters.tables.storage import Storage
from shared.cluster.failures.errors import Stale
from shared.cluster.forms import WrongText
from shared.ports.state import TimerRun

FLEETS = "roadsteadfleets"


class TimersTable:
    """The part of the State port that is about timers."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def timer_runs(self) -> Mapping[str, TimerRun]:
        """Return what is stored of each timer."""
        found = self._storage.query(FLEETS, "PartitionKey eq @key", key=self._timers)
        return dict(self._reader.listed("timer", FLEETS, found, timer_of))

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


def timer_of(entity: Entity) -> tuple[str, TimerRun]:
    """Return the name and the last run of a timer; raise WrongText."""
    if not isinstance(entity.get("ran"), bool):
        raise WrongText("ran is missing, or has a wrong type")
    return entity["RowKey"], TimerRun(moment_in(entity, "at"), entity["ran"])
