"""When each timer ran last: a small entity for each, written once a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from shared.frozen import dataclass


@dataclass(frozen=True)
class TimerRun:
    """The last run of a timer that came to its end; without one (``ran``), since when one is expected."""

    at: datetime
    ran: bool = True


class Timers(Protocol):
    """The runs of the timers, by the names of their functions."""

    def timer_runs(self) -> Mapping[str, TimerRun]:
        """Return what is stored of each timer."""
        ...

    def save_timer_run(self, timer: str, at: datetime) -> None:
        """Write that a timer has run, over what is stored of it."""
        ...

    def expect_timers(self, timers: Collection[str], at: datetime) -> None:
        """Write since when timers are expected to run; what is stored of one already is left alone."""
        ...
