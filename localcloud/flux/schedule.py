"""When a controller reconciles an object: what triggers it at once, and how long it waits otherwise.

A new generation, a request by annotation and what else the controller watches trigger it at once. After a
run, the next one is due after the object's interval, or after what its failure says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from localcloud.flux.flux_conditions import requested
from localcloud.kubernetes.world.object_store import Object

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_BACKOFF = (0.75, 900.0)
"""Seconds before the first retry of an error, and the most: ``--min-retry-delay``, ``--max-retry-delay``."""


@dataclass(frozen=True)
class _Run:
    seen: object
    due: datetime
    failures: int


class ReconcileSchedule:
    """The runs of one controller, by object."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._runs: dict[str, _Run] = {}

    def is_due(self, value: Object, watched: object = None) -> bool:
        """Return whether to reconcile an object now; a change of ``watched`` triggers it."""
        run = self._runs.get(value["metadata"]["uid"])
        return run is None or run.seen != _seen(value, watched) or self._clock() >= run.due

    def ran(self, value: Object, seconds: float, watched: object = None) -> None:
        """Note a run after which the next one is due in so many seconds."""
        self._note(value, seconds, watched, 0)

    def failed(self, value: Object, watched: object = None) -> None:
        """Note an error that is tried again after a time that doubles with every failure."""
        before = self._runs.get(value["metadata"]["uid"])
        failures = 0 if before is None or before.seen != _seen(value, watched) else before.failures
        least, most = _BACKOFF
        self._note(value, min(most, least * 2**failures), watched, failures + 1)

    def forget(self, uid: str) -> None:
        """Drop an object that no longer exists."""
        self._runs.pop(uid, None)

    def restart(self) -> None:
        """Make every object due, as a restarted controller does."""
        self._runs.clear()

    def next(self) -> datetime | None:
        """Return when the next object is due, None without any."""
        return min((run.due for run in self._runs.values()), default=None)

    def _note(self, value: Object, seconds: float, watched: object, failures: int) -> None:
        due = self._clock() + timedelta(seconds=seconds)
        self._runs[value["metadata"]["uid"]] = _Run(_seen(value, watched), due, failures)


def _seen(value: Object, watched: object) -> object:
    return (value["metadata"]["generation"], requested(value), watched)


def seconds_of(spec: Mapping[str, object], field: str, default: float) -> float:
    """Return a duration of a spec in seconds, as "1h", "10m0s", "30s"."""
    text = spec.get(field)
    if not isinstance(text, str):
        return default
    total, number, unit = 0.0, "", ""
    for letter in f"{text} ":
        if unit and not letter.isalpha():
            total, number, unit = total + float(number or 0) * _UNITS.get(unit, 0.0), "", ""
        if letter.isdigit() or letter == ".":
            number += letter
        elif letter.isalpha():
            unit += letter
    return total


def go_duration(seconds: float) -> str:
    """Return a duration as Go prints it: "30s", "10m0s", "1h0m0s"."""
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"
