"""Reads of the tables that many visits share: twenty people with a page open cost one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from types import MethodType
from typing import Any, cast

from shared.app.console.visit import Page
from shared.cluster.forms import RecordList
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import replace
from shared.ports import FleetRecord, Ports, State
from shared.ports.state import SweepRecord

SECONDS = 5.0
"""For how long a read serves: a page shows nothing that is older, and says when it was read."""


class _SharedRead:
    """A read that runs once, whoever asks for it meanwhile."""

    def __init__(self, at: float) -> None:
        self.at, self.lock, self.done = at, Lock(), False
        self.value: Any = None


def _key(name: str, *args: Any, **kwargs: Any) -> tuple[str, str, str]:
    given = {key: value for key, value in kwargs.items() if value}
    return name, repr(args), repr(sorted(given.items()))


class _RecentState:
    """The state, each of whose reads serves for some seconds; it has no writes."""

    def __init__(self, state: State, elapsed: Callable[[], float]) -> None:
        self._state, self._elapsed = state, elapsed
        self._lock, self._reads = Lock(), dict[Any, _SharedRead]()

    def fleet(self) -> FleetRecord:
        found: FleetRecord = self.fleet_and_sweep()[0]
        return found

    def sweep(self) -> SweepRecord:
        found: SweepRecord = self.fleet_and_sweep()[1]
        return found

    def summaries(self, *, details: bool = False) -> RecordList[ClusterSummary]:
        """Return the summaries; those with details serve whoever needs none."""
        found: RecordList[ClusterSummary] = self.__getattr__("summaries")(details=details or self._detailed)
        return found

    @property
    def _detailed(self) -> bool:
        read = self._reads.get(_key("summaries", details=True))
        return read is not None and (not read.done or self._elapsed() - read.at < SECONDS)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._state, name)
        if name.startswith("_"):
            return method
        if name.startswith(("save", "delete", "put", "take", "expect")):
            raise AttributeError(f"a page only reads: {name}")

        # What a read reads of the state is shared too.
        whole = partial(method.__func__, self) if isinstance(method, MethodType) else method

        def read(*args: Any, **kwargs: Any) -> Any:
            found = self._read(_key(name, *args, **kwargs))
            with found.lock:
                if not found.done:
                    found.value = whole(*args, **kwargs)
                    found.at, found.done = self._elapsed(), True
                return found.value

        return read

    def page(self, address: Any, make: Callable[[], Page]) -> Page:
        """Return a page that visits share for as long as the oldest read serves that there is."""
        found = self._read(("page", address))
        with found.lock:
            if not found.done:
                found.value = make()
                with self._lock:
                    found.at = min(read.at for read in (*self._reads.values(), found))
                found.done = True
            page: Page = found.value
            return page

    def _read(self, key: Any) -> _SharedRead:
        """Return the read that serves now, and drop those that do no longer; a running one does."""
        with self._lock:
            now = self._elapsed()
            self._reads = {
                key: read
                for key, read in self._reads.items()
                if read.lock.locked() or now - read.at < SECONDS
            }
            return self._reads.setdefault(key, _SharedRead(now))


def recent(ports: Ports) -> Ports:
    """Return ports whose state is read at most once in ``SECONDS``, for pages."""
    return replace(ports, state=cast(State, _RecentState(ports.state, ports.elapsed)))


def shared_page(address: Any, make: Callable[[], Page], ports: Ports) -> Page:
    """Return the page of an address, which all visits share whose ``recent`` reads would be the same."""
    return cast(_RecentState, ports.state).page(address, make)
