"""Timer triggers: NCRONTAB schedules of six fields, in UTC.

As in Azure a timer never overlaps itself: the next time is computed when a run has ended. Unlike Azure
nothing is remembered between starts, so only a run that starts late (the machine slept) is past due.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from datetime import UTC, datetime, timedelta

from azure.functions.meta import Datum
from cronsim import CronSim, CronSimError

from localcloud.common.clock import system_clock
from localcloud.functions.host_config import ConfigError
from localcloud.functions.worker.function_index import Function, Input, TimerTrigger
from localcloud.functions.worker.invocations import Closed, Invoker

_LATE = timedelta(seconds=1)
_LOOKS = 1.0
"""So many seconds later the clock is read again at the latest: somebody may put it forward meanwhile."""


def tick(*, past_due: bool) -> Input:
    """Return what a timer's function is given."""
    value = json.dumps({"IsPastDue": past_due, "Schedule": {"AdjustForDST": True}, "ScheduleStatus": None})
    return Input(Datum(value, "json"))


def next_time(schedule: str, after: datetime) -> datetime:
    """Return the first time of the schedule after a time (UTC); raise ConfigError when it cannot be read."""
    if len(schedule.split()) != 6:
        raise ConfigError(f'the schedule "{schedule}" must have six fields, seconds first')
    try:
        return next(CronSim(schedule, after))
    except (CronSimError, StopIteration):
        raise ConfigError(f'the schedule "{schedule}" cannot be read, or never comes') from None


class Timer:
    """Runs one function on its schedule until stopped."""

    def __init__(
        self, function: Function, invoker: Invoker, *, clock: Callable[[], datetime] = system_clock
    ) -> None:
        if not isinstance(function.trigger, TimerTrigger):
            raise TypeError(f"{function.name} has no timer")
        self._function, self._invoker, self._clock = function, invoker, clock
        self._trigger = function.trigger
        self._stop = threading.Event()
        self._due = next_time(self._trigger.schedule, clock())
        self._thread = threading.Thread(target=self._loop, daemon=True, name=f"timer-{function.name}")

    def start(self) -> None:
        """Begin, at once when the trigger asks to run on start-up."""
        self._thread.start()

    def stop(self) -> None:
        """Start no further run."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait until a run under way has ended."""
        self._thread.join(seconds)

    def _loop(self) -> None:
        try:
            if self._trigger.at_start:
                self._run(past_due=False)
            while not self._stop.wait(min(_LOOKS, max(0.0, (self._due - self._clock()).total_seconds()))):
                now = self._clock()
                if now < self._due:
                    continue
                self._run(past_due=now - self._due > _LATE)
        except (Closed, CancelledError):
            return

    def _run(self, *, past_due: bool) -> None:
        self._invoker.submit(self._function, tick(past_due=past_due)).result()
        self._due = next_time(self._trigger.schedule, self._clock().astimezone(UTC))
