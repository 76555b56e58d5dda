"""Whether each timer runs at its times, and whether what it asks for comes to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.pipeline.runs import expected_names
from shared.ports import Ports
from shared.ports.state import TimerRun
from shared.schedules import next_time

GRACE = timedelta(minutes=5)
"""How long after its time a run may end: an app starts from zero, and a timer may work for minutes."""
WORK = timedelta(hours=1)
"""How long after its time that work may end: it begins within minutes, and waits for Azure's limits."""


@dataclass(frozen=True)
class TimerState:
    """A timer: when it ran last, when it is due, and what is wrong with it, "" for nothing."""

    name: str
    schedule: str
    last: datetime | None
    due: datetime | None
    problem: str = ""


def expected_runs(ports: Ports) -> Mapping[str, TimerRun]:
    """Return what is stored of each timer of the app, in one read.

    One of which nothing is stored, as in a new deployment, is expected from now on, and that is stored: it is
    late when its first time after that has passed.
    """
    runs = dict(ports.state.timer_runs())
    new = [name for name in expected_names(ports.config.timers) if name not in runs]
    if new:
        now = ports.clock()
        ports.state.expect_timers(new, now)
        runs |= {name: TimerRun(now, ran=False) for name in new}
    return runs


def timer_state(
    name: str, schedule: str, run: TimerRun, now: datetime, end: TimerRun | None = None
) -> TimerState:
    """Return how a timer does; ``run`` is what is stored of it, ``end`` of what it asks for."""
    last = run.at if run.ran else None
    due = next_time(schedule, min(run.at, now))  # a time ahead is that of a wrong clock
    missed = f"its run of {due:%Y-%m-%d %H:%M:%S} UTC did not come to its end" if due + GRACE < now else ""
    return TimerState(name, schedule, last, due, missed or _endless(name, schedule, end, now))


def _endless(name: str, schedule: str, end: TimerRun | None, now: datetime) -> str:
    """Return that what a timer asks for does not come to its end, "" where it does."""
    if end is None:
        return ""
    due = next_time(schedule, min(end.at, now))
    if due + WORK >= now:
        return ""
    last = f"the last end was at {end.at:%Y-%m-%d %H:%M:%S} UTC" if end.ran else "none has ended yet"
    return f"the {name} of {due:%Y-%m-%d %H:%M:%S} UTC did not come to its end; {last}"
