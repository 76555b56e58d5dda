"""Reads of the tables that many visits share: twenty people with a page open cost one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from shared.frozen import replace
from shared.ports import Ports, State

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

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._state, name)
        if name.startswith(("save", "delete", "put", "take", "expect")):
            raise AttributeError(f"a page only reads: {name}")

        def read(*args: Any, **kwargs: Any) -> Any:
            key = (name, repr(args), repr(sorted(kwargs.items())))
            found = self._read(key)
            with found.lock:
                if not found.done:
                    found.value, found.done = method(*args, **kwargs), True
                return found.value

        return read

    def _read(self, key: Any) -> _Read:
        """Return the read that serves now, and drop those that do no longer."""
        with self._lock:
            now = self._elapsed()
            self._reads = {key: read for key, read in self._reads.items() if now - read.at < SECONDS}
            return self._reads.setdefault(key, _Read(now))


def recent(ports: Ports) -> Ports:
    """Return ports whose state is read at most once in ``SECONDS``, for pages."""
    return replace(ports, state=cast(State, _RecentState(ports.state, ports.elapsed)))
