"""Reads of the tables that many visits share: twenty people with a page open cost one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from types import MethodType
from typing import Any, cast

from shared.frozen import replace
from shared.ports import FleetRecord, Ports, State
from shared.ports.state import SweepRecord

SECONDS = 5.0
"""For how long a read serves: a page shows nothing that is older, and says when it was read."""


class _Read:
    """A read that runs once, whoever asks for it meanwhile."""

    def __init__(self, at: float) -> None:
        self.at, self.lock, self.done = at, Lock(), False
        self.value: Any = None


class _RecentState:
    """The state, each of whose reads serves for some seconds; it has no writes."""

    def __init__(self, state: State, elapsed: Callable[[], float]) -> None:
        self._state, self._elapsed = state, elapsed
        self._lock, self._reads = Lock(), dict[Any, _Read]()

    def fleet(self) -> FleetRecord:
        found: FleetRecord = self.fleet_and_sweep()[0]
        return found

    def sweep(self) -> SweepRecord:
        found: SweepRecord = self.fleet_and_sweep()[1]
        return found

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._state, name)
        if name.startswith("_"):
            return method
        if name.startswith(("save", "delete", "put", "take", "expect")):
            raise AttributeError(f"a page only reads: {name}")

        # What a read reads of the state is shared too.
        whole = partial(method.__func__, self) if isinstance(method, MethodType) else method

        def read(*args: Any, **kwargs: Any) -> Any:
            given = {key: value for key, value in kwargs.items() if value}
            found = self._read((name, repr(args), repr(sorted(given.items()))))
            with found.lock:
                if not found.done:
                    found.value = whole(*args, **kwargs)
                    found.at, found.done = self._elapsed(), True
                return found.value

        return read

    def _read(self, key: Any) -> _Read:
        """Return the read that serves now, and drop those that do no longer; a running one does."""
        with self._lock:
            now = self._elapsed()
            self._reads = {
                key: read
                for key, read in self._reads.items()
                if read.lock.locked() or now - read.at < SECONDS
            }
            return self._reads.setdefault(key, _Read(now))


def recent(ports: Ports) -> Ports:
    """Return ports whose state is read at most once in ``SECONDS``, for pages."""
    return replace(ports, state=cast(State, _RecentState(ports.state, ports.elapsed)))
