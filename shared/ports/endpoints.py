"""The addresses that checks of gates ask: HTTP endpoints, and servers of Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Endpoints(Protocol):
    """Asks addresses that a commit names, on the hosts that whoever runs the app allows.

    Both raise ReconcileError. Dependency: the host is not allowed, or leads to an address to which the app
    does not connect. No error has more of an answer than a Prometheus says is wrong with a query, and that
    cut short.
    """

    def status(self, url: str) -> int:
        """Return the status with which an address answers a GET; no redirect is followed."""
        ...

    def query(self, url: str, query: str) -> Sequence[float]:
        """Return the value of a scalar, or those of a vector, with which a Prometheus answers a query."""
        ...
