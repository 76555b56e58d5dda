"""What this process uses of Azure's services: a count for each operation, in memory until it is written.

A call adds to a number, and does nothing else for it. What was not written when a process ends is lost, so
what is stored is counted at least.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

EXECUTIONS, SECONDS, TABLES, SENT, RECEIVED, ARM = (
    "executions",
    "seconds",
    "tables",
    "sent",
    "received",
    "arm",
)
"""What is counted; an operation has its name behind one of them and a space."""
Count = Callable[[str], None]
"""Counts an operation."""
FEWEST, MOST = 25, 200
"""So many operations are written at the least, and at the most: a write is two of them.

A process writes as often as it has twice as many operations, so one that ends early has lost half at most.
"""
LEAST_SECONDS = 1.0
"""The least time that is billed on demand (azure.microsoft.com/pricing/details/functions)."""


class Tally:
    """The operations of a process. Safe to share between threads."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed, self._lock = elapsed, threading.Lock()
        self._counts = Counter[str]()
        self._seconds = 0.0
        self._running, self._since = 0, 0.0
        self._written = 0

    def add(self, operation: str, times: int = 1) -> None:
        """Count an operation, such as "sent plans"."""
        with self._lock:
            self._counts[operation] += times

    @contextmanager
    def execution(self, function: str) -> Iterator[None]:
        """Count an execution of a function, and the time in which this process executes any."""
        with self._lock:
            self._counts[f"{EXECUTIONS} {function}"] += 1
            if not self._running:
                self._since = self._elapsed()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._seconds += max(LEAST_SECONDS, self._elapsed() - self._since)

    def due(self) -> Mapping[str, float]:
        """Return what is to be written now, and count from zero again; none while not worth a write."""
        with self._lock:
            unwritten = self._counts.total()
            if unwritten < min(MOST, max(FEWEST, self._written)):
                return {}
            found: dict[str, float] = {**self._counts, SECONDS: round(self._seconds, 1)}
            self._counts, self._seconds = Counter(), 0.0
            self._written += unwritten
            return found

    def restore(self, counts: Mapping[str, float]) -> None:
        """Take back what was not written."""
        with self._lock:
            for name, times in counts.items():
                if name == SECONDS:
                    self._seconds += times
                else:
                    self._counts[name] += int(times)
                    self._written -= int(times)


def table_request(method: str, url: str) -> str:
    """Return the name of a request to Table Storage, without keys: "tables GET roadsteadfleets"."""
    entity = urlsplit(url).path.rpartition("/")[2].partition("(")[0]
    return f"{TABLES} {method} {entity}"


def arm_request(method: str, url: str) -> str:
    """Return the name of a request to Azure Resource Manager, without names of resources.

    It has the types of what its path leads to: "arm GET Microsoft.ContainerService/managedClusters". In a
    path, types and names alternate (learn.microsoft.com/azure/azure-resource-manager/management/
    resource-providers-and-types).
    """
    _, in_provider, resource = urlsplit(url).path.rpartition("/providers/")
    parts = resource.strip("/").split("/")
    types = [parts[0], *parts[1::2]] if in_provider else parts[::2]
    return f"{ARM} {method} {'/'.join(types)}"
