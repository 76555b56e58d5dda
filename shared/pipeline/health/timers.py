"""Whether each timer runs at its times: its last run, and when the one after that was due."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError

from shared.jobs.failures.errors import ReconcileError
from shared.ports import Ports
from shared.ports.state import TimerRun

log = logging.getLogger(__name__)

GRACE = timedelta(minutes=5)
"""How long after its time a run may end: an app starts from zero, and a timer may work for minutes."""


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
    new = [name for name in ports.config.timers if name not in runs]
    if new:
        now = ports.clock()
        ports.state.expect_timers(new, now)
        runs |= {name: TimerRun(now, ran=False) for name in new}
    return runs


def timer_state(name: str, schedule: str, run: TimerRun, now: datetime) -> TimerState:
    """Return how a timer does; ``run`` is what is stored of it."""
    last = run.at if run.ran else None
    due = _next(schedule, min(run.at, now))  # a time ahead is that of a wrong clock
    if due is None:
        return TimerState(name, schedule, last, None, f'its schedule "{schedule}" is no NCRONTAB expression')
    missed = f"its run of {due:%Y-%m-%d %H:%M:%S} UTC did not come to its end" if due + GRACE < now else ""
    return TimerState(name, schedule, last, due, missed)


def record_run(name: str, ports: Ports) -> None:
    """Save that a timer has come to its end, in one write; without it, health says that the timer is late."""
    try:
        ports.state.save_timer_run(name, ports.clock())
    except ReconcileError as error:
        log.warning("the run of %s is not recorded: %s: %s", name, error.kind, error)


def _next(schedule: str, after: datetime) -> datetime | None:
    """Return the first time of a schedule after a time, None for a schedule without one."""
    try:
        return next(CronSim(schedule, after))
    except (CronSimError, StopIteration):
        return None
