"""How late this machine runs threads now: what a bound on a delay has to allow for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

NAP = 0.005


@dataclass
class Lag:
    """The longest time in seconds by which a sleeping thread woke up too late."""

    worst: float = 0.0

    def bound(self, seconds: float) -> float:
        """Return a bound for a delay of several thread switches that takes no time by itself."""
        return seconds + 10 * self.worst


@contextmanager
def machine_lag() -> Iterator[Lag]:
    """Measure while the block runs."""
    lag, ended = Lag(), threading.Event()

    def measure() -> None:
        while not ended.is_set():
            before = time.monotonic()
            time.sleep(NAP)
            lag.worst = max(lag.worst, time.monotonic() - before - NAP)

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    try:
        yield lag
    finally:
        ended.set()
        thread.join()
